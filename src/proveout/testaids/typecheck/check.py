"""Runs a checker over files and says what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.finding import Finding, Severity
from proveout.domain.step import Command
from proveout.domain.verdict import Verdict, worst
from proveout.testaids.environment import Environment, interpreter, of_checkout
from proveout.testaids.typecheck.find import Configured, find_configured

SUFFIXES = {".py", ".pyi"}
_SAID = 2000


class Typing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for the files of one configuration: paths in findings are relative to its directory."""

    checker: str
    config: str
    environment: str
    files: tuple[str, ...]
    verdict: Verdict
    findings: tuple[Finding, ...]

    @property
    def line(self) -> str:
        """The verdict in one line."""
        errors = sum(finding.severity is Severity.ERROR for finding in self.findings)
        return (
            f"{self.verdict}: {self.checker}, {errors} errors in {len(self.files)} files "
            f"({self.config}, {self.environment})"
        )


def overall(answers: Sequence[Typing]) -> Verdict:
    """The verdict over all answers."""
    return worst(answer.verdict for answer in answers)


def check_files(
    files: Sequence[Path], *, python: str | None = None, checker: str | None = None
) -> list[Typing]:
    """Check files, each with the configuration nearest above it; one answer for each configuration.

    Raises UsageError for a file that is missing or no Python file, or has no checker configured; BlockedError
    where the checker is not installed or gives no answer.
    """
    groups: dict[Path, tuple[Configured, list[Path]]] = {}
    for file in files:
        if file.suffix not in SUFFIXES or not file.is_file():
            raise UsageError("is no Python file that exists", where=str(file))
        configured = find_configured(file, checker)
        groups.setdefault(configured.config, (configured, []))[1].append(file.resolve())
    return [_check(configured, group, python) for configured, group in groups.values()]


def typecheck_command(configured: Configured, files: Sequence[Path], environment: Environment) -> Command:
    """The command that checks ``files`` (absolute) in the configuration's directory; starts nothing."""
    checker = configured.checker
    config = str(configured.config)
    names = [str(file.relative_to(configured.root)) for file in files]
    argv = environment.start(checker.name, *checker.arguments, checker.config_option, config, *names)
    return Command(argv=argv, cwd=str(configured.root), unset=("MYPY_FORCE_COLOR", "FORCE_COLOR"))


def _check(configured: Configured, files: list[Path], python: str | None) -> Typing:
    environment = _environment(configured, python)
    command = typecheck_command(configured, files, environment)
    env = {name: value for name, value in os.environ.items() if name not in command.unset}
    try:
        done = subprocess.run(
            command.argv, cwd=command.cwd, env=env, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BlockedError(f"{command.argv[0]} cannot be started: {error.strerror}") from error
    findings = _findings(configured, done, environment)
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    if done.returncode != 0 and not failed:
        raise _no_answer(configured, done, environment)
    return Typing(
        checker=configured.checker.name,
        config=configured.config.name,
        environment=environment.what,
        files=tuple(str(file.relative_to(configured.root)) for file in files),
        verdict=Verdict.FAIL if failed else Verdict.PASS,
        findings=tuple(findings),
    )


def _environment(configured: Configured, python: str | None) -> Environment:
    if python:
        return interpreter(python)
    return of_checkout(configured.root, configured.checker.name) or interpreter(sys.executable)


def _findings(
    configured: Configured, done: subprocess.CompletedProcess[str], environment: Environment
) -> list[Finding]:
    try:
        return configured.checker.read(done.stdout)
    except (ValueError, KeyError, TypeError) as error:
        raise _no_answer(configured, done, environment) from error


def _no_answer(
    configured: Configured, done: subprocess.CompletedProcess[str], environment: Environment
) -> BlockedError:
    said = (done.stderr.strip() or done.stdout.strip() or "it said nothing")[-_SAID:]
    return BlockedError(
        f"{configured.checker.name} gave no answer (exit status {done.returncode}): {said}",
        where=str(configured.config),
        remedy=f"it ran in {environment.what}; name another interpreter: --python PATH",
    )
