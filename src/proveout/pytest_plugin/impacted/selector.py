"""The plugin object of a session that selects: leaves tests out, watches outcomes, saves them at the end."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proveout.pytest_plugin.impacted import testmon
from proveout.pytest_plugin.impacted.analysis import Analysis, forget
from proveout.pytest_plugin.impacted.session import Brief, Outcomes, Seen, brief_for, record
from proveout.pytest_plugin.impacted.tree import find_root

_NAME = "proveout-impacted"


def rebuild(start: Path) -> None:
    """Forget everything that is kept for the tree that holds ``start``."""
    forget(find_root(start)[0])


def in_controller(config: pytest.Config) -> Selector:
    """The selector of a session that runs alone or hands tests to workers."""
    combined = testmon.selecting(config)
    analysis, brief = brief_for(
        Path(config.rootpath), config.getoption("proveout_impacted_base", None), with_coverage=combined
    )
    return Selector(config, brief, analysis)


def in_worker(config: pytest.Config, text: str) -> Selector:
    """The selector of an xdist worker, from the text that the controller sent."""
    return Selector(config, msgspec.json.decode(text, type=Brief), None)


class Selector:
    """Hooks of one session; ``analysis`` is None in a worker."""

    def __init__(self, config: pytest.Config, brief: Brief, analysis: Analysis | None) -> None:
        self.config, self.brief, self.analysis = config, brief, analysis
        self.root, self.decision = Path(brief.root), brief.decision
        self.seen, self.outcomes = Seen(), Outcomes()
        self.combined = testmon.selecting(config)
        self.saved = True
        self._files: dict[str, str | None] = {}
        self._sees_all = not (config.getoption("lf", False) or config.getoption("override_ini", None))

    def _file(self, path: Path) -> str | None:
        full = path if path.is_absolute() else self.config.invocation_params.dir / path
        for candidate in (full, full.resolve()):
            if candidate.is_relative_to(self.root):
                return candidate.relative_to(self.root).as_posix()
        return None

    def _name(self, nodeid: str) -> str | None:
        """The record's name of a node id, which is relative to the root directory of the session."""
        given, _, rest = nodeid.partition("::")
        if given not in self._files:
            self._files[given] = self._file(Path(self.config.rootpath, given))
        file = self._files[given]
        return None if file is None else f"{file}::{rest}" if rest else file

    def pytest_report_header(self) -> str:
        """One line: what changed and since when."""
        impact = self.decision.impact
        base = self.config.getoption("proveout_impacted_base", None)
        since = f"since {base}" if base else "since each test last passed"
        what = impact.everything or f"{len(impact.changes)} changed files {since}"
        return f"impacted: {what}" + ("; everything runs" if impact.everything else "")

    def pytest_sessionstart(self) -> None:
        """With testmon selecting as well, take back from it the tests that only this analysis can see."""
        if self.combined:
            testmon.take_back(self.config, self._must_run)

    def _must_run(self, nodeid: str) -> bool:
        name = self._name(nodeid)
        return name is None or name.partition("::")[0] in self.brief.beyond

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Do not even import a test file in which every test is settled."""
        if collection_path.suffix != ".py" or self.combined or not collection_path.is_file():
            return None
        file = self._file(collection_path)
        if file is not None and self.decision.skips_file(file, self.brief.known.get(file, ())):
            self.seen.ignored.add(file)
            return True
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Leave settled tests out before other plugins order or drop the rest."""
        kept, left_out = [], []
        for item in items:
            name = self._name(item.nodeid)
            if name is None:
                kept.append(item)
                continue
            self.seen.tests.add(name)
            if self.combined or self.decision.reason(name):
                kept.append(item)
            else:
                left_out.append(item)
                self.seen.left_out.add(name)
        if left_out:
            self.config.hook.pytest_deselected(items=left_out)
            items[:] = kept
        return (yield)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note which files were collected to the end; for a node id pytest reports only failures."""
        name = self._name(report.nodeid) if report.nodeid else None
        if name is None or "::" in name or not (self.root / name).is_file():
            return
        if report.failed:
            self.seen.collected[name] = False
        elif report.passed and self._sees_all:
            self.seen.collected.setdefault(name, True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather outcomes, from this process or from workers."""
        name = self._name(report.nodeid)
        if name is not None:
            expected = hasattr(report, "wasxfail")
            self.outcomes.add(name, report.when or "", report.outcome, expected_failure=expected)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the decision to a worker of xdist, so that all collect the same tests."""
        node.workerinput[_NAME] = msgspec.json.encode(self.brief).decode()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what a worker collected; a worker that crashed sends nothing."""
        text = getattr(node, "workeroutput", {}).get(_NAME)
        if text:
            self.seen.add(msgspec.json.decode(text, type=Seen))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, object, object]:
        """Save outcomes; that nothing needed to run is success."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[_NAME] = msgspec.json.encode(self.seen).decode()
        if self.analysis is not None:
            table, place = self.analysis.table, self.analysis.cache_dir
            self.saved = record(place, table, self.decision, self.seen, self.outcomes)
        result = yield
        left_out = self.seen.left_out or self.seen.ignored
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and left_out:
            session.exitstatus = pytest.ExitCode.OK
        return result

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was left out, and when outcomes could not be saved."""
        ran, left_out, ignored = len(self.outcomes.by_test), len(self.seen.left_out), len(self.seen.ignored)
        known = sum(len(self.brief.known.get(file, ())) for file in self.seen.ignored)
        terminalreporter.write_line(
            f"impacted: {ran} tests ran; {left_out} left out one by one, {ignored} files left out whole"
            + (f" ({known - ignored} tests known in them)" if known > ignored else "")
        )
        if not self.saved and self.analysis is not None:
            terminalreporter.write_line(
                f"impacted: outcomes could not be saved below {self.analysis.cache_dir}: everything runs next time"
            )
