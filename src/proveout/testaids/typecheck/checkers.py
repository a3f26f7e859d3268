"""The type checkers that are known: where their configuration stands, how they are started, how they answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from proveout.domain.finding import Finding, Severity, Where

_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING, "warn": Severity.WARNING}


class Checker(msgspec.Struct, frozen=True, kw_only=True):
    """One checker. ``files`` are configuration files of its own, ``table`` its table in ``pyproject.toml``,
    ``section`` its section in ``setup.cfg``; ``arguments`` come before the files; ``config_option`` names the
    configuration; ``read`` turns its standard output into findings and raises ValueError when it cannot.
    """

    name: str
    files: tuple[str, ...]
    table: str
    section: str = ""
    arguments: tuple[str, ...]
    config_option: str
    read: Callable[[str], list[Finding]]


def _finding(checker: str, *, code: object, severity: object, what: object, where: Where) -> Finding:
    return Finding(
        id=f"typecheck.{checker}.{code or 'unnamed'}",
        severity=_SEVERITIES.get(str(severity).lower(), Severity.NOTICE),
        what=str(what),
        where=where,
    )


def _read_mypy(output: str) -> list[Finding]:
    found = []
    for line in filter(str.strip, output.splitlines()):
        each = json.loads(line)
        what = " ".join(filter(None, (each["message"], each.get("hint"))))
        where = Where(file=each["file"], line=each.get("line"))
        found.append(
            _finding("mypy", code=each.get("code"), severity=each["severity"], what=what, where=where)
        )
    return found


def _read_pyrefly(output: str) -> list[Finding]:
    errors: list[dict[str, Any]] = json.loads(output)["errors"]
    return [
        _finding(
            "pyrefly",
            code=each.get("name"),
            severity=each.get("severity", "error"),
            what=each.get("concise_description") or each["description"],
            where=Where(file=each["path"], line=each.get("line")),
        )
        for each in errors
    ]


def _read_pyright(output: str) -> list[Finding]:
    diagnostics: list[dict[str, Any]] = json.loads(output)["generalDiagnostics"]
    return [
        _finding(
            "pyright",
            code=each.get("rule"),
            severity=each["severity"],
            what=each["message"],
            where=Where(file=each["file"], line=each["range"]["start"]["line"] + 1),
        )
        for each in diagnostics
    ]


CHECKERS: dict[str, Checker] = {
    "pyrefly": Checker(
        name="pyrefly",
        files=("pyrefly.toml",),
        table="pyrefly",
        arguments=("check", "--output-format", "json"),
        config_option="--config",
        read=_read_pyrefly,
    ),
    "pyright": Checker(
        name="pyright",
        files=("pyrightconfig.json",),
        table="pyright",
        arguments=("--outputjson",),
        config_option="--project",
        read=_read_pyright,
    ),
    "mypy": Checker(
        name="mypy",
        files=("mypy.ini", ".mypy.ini"),
        table="mypy",
        section="mypy",
        arguments=("--output", "json", "--no-error-summary"),
        config_option="--config-file",
        read=_read_mypy,
    ),
}
