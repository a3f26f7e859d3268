"""One process's part in a session: what it has seen, and the journal that keeps it when the process dies."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from proveout.pytest_plugin.tracking.layout import ResultsLayout
from proveout.pytest_plugin.tracking.records import Records

MAIN = "main"


class SessionFacts:
    """What all processes of a session agree on. ``started`` is in seconds since the epoch."""

    def __init__(self, *, root: Path, layout: ResultsLayout, started: float = 0.0, session: str = "") -> None:
        self.root, self.layout = root, layout
        self.started = started or time.time()
        self.session = session or os.urandom(6).hex()

    @property
    def start_time(self) -> str:
        """The start in local time, as results files have it."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started))

    @property
    def stamp(self) -> str:
        """The name of the dated results file, without its suffix."""
        return time.strftime("%Y%m%d_%H%M%S", time.localtime(self.started))

    def shared(self) -> dict[str, str | float]:
        """What an xdist worker is told, so that it takes part in this session."""
        return {"latest": str(self.layout.latest), "started": self.started, "session": self.session}

    @classmethod
    def of_worker(cls, root: Path, shared: dict[str, Any]) -> SessionFacts:
        """The same session as ``shared()`` tells of, in a worker."""
        return cls(
            root=root,
            layout=ResultsLayout(Path(shared["latest"])),
            started=float(shared["started"]),
            session=str(shared["session"]),
        )


class Recorder:
    """Takes outcomes always, in memory; writes nothing until the tracker is used or results are asked for."""

    def __init__(self, facts: SessionFacts, process: str = MAIN) -> None:
        self.facts, self.process = facts, process
        self.records = Records()
        self.workers: set[str] = set()
        self.active = False
        self.git: tuple[str, bool | None] | None = None
        self._journal: Any = None

    def activate(self) -> None:
        """From here on, journal everything; what was seen before is journaled first."""
        if self.active:
            return
        from proveout.pytest_plugin.tracking.git import commit_and_dirty

        self.active = True
        self.git = commit_and_dirty(self.facts.root)
        self._journal = self._open_journal()
        for node_id, record in self.records.tests.items():
            self._write(kind="outcome", test=node_id, outcome=record.outcome, duration=record.duration)
        if self.process == MAIN:
            self._clear_the_way()

    def _clear_the_way(self) -> None:
        """Recover sessions that were killed; remove the last session's file, lest it be read as ours."""
        from proveout.pytest_plugin.tracking.finish import recover

        with contextlib.suppress(OSError):
            recover(self.facts.layout, but=self.facts.session)
            self.facts.layout.latest.unlink(missing_ok=True)

    def left_by_workers(self) -> bool:
        """Whether a worker that died before it could report has left a journal."""
        places = (self.facts.layout, self.facts.layout.fallback(self.facts.session))
        return any((place.journals / self.facts.session).is_dir() for place in places)

    def track(self, node_id: str, key: str, name: str, value: object) -> None:
        """Record a metric of a test. Raises NotSerialisableError, in the test, for what JSON cannot hold."""
        from proveout.pytest_plugin.tracking.values import plain

        __tracebackhide__ = True
        kept = plain(name, value)
        self.activate()
        self.records.track(node_id, key, {name: kept})
        self._write(kind="metric", test=node_id, key=key, name=name, value=kept)

    def see(self, report: pytest.TestReport) -> None:
        """Take a phase of a test into account, with the metrics that a worker sent along."""
        record = self.records.of(report.nodeid)
        record.add_phase(report)
        sent = getattr(report, "proveout_tracked", None)
        if sent and self.process == MAIN:
            self.activate()
            self.records.track(report.nodeid, sent["key"], sent["metrics"])
        if report.when == "teardown" and self.active:
            self._write(kind="outcome", test=report.nodeid, outcome=record.outcome, duration=record.duration)

    def _open_journal(self) -> Any:
        from proveout.pytest_plugin.tracking.journal import Journal

        commit, dirty = self.git or ("", None)
        about = {
            "start_time": self.facts.start_time,
            "stamp": self.facts.stamp,
            "git_commit": commit,
            "git_dirty": dirty,
            "process": self.process,
        }
        for layout in (self.facts.layout, self.facts.layout.fallback(self.facts.session)):
            try:
                return Journal(layout.journals / self.facts.session, f"{self.process}-{os.getpid()}", about)
            except OSError:
                continue
        return None

    def _write(self, /, **record: Any) -> None:
        if self._journal is not None:
            try:
                self._journal.write(**record)
            except OSError:
                self._journal = None

    def close(self) -> None:
        """Close the journal; its file stays."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
