"""The report's lines on what was under test: the checkouts, the Bridge's own tests, who imported which tree."""

from __future__ import annotations

from collections.abc import Iterable

from proveout.domain.checkout import Checkout
from proveout.domain.claims import claim
from proveout.domain.evidence import StepResult
from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.report import Deliverable
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict, worst

BRIDGE_TESTS = "bridge-tests"
CHECKS_LINE = "Bridge-side checks"
_ROLE_NAMES = {"bridge": "Bridge", "mcore": "Megatron-Core", "nemo-rl": "NeMo-RL", "verl": "verl"}
_MODULE = "megatron.bridge"
_PROVENANCE = "judge.provenance."
_UNSEEN = f"{_PROVENANCE}unseen"
_FILES_SHOWN = 12


def bridge_checks(
    checkouts: Iterable[Checkout], steps: dict[str, Step], results: Iterable[StepResult]
) -> Deliverable:
    """The line on the Bridge's own tests."""
    if not any(checkout.role == "bridge" for checkout in checkouts):
        reason = "no Bridge checkout was given (--bridge or BRIDGE_REPO)"
        return Deliverable(name=CHECKS_LINE, verdict=Verdict.NOT_REQUESTED, detail=reason)
    own = [result for result in results if result.coverage.variant == BRIDGE_TESTS]
    if not own:
        reason = "the checkout holds none of the Bridge's tests for this change"
        return Deliverable(name=CHECKS_LINE, verdict=Verdict.SKIPPED, detail=reason)
    detail = "; ".join(claim(steps[result.id], result) for result in own)
    return Deliverable(name=CHECKS_LINE, verdict=worst(result.verdict for result in own), detail=detail)


def local_import(  # noqa: PLR0917 - what a run knows of imports
    loop: str,
    name: str,
    checkouts: Iterable[Checkout],
    results: Iterable[StepResult],
    preflight: Iterable[Finding],
    run_directory: str,
) -> Deliverable:
    """The line on the tree that the loop's workers imported: Pass only where a step's evidence shows it."""
    line = f"Local Bridge import in {name}"
    if not any(checkout.role == "bridge" for checkout in checkouts):
        reason = "no Bridge checkout was given (--bridge or BRIDGE_REPO)"
        return Deliverable(name=line, verdict=Verdict.NOT_REQUESTED, detail=reason)
    attempts = [
        attempt
        for result in results
        if result.coverage.loop == loop and result.coverage.variant != BRIDGE_TESTS
        for attempt in result.attempts[-1:]
    ]
    training = [
        attempt for attempt in attempts if any(f.id.startswith(_PROVENANCE) for f in attempt.findings)
    ]
    wrong = [
        f for attempt in attempts for f in attempt.findings if f.id.startswith(_PROVENANCE) and f.decides
    ]
    stopped_early = all(attempt.verdict is Verdict.BLOCKED for attempt in training)
    if wrong and stopped_early and all(f.id == _UNSEEN for f in wrong):
        reason = "the environment stopped the run before a worker showed what it imports"
        return Deliverable(name=line, verdict=Verdict.BLOCKED, detail=reason)
    if wrong:
        return Deliverable(name=line, verdict=Verdict.FAIL, detail=wrong[0].what)
    for attempt in attempts:
        for cited in attempt.held:
            if cited.what.startswith(f"{_MODULE} in the ") and cited.text.startswith(
                f"{_MODULE} imported from "
            ):
                path = cited.text.removeprefix(f"{_MODULE} imported from ")
                where = f" ({str(cited.where).removeprefix(run_directory + '/')})" if str(cited.where) else ""
                return Deliverable(name=line, verdict=Verdict.PASS, detail=f"{path}{where}")
    stopped = [f for f in preflight if f.decides and f.where.key == _MODULE]
    if stopped:
        return Deliverable(name=line, verdict=Verdict.BLOCKED, detail=stopped[0].what)
    reason = (
        "no run that would show it was started" if not attempts else "no run showed which tree it imported"
    )
    return Deliverable(name=line, verdict=Verdict.SKIPPED, detail=reason)


def repositories(checkouts: Iterable[Checkout]) -> Iterable[Citation]:
    """Each checkout with its commit and what differs from it; the Bridge first, also where there is none."""
    found = {checkout.role: checkout for checkout in checkouts}
    if "bridge" not in found:
        yield Citation(what="Bridge repo", text="none under test")
    for role, checkout in found.items():
        yield Citation(
            what=f"{_ROLE_NAMES.get(role, role)} repo", where=Where(file=checkout.path), text=_state(checkout)
        )


def _state(checkout: Checkout) -> str:
    commit = checkout.commit[:9] or "no git commit"
    changed = (*checkout.dirty, *(f"{name} (new)" for name in checkout.untracked))
    if not changed:
        return f"{commit}, no dirty files"
    more = f" and {len(changed) - _FILES_SHOWN} more" if len(changed) > _FILES_SHOWN else ""
    return f"{commit} plus dirty files: {', '.join(changed[:_FILES_SHOWN])}{more}"
