"""The answer of selection as data and as text, for continuous integration and for people."""

from __future__ import annotations

from pathlib import Path

import msgspec

from proveout.pytest_plugin.impacted.analysis import forget
from proveout.pytest_plugin.impacted.explain import explain
from proveout.pytest_plugin.impacted.session import Brief, brief_for
from proveout.pytest_plugin.impacted.tree import find_root


class Selected(msgspec.Struct, frozen=True):
    """One test file that runs; ``chain`` leads from it to the changed file."""

    test: str
    because: str
    chain: tuple[str, ...] = ()


class Listing(msgspec.Struct, frozen=True):
    """``changed`` maps paths to added, modified or deleted; ``all`` is True when every test file runs."""

    changed: dict[str, str]
    selected: tuple[Selected, ...]
    all: bool
    tests: int
    """How many test files there are."""
    why_all: str = ""


def listing(start: Path, base: str | None = None) -> Listing:
    """The selection for the tree that holds ``start``. Raises UsageError when ``base`` is no commit of it."""
    analysis, brief = brief_for(start, base)
    tests = sorted(test for test in analysis.graph.tests if test in analysis.table)
    impact = brief.decision.impact
    selected = tuple(one for test in tests if (one := _selected(brief, test)))
    return Listing(impact.changes, selected, len(selected) == len(tests), len(tests), impact.everything)


def _selected(brief: Brief, test: str) -> Selected | None:
    decision = brief.decision
    names = [test, *brief.known.get(test, ())]
    reason = next((reason for name in names if (reason := decision.reason(name))), "")
    if not reason:
        return None
    because = decision.impact.files.get(test) or decision.chains.get(test)
    return Selected(test, reason, because.chain if because else ())


def as_json(found: Listing) -> str:
    """The listing as one JSON object."""
    return msgspec.json.format(msgspec.json.encode(found)).decode()


def as_text(found: Listing) -> str:
    """The listing as lines: the test file, then why it runs."""
    lines = [f"{one.test}  {one.because}" for one in found.selected]
    changed = f"{len(found.changed)} changed file{'' if len(found.changed) == 1 else 's'}"
    summary = f"{len(found.selected)} of {found.tests} test files; {changed}"
    return "\n".join([*lines, summary + (f"; {found.why_all}" if found.why_all else "")])


def explanation(start: Path, test: str, base: str | None = None) -> str:
    """Why one test runs or not. Raises UsageError when there is no such test."""
    return explain(start, test, base=base)


def rebuild(start: Path) -> None:
    """Forget everything that is kept for the tree that holds ``start``."""
    forget(find_root(start)[0])
