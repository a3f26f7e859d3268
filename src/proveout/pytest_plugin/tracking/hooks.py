"""The hooks and the fixture by which pytest drives the tracker."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from proveout.pytest_plugin.tracking.fixture import ELAPSED, Tracker
from proveout.pytest_plugin.tracking.layout import ResultsLayout, default_latest
from proveout.pytest_plugin.tracking.recorder import MAIN, Recorder, SessionFacts
from proveout.pytest_plugin.tracking.records import NOT_COLLECTED

_RECORDER = pytest.StashKey[Recorder]()
_SHARED = "proveout_results"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("proveout").addoption(
        "--proveout-results",
        metavar="FILE",
        default=None,
        help="write outcomes and tracked metrics of this session to FILE, and a dated copy beside it, "
        "whether or not a test uses the tracker",
    )
    parser.addini(
        "proveout_results",
        "the same for every session, relative to the root directory "
        "(default: tests/unit/unit_results.json, written only when a test uses the tracker)",
        default="",
    )


def pytest_configure(config: pytest.Config) -> None:
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:
        asked, latest = _results_file(config)
        recorder = Recorder(SessionFacts(root=config.rootpath, layout=ResultsLayout(latest)))
    elif _SHARED not in worker:
        return
    else:
        asked = worker[_SHARED]["asked"]
        facts = SessionFacts.of_worker(config.rootpath, worker[_SHARED])
        recorder = Recorder(facts, str(worker["workerid"]))
    config.stash[_RECORDER] = recorder
    config.pluginmanager.register(_Seen(recorder), "proveout-tracking-seen")
    if asked and not config.option.collectonly:
        recorder.activate()
    if worker is None and config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_OverWorkers(recorder, asked), "proveout-tracking-workers")


def _results_file(config: pytest.Config) -> tuple[bool, Path]:
    if given := config.getoption("--proveout-results"):
        return True, config.invocation_params.dir / given
    if configured := str(config.getini("proveout_results")):
        return True, config.rootpath / configured
    return False, default_latest(config.rootpath)


@pytest.fixture
def tracker(request: pytest.FixtureRequest) -> Iterator[Tracker]:
    """Tracks metrics of this test: ``track(name, value)``, ``get_max_mem()``, ``log_max_mem(name)``.

    The seconds between the fixture's setup and teardown are tracked as ``_elapsed``.
    """
    recorder = request.config.stash[_RECORDER]
    recorder.activate()
    node_id = request.node.nodeid
    key = f"{request.module.__name__}::{getattr(request.function, '__name__', request.node.name)}"
    recorder.records.track(node_id, key, {})
    start = time.perf_counter()
    yield Tracker(recorder, node_id, key)
    recorder.track(node_id, key, ELAPSED, time.perf_counter() - start)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (recorder := config.stash.get(_RECORDER, None)) is not None:
        recorder.records.collected(item.nodeid for item in items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    recorder = item.config.stash.get(_RECORDER, None)
    if recorder is not None and recorder.active and recorder.process != MAIN and call.when == "teardown":
        record = recorder.records.of(item.nodeid)
        if record.key:
            report.proveout_tracked = {"key": record.key, "metrics": record.metrics}  # type: ignore[attr-defined]
    return report


class _Seen:
    """Registered at configure time, because the hook for reports is not told the configuration."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._recorder.see(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._recorder.records.of(report.nodeid).outcome = NOT_COLLECTED


class _OverWorkers:
    """The controller of an xdist session: tells workers of the session, and learns from them."""

    def __init__(self, recorder: Recorder, asked: bool) -> None:
        self._recorder, self._asked = recorder, asked

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_SHARED] = {**self._recorder.facts.shared(), "asked": self._asked}
        self._recorder.workers.add(str(node.workerinput["workerid"]))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._recorder.records.collected(ids)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    result = yield
    recorder = session.config.stash.get(_RECORDER, None)
    if recorder is None:
        return result
    if recorder.process != MAIN:
        recorder.close()
        return result
    if recorder.active or recorder.left_by_workers():
        from proveout.pytest_plugin.tracking.finish import finish

        said = finish(recorder, int(session.exitstatus), session.config)
        reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(said)
    return result
