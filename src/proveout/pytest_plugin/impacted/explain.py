"""Why one test runs or not, as text."""

from __future__ import annotations

from pathlib import Path

from proveout.domain.errors import UsageError, nearest
from proveout.pytest_plugin.impacted.analysis import Analysis
from proveout.pytest_plugin.impacted.selection import Because
from proveout.pytest_plugin.impacted.session import Brief, brief_for


def explain(start: Path, test: str, *, base: str | None = None) -> str:
    """The reason and the import chain of a test: a node id, or a test file, relative to ``start`` or to the root.

    Raises UsageError when no such test file exists.
    """
    analysis, brief = brief_for(start, base)
    name = _known(analysis, start, test)
    file = name.partition("::")[0]
    because = brief.decision.impact.files.get(file) or brief.decision.chains.get(file)
    reason = _reason(brief, name)
    if not reason:
        return f"{name} does not run: it reaches {_count(analysis, file)}, and none of them changed"
    lines = [f"{name} runs: {reason}"]
    if isinstance(because, Because):
        lines += [f"  {link}" for link in because.chain]
    return "\n".join(lines)


def _reason(brief: Brief, name: str) -> str:
    tests = [name] if "::" in name else [name, *brief.known.get(name, ())]
    return next((reason for test in tests if (reason := brief.decision.reason(test))), "")


def _known(analysis: Analysis, start: Path, test: str) -> str:
    given, _, rest = test.partition("::")
    for place in (start, analysis.root):
        full = (place / given).resolve()
        if full.is_relative_to(analysis.root):
            file = full.relative_to(analysis.root).as_posix()
            if file in analysis.graph.tests:
                return f"{file}::{rest}" if rest else file
    raise UsageError(
        f"no test file {given!r}{nearest(given, analysis.graph.tests)}",
        where=str(analysis.root),
        remedy="give a test file or a node id, relative to the root of the repository",
    )


def _count(analysis: Analysis, file: str) -> str:
    number = sum(node in analysis.table for node in analysis.graph.closure(file)) - 1
    return f"{number} other file{'' if number == 1 else 's'}"
