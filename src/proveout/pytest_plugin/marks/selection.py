"""The pytest plugin of a project that declares marks."""

from __future__ import annotations

import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from proveout.pytest_plugin.marks.choose import Choice, named_by, names_in
from proveout.pytest_plugin.marks.declared import Mark

_SHARED = "proveout_marks_given"
_LEFT_OUT = "proveout_marks_left_out"


class ExclusiveMarksWarning(pytest.PytestWarning):
    """A test carries marks that exclude each other."""


class MarkSelection:
    """Leaves out what the given flags leave out, and says how many tests that were and how to get them."""

    def __init__(self, config: pytest.Config, choice: Choice) -> None:
        self._config, self._choice = config, choice
        self._left_out: Counter[str] = Counter()
        needing = [mark for mark in choice.marks if mark.needs]
        self._missing = {mark.name: mark for mark in needing if not _importable(mark.needs)}

    @classmethod
    def of(cls, config: pytest.Config, marks: tuple[Mark, ...]) -> MarkSelection:
        """Set up for this session. Raises pytest.UsageError for flags that cannot be followed."""
        for mark in marks:
            config.addinivalue_line("markers", f"{mark.name}: {mark.about}".rstrip(": "))
        given = getattr(config, "workerinput", {}).get(_SHARED)
        if given is None:
            given = [mark.name for mark in marks if mark.flag and config.getoption(mark.dest, False)]
        mentioned = names_in(config.option.markexpr or "")
        this = cls(config, Choice(marks=marks, given=frozenset(given), mentioned=mentioned))
        this._refuse_what_cannot_be_followed()
        return this

    def _refuse_what_cannot_be_followed(self) -> None:
        only = self._choice.only
        if len(only) > 1:
            flags = " and ".join(mark.only for mark in only)
            raise pytest.UsageError(f"{flags} exclude each other: give one of them a session")
        for mark in only:
            if mark.name in self._missing:
                raise pytest.UsageError(f"{mark.only}: {_explain(mark)}")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        arguments = [self._parts(argument) for argument in self._config.args]
        kept: list[tuple[bool, int, pytest.Item]] = []
        left_out = []
        for item in items:
            carried = {mark.name for mark in item.iter_markers()}
            self._report_exclusive(item, carried)
            reason = self._choice.reason_to_leave_out(carried)
            if reason and not any(named_by(_place(item), argument) for argument in arguments):
                self._left_out[reason] += 1
                left_out.append(item)
            else:
                kept.append((not self._choice.comes_first(carried), len(kept), item))
        items[:] = [item for _, _, item in sorted(kept, key=lambda entry: entry[:2])]
        if left_out:
            self._config.hook.pytest_deselected(items=left_out)

    def _parts(self, argument: str) -> list[str]:
        file, *names = argument.partition("[")[0].split("::")
        if names and "[" in argument:
            names[-1] += "[" + argument.partition("[")[2]
        return [os.path.realpath(self._config.invocation_params.dir / file), *names]

    def _report_exclusive(self, item: pytest.Item, carried: set[str]) -> None:
        exclusive = self._choice.exclusive(carried)
        first_worker = getattr(self._config, "workerinput", {}).get("workerid", "gw0") == "gw0"
        if len(exclusive) > 1 and first_worker:
            item.warn(
                ExclusiveMarksWarning(
                    f"{item.nodeid} carries {' and '.join(exclusive)}, which exclude each other: "
                    "no flag selects it; split the test or drop a mark"
                )
            )

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if not self._missing:
            return
        for marker in item.iter_markers():
            if marker.name in self._missing:
                pytest.fail(
                    f"marked {marker.name}, but {_explain(self._missing[marker.name])}", pytrace=False
                )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_SHARED] = sorted(self._choice.given)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get(_LEFT_OUT, {})
        self._left_out |= Counter(told)

    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_LEFT_OUT] = dict(self._left_out)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        nothing_ran = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        for reason, count in self._left_out.most_common():
            line = f"proveout: left out {count}, because they {reason}"
            terminalreporter.write_line(line, yellow=not nothing_ran, red=nothing_ran)
        if nothing_ran:
            terminalreporter.write_line("proveout: no test ran, so nothing has passed", red=True)


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _explain(mark: Mark) -> str:
    return f"its package {mark.needs} is not installed here" + (
        f"; run: {mark.remedy}" if mark.remedy else ""
    )


def _place(item: pytest.Item) -> list[str]:
    names = item.nodeid.partition("::")[2].partition("[")
    *before, last = names[0].split("::")
    return [str(Path(os.path.realpath(item.path))), *before, last + names[1] + names[2]]
