"""Runs a unit test command and says what came of it; no tests is no success."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from proveout.domain.errors import BlockedError
from proveout.domain.verdict import Verdict

EXIT_NOT_STARTED = {125, 126, 127}
_PYTEST_INTERRUPTED = 2
_PYTEST_USAGE = 4
_PYTEST_NONE = 5
_MARK = re.compile(r"pytest\.mark\.(\w+)")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What pytest's JUnit report counts."""

    passed: int
    failed: int
    errors: int
    skipped: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one unit test run, why, and its numbers (None where pytest wrote no report)."""

    verdict: Verdict
    reason: str
    exit_status: int
    usage_error: bool = False
    counts: Counts | None = None


def run_pytest(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], junit: Path) -> Outcome:
    """Run pytest with its output on this terminal, and judge it by exit status and JUnit report.

    Ctrl-C goes to pytest, which is then waited for. Raises BlockedError where the program does not exist.
    """
    try:
        process = subprocess.Popen(list(argv), cwd=cwd, env=dict(env))
    except FileNotFoundError as error:
        raise BlockedError(
            f"{error.filename or argv[0]} is not there, so no test was started",
            remedy="install it, or name an interpreter that has pytest: --python PATH",
        ) from error
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return judge(status, counts_of(junit))


def counts_of(junit: Path) -> Counts | None:
    """The counts of a JUnit report, or None where there is none that can be read."""
    try:
        suites = ElementTree.parse(junit).iter("testsuite")  # noqa: S314 - the pytest just run has written it
        total = [
            [int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")] for suite in suites
        ]
    except (OSError, ElementTree.ParseError, ValueError):
        return None
    tests, failed, errors, skipped = (
        (sum(column) for column in zip(*total, strict=True)) if total else (0,) * 4
    )
    return Counts(passed=tests - failed - errors - skipped, failed=failed, errors=errors, skipped=skipped)


def judge(status: int, counts: Counts | None) -> Outcome:
    """The verdict: Pass only where pytest exited 0, wrote its report, and at least one test passed."""
    verdict, reason = _judge(status, counts)
    return Outcome(
        verdict=verdict,
        reason=reason,
        exit_status=status,
        usage_error=status == _PYTEST_USAGE and counts is None,
        counts=counts,
    )


def _judge(status: int, counts: Counts | None) -> tuple[Verdict, str]:
    if status < 0:
        return Verdict.INCOMPLETE, f"killed by {signal.Signals(-status).name}"
    if status == _PYTEST_NONE:
        return Verdict.FAIL, "no test was run, so nothing has passed"
    if counts is not None:
        return _judge_counts(status, counts)
    if status in EXIT_NOT_STARTED:
        return Verdict.BLOCKED, f"the tests were not started (exit status {status})"
    return Verdict.INCOMPLETE, f"exit status {status}, and pytest wrote no report"


def _judge_counts(status: int, counts: Counts) -> tuple[Verdict, str]:
    if counts.failed or counts.errors:
        said = f"{counts.failed} failed, {counts.errors} errors, {counts.passed} passed"
        return Verdict.FAIL, said if status else f"{said}, though pytest exited 0"
    if status == _PYTEST_INTERRUPTED:
        return Verdict.INCOMPLETE, f"interrupted after {counts.passed} passed"
    if status != 0:
        return Verdict.FAIL, f"exit status {status}; {counts.passed} passed"
    if counts.passed == 0:
        return Verdict.SKIPPED, f"all {counts.skipped} tests were skipped, so nothing has passed"
    return Verdict.PASS, f"{counts.passed} passed, {counts.skipped} skipped"


def marks_in(places: Sequence[Path]) -> set[str]:
    """The names of marks in the test files at these places (files, or directories with test files)."""
    found: set[str] = set()
    for place in places:
        files = sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
        for file in files:
            try:
                found |= set(_MARK.findall(file.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError):
                continue
    return found
