"""The end of a session: join what all its processes left into the results files."""

from __future__ import annotations

import contextlib
import io
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from proveout.pytest_plugin.tracking import journal
from proveout.pytest_plugin.tracking.document import NO_COVERAGE, Head, document
from proveout.pytest_plugin.tracking.layout import ResultsLayout
from proveout.pytest_plugin.tracking.memory import read_memory
from proveout.pytest_plugin.tracking.recorder import Recorder
from proveout.pytest_plugin.tracking.records import Records
from proveout.pytest_plugin.tracking.write import write_results

KILLED = "killed"


def finish(recorder: Recorder, exit_status: int, config: pytest.Config) -> str:
    """Write the results files of an active session, remove its journals; returns the line to be shown.

    A directory that cannot be written is not an error of the tests: the files then go to the system's
    temporary directory, and the line says so.
    """
    facts = recorder.facts
    recorder.activate()
    recorder.close()
    places = [facts.layout, facts.layout.fallback(facts.session)]
    for place in places:
        for path in _journals(place.journals / facts.session):
            recorder.records.replay(journal.read(path))
    content = document(_head(recorder, exit_status, config), recorder.records)
    try:
        said = _write(facts.layout, places[1], facts.stamp, content)
    except OSError as error:
        kept = next((str(place.journals) for place in places if place.journals.is_dir()), "")
        return f"proveout: unit results could not be written: {error}; " + (
            f"what was journaled stays in {kept}" if kept else "they are lost"
        )
    for place in places:
        _remove(place, facts.session)
    return said


def recover(layout: ResultsLayout, but: str = "") -> list[Path]:
    """Make dated results files of sessions whose processes were killed; returns them.

    Sessions that may still run, and the one that ``but`` names, are left alone.
    """
    recovered = []
    directories = sorted(layout.journals.iterdir()) if layout.journals.is_dir() else []
    for directory in (each for each in directories if each.name != but):
        journals = [list(journal.read(path)) for path in _journals(directory)]
        heads = [entries[0] for entries in journals if entries and entries[0].get("kind") == "session"]
        if not heads or any(journal.still_runs(head.get("owner", {})) for head in heads):
            continue
        records = Records()
        for entries in journals:
            records.replay(entries)
        first = heads[0]
        head = Head(
            exit_status=KILLED,
            git_commit=str(first.get("git_commit", "")),
            git_dirty=first.get("git_dirty"),
            start_time=str(first.get("start_time", "")),
            workers=sum(each.get("process") != "main" for each in heads),
            notes=["the session was killed; this is what its processes had journaled"],
        )
        recovered.append(
            write_results(layout, str(first.get("stamp", "recovered")), document(head, records), latest=False)
        )
        _remove(layout, directory.name)
    return recovered


def _head(recorder: Recorder, exit_status: int, config: pytest.Config) -> Head:
    commit, dirty = recorder.git or ("", None)
    memory = read_memory()
    return Head(
        exit_status=exit_status,
        git_commit=commit,
        git_dirty=dirty,
        start_time=recorder.facts.start_time,
        gpu_types=memory.gpu_types,
        coverage=_coverage(config),
        duration=round(time.time() - recorder.facts.started, 3),
        workers=len(recorder.workers),
        memory_source=memory.source,
        notes=memory.notes,
    )


def _coverage(config: pytest.Config) -> float | str:
    """The total that pytest-cov reports, in percent."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    if plugin is None or getattr(plugin, "cov_controller", None) is None:
        return NO_COVERAGE
    total = getattr(plugin, "cov_total", None)
    if total is None:
        try:
            total = plugin.cov_controller.summary(io.StringIO())
        except Exception as error:
            return f"[n/a] coverage gave no total: {error}"
    return float(total)


def _write(layout: ResultsLayout, elsewhere: ResultsLayout, stamp: str, content: dict[str, Any]) -> str:
    counted = f"{len(content['tests'])} tests, {sum(map(len, content['metrics'].values()))} metrics"
    try:
        write_results(layout, stamp, content)
    except OSError as error:
        elsewhere.latest.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_results(elsewhere, stamp, content)
        reason = f"cannot write {layout.latest} ({error.strerror})"
        return f"proveout: {reason}; unit results are in {elsewhere.latest}"
    return f"proveout: unit results in {layout.latest} ({counted})"


def _journals(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{journal.SUFFIX}"))


def _remove(layout: ResultsLayout, session: str) -> None:
    shutil.rmtree(layout.journals / session, ignore_errors=True)
    with contextlib.suppress(OSError):
        layout.journals.rmdir()
        layout.dated.rmdir()
        layout.latest.parent.rmdir() if layout.latest.parent.name.startswith("proveout-results-") else None
