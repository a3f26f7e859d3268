"""Runs the checks that apply. A check that fails to check is reported, never skipped in silence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from proveout.domain import redact
from proveout.domain.errors import ProveoutError, UsageError, nearest
from proveout.domain.evidence import ImportRecord
from proveout.domain.finding import Finding
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.catalogue import CATALOGUE
from proveout.preflight.check import Check, warning
from proveout.preflight.records import import_records


class State(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FOUND = "found"
    UNCHECKED = "could not be checked"
    NOT_APPLICABLE = "not applicable"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check, run. ``seconds`` is wall time."""

    id: str
    state: State
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()


def preflight(context: PreflightContext) -> tuple[Finding, ...]:
    """All findings of the checks that apply, in the catalogue's order.

    Raises UsageError for a setting that is not known.
    """
    return tuple(finding for result in examine(context) for finding in result.findings)


def preflight_with_imports(
    context: PreflightContext,
) -> tuple[tuple[Finding, ...], dict[str, tuple[ImportRecord, ...]]]:
    """What ``preflight`` gives, and by loop from where its workers import Megatron; nobody is asked twice."""
    limits.validate(context)
    fresh = msgspec.structs.replace(context, memo={})
    results = [_one(check, fresh, lambda check: None) for check in CATALOGUE.values()]
    return tuple(finding for result in results for finding in result.findings), import_records(fresh)


def examine(
    context: PreflightContext,
    only: Iterable[str] = (),
    progress: Callable[[Check], None] = lambda check: None,
) -> tuple[CheckResult, ...]:
    """The result of each check of the catalogue, or of those in ``only``; ``progress`` hears each one begin.

    Raises UsageError for a check or a setting that is not known.
    """
    limits.validate(context)
    fresh = msgspec.structs.replace(context, memo={})
    return tuple(_one(check, fresh, progress) for check in _selected(tuple(only)))


def _selected(only: tuple[str, ...]) -> tuple[Check, ...]:
    for name in only:
        if name not in CATALOGUE:
            raise UsageError(
                f"no check {name!r}{nearest(name, CATALOGUE)}", remedy="see 'proveout doctor --list'"
            )
    return tuple(check for check in CATALOGUE.values() if not only or check.id in only)


def _one(check: Check, context: PreflightContext, progress: Callable[[Check], None]) -> CheckResult:
    begun = time.perf_counter()
    state, findings = State.NOT_APPLICABLE, tuple[Finding, ...]()
    try:
        if check.applies(context):
            progress(check)
            findings = tuple(check.run(context))
            state = State.FOUND if findings else State.PASSED
    except UsageError:
        raise
    except Exception as error:  # a check must not take the run down with it
        state, findings = State.UNCHECKED, (_unchecked(check, error),)
    return CheckResult(
        id=check.id, state=state, seconds=round(time.perf_counter() - begun, 4), findings=findings
    )


def _unchecked(check: Check, error: Exception) -> Finding:
    why = str(error) if isinstance(error, ProveoutError) else f"{type(error).__name__}: {error}"
    return warning(
        f"{check.id}.unchecked",
        redact.text(f"{check.id} could not be checked: {' '.join(why.split())[:500]}"),
        remedy=f"what it would have proved: {check.proves}",
    )
