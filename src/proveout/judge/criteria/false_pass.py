"""False pass: what a log or a command line shows of a run that only looks as if it had passed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Severity, Where
from proveout.judge import logtext, say

_TEE = re.compile(r"\|\s*tee\b")
_SHELLS = ("bash", "sh", "zsh", "dash")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line that a run may print while it looks like a pass; see ``data/false_pass.toml``."""

    id: str
    severity: Severity
    words: str
    what: str
    pattern: str = ""
    boundary: Boundary | None = None
    remedy: str = ""

    def matches(self, text: str) -> bool:
        """Whether the rule's line is in ``text``."""
        return self.words in text and (not self.pattern or re.search(self.pattern, text) is not None)


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``fatal``: rules that only limit the claim elsewhere and decide here, such as ``import-skipped``."""

    fatal: tuple[str, ...] = ()


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order of the data."""
    text = files("proveout.judge").joinpath("data/false_pass.toml").read_text()
    return tuple(msgspec.convert(tomllib.loads(text)["rule"], list[Rule]))


def false_pass(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """No line, variable or shell construct that is known to hide a failure.

    Without a readable log nothing can be excluded, so that is an ERROR too.
    """
    fatal = set(msgspec.convert(dict(params), Params).fatal)
    if unknown := fatal - {rule.id for rule in rules()}:
        raise msgspec.ValidationError(f"no false-pass rule {', '.join(sorted(unknown))}")
    findings = [*_command(evidence)]
    held: tuple[Citation, ...] = ()
    try:
        found = _log(evidence, fatal)
    except OSError as error:
        findings.append(
            say.error(
                "false_pass.no-log",
                f"the log cannot be read, so no hidden failure can be excluded: {error.strerror}",
                where=Where(file=evidence.log),
            )
        )
    else:
        findings += found
        held = (
            Citation(
                what=f"none of {len(rules())} known false-pass lines decides", where=Where(file=evidence.log)
            ),
        )
    wrong = any(finding.severity is Severity.ERROR for finding in findings)
    return CriterionResult(kind="false_pass", findings=tuple(findings), held=() if wrong else held)


def _log(evidence: Evidence, fatal: set[str]) -> list[Finding]:
    first: dict[str, Citation] = {}
    count: dict[str, int] = {}
    for line in logtext.scan(logtext.log_path(evidence), {rule.words for rule in rules()}):
        for rule in rules():
            if rule.matches(line.text):
                first.setdefault(rule.id, say.log_line(evidence.log, line.number, line.text, rule.what))
                count[rule.id] = count.get(rule.id, 0) + 1
    return [
        Finding(
            id=f"judge.false_pass.{rule.id}",
            severity=Severity.ERROR if rule.id in fatal else rule.severity,
            what=rule.what + (f" ({count[rule.id]} lines)" if count[rule.id] > 1 else ""),
            where=first[rule.id].where,
            remedy=rule.remedy,
            boundary=rule.boundary,
            evidence=(first[rule.id],),
        )
        for rule in rules()
        if rule.id in first
    ]


def _command(evidence: Evidence) -> Iterator[Finding]:
    command = evidence.step.command
    if command.env.get("NRL_IGNORE_TP_ACCURACY_CHECK"):
        yield say.error(
            "false_pass.tp-accuracy-ignored",
            "NRL_IGNORE_TP_ACCURACY_CHECK is set: the run is no evidence for or against",
            where=Where(key="env.NRL_IGNORE_TP_ACCURACY_CHECK"),
            remedy="run without it",
        )
    name = command.argv[0].rsplit("/", 1)[-1] if command.argv else ""
    script = " ".join(command.argv[1:])
    if name in _SHELLS and _TEE.search(script) and "pipefail" not in script:
        yield say.error(
            "false_pass.tee",
            "the exit status is that of tee: the pipe loses that of the run",
            where=Where(key="argv"),
            remedy="set -o pipefail, or let the log be captured without a pipe",
        )
