"""Run directories: made whole or not at all, found by name or prefix, held by one process at a time."""

from __future__ import annotations

import fcntl
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proveout.domain.checkout import Checkout
from proveout.domain.errors import BlockedError, UsageError, nearest
from proveout.domain.evidence import AttemptResult, ImportRecord
from proveout.domain.files import read_json, write_json
from proveout.domain.finding import Finding
from proveout.domain.layout import RUNS_DIR, STATE_DIR, AttemptLayout, RunLayout
from proveout.domain.step import Plan
from proveout.store.journal import Journal

_STALE_TEMPORARY_SECONDS = 3600.0


class Run:
    """One run directory and what its files say."""

    def __init__(self, layout: RunLayout) -> None:
        self.layout = layout
        self.journal = Journal(layout.journal)

    @property
    def plan(self) -> Plan:
        """The plan. Raises UsageError where plan.json is damaged."""
        return read_json(self.layout.plan, Plan)

    def checkouts(self) -> tuple[Checkout, ...]:
        """The checkouts under test, as they were when the run was planned."""
        if not self.layout.checkouts.exists():
            return ()
        return read_json(self.layout.checkouts, tuple[Checkout, ...])

    def preflight_findings(self) -> tuple[Finding, ...]:
        """What preflight found; empty where it did not run."""
        if not self.layout.preflight.exists():
            return ()
        return read_json(self.layout.preflight, tuple[Finding, ...])

    def imports(self) -> dict[str, tuple[ImportRecord, ...]]:
        """From where each loop's workers would import, as they said before the run; by loop."""
        if not self.layout.imports.exists():
            return {}
        return read_json(self.layout.imports, dict[str, tuple[ImportRecord, ...]])

    def launch_site(self) -> dict[str, Any] | None:
        """How the run's attempts are started (a ``[launch]`` table); None where it was not recorded."""
        if not self.layout.launch.exists():
            return None
        return read_json(self.layout.launch, dict[str, Any])

    @property
    def finished(self) -> bool:
        """Whether the run went through all its steps."""
        return any(event["event"] == "run_finished" for event in self.journal.read())

    def attempts(self) -> list[tuple[int, str, AttemptLayout]]:
        """Attempts as (number, step id, files), oldest first, as the journal has them."""
        found = []
        for event in self.journal.read():
            if event["event"] == "attempt_started":
                root = self.layout.attempts / str(event["directory"])
                found.append((int(event["number"]), str(event["step"]), AttemptLayout(root)))
        return found

    def results(self) -> dict[str, list[AttemptResult]]:
        """Judged attempts by step id, oldest first; one whose result is damaged counts as not judged."""
        judged: dict[str, list[AttemptResult]] = {}
        for _, step_id, files in self.attempts():
            if files.result.exists():
                try:
                    result = read_json(files.result, AttemptResult)
                except UsageError:
                    continue
                judged.setdefault(step_id, []).append(result)
        return judged

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run for this process. Raises BlockedError where another process drives it."""
        with self.layout.lock.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BlockedError(
                    "another proveout drives this run", where=self.layout.id, remedy="wait for it, or stop it"
                ) from error
            yield

    @property
    def active(self) -> bool:
        """Whether a process holds this run now."""
        try:
            with self.held():
                return False
        except BlockedError:
            return True


def runs_root(state_dir: Path | None) -> Path:
    """Where runs live: under ``state_dir``, or under .proveout of the current directory."""
    return (state_dir or Path(STATE_DIR)).absolute() / RUNS_DIR


def create(root: Path, plan: Plan) -> Run:
    """A new run directory with its plan, renamed into place only when whole.

    Raises:
        BlockedError: the directory cannot be written (read-only, no space).
    """
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    temporary = root / f".new-{name}"
    try:
        temporary.mkdir(parents=True)
        _remove_stale(root)
        layout = RunLayout(temporary)
        layout.attempts.mkdir()
        write_json(layout.plan, plan)
        Journal(layout.journal).append("run_created", id=name)
        temporary.rename(root / name)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise BlockedError(
            f"no run directory can be made: {error.strerror or error}",
            where=str(root),
            remedy="free space there or give a writable directory with --state-dir",
        ) from error
    return Run(RunLayout(root / name))


def find(root: Path, name: str) -> Run:
    """The run of this directory, identifier, unique prefix or ``latest``; UsageError where none is."""
    as_path = Path(name)
    if (as_path / RunLayout(as_path).plan.name).is_file():
        return Run(RunLayout(as_path.absolute()))
    known = identifiers(root)
    if name == "latest" and known:
        return Run(RunLayout(root / known[-1]))
    matches = [candidate for candidate in known if candidate.startswith(name)]
    if name in known or len(matches) == 1:
        return Run(RunLayout(root / (name if name in known else matches[0])))
    if len(matches) > 1:
        raise UsageError(f"{name!r} fits {len(matches)} runs: {', '.join(matches[:5])}")
    raise UsageError(
        f"no run {name!r}{nearest(name, known)}",
        where=str(root),
        remedy="'proveout runs' lists what there is",
    )


def identifiers(root: Path) -> list[str]:
    """Identifiers of all whole runs, oldest first."""
    if not root.is_dir():
        return []
    return sorted(
        entry.name for entry in root.iterdir() if RunLayout(entry).plan.is_file() and entry.name[0] != "."
    )


def _remove_stale(root: Path) -> None:
    for leftover in root.glob(".new-*"):
        if time.time() - leftover.stat().st_mtime > _STALE_TEMPORARY_SECONDS:
            shutil.rmtree(leftover, ignore_errors=True)
