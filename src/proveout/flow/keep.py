"""Keeps what an attempt writes outside its directory, while it runs: wrappers remove or overwrite their own outputs.

A file is linked as soon as it is seen (copied where it cannot be linked), so that it outlives a removal in
the next moment; at the end links become copies, so that a later run that writes in place cannot change them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from proveout.capture.artifacts import look
from proveout.capture.files import below
from proveout.domain.evidence import ArtifactState
from proveout.domain.files import read_json, write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Step
from proveout.flow.locate import located, outside, with_paths

_EVENTS = "events.out.tfevents.*"
_PATIENCE = 20.0


class Keeper:
    """Watches the paths of one step."""

    def __init__(self, step: Step, files: AttemptLayout) -> None:
        self._files = files
        self._step = located(step, files.root)
        self._paths = outside(self._step, files.root)
        self._began = files.command.stat().st_mtime if files.command.exists() else time.time()
        self._next = 0.0
        self._states: dict[str, ArtifactState] = {}

    def look(self) -> None:
        """Keep what is there now. Looks less often where looking takes long."""
        now = time.monotonic()
        if now < self._next:
            return
        self._look()
        self._next = time.monotonic() + _PATIENCE * (time.monotonic() - now)

    def finish(self) -> None:
        """The last look; what was linked becomes a copy."""
        self._look()
        for kept in self._files.kept.rglob("*"):
            if kept.is_file() and kept.stat().st_nlink > 1:
                own = kept.with_name(f".{kept.name}.own")
                shutil.copy2(kept, own)
                own.replace(kept)
        write_json(self._files.seen, tuple(self._states.values()))

    def _look(self) -> None:
        for path in self._paths:
            for found in _files_of(Path(path)):
                with contextlib.suppress(OSError):
                    if found.stat().st_mtime >= self._began - 1.0:
                        _keep(found, kept_path(self._files, found))
        for state in look(self._step.artifacts, self._files.root):
            if state.exists and state.modified >= self._began - 1.0:
                self._states[state.path] = state


def kept_path(files: AttemptLayout, original: Path) -> Path:
    """Where the copy of ``original`` lies."""
    return files.kept / str(original).lstrip("/")


def with_kept(step: Step, files: AttemptLayout) -> Step:
    """The step located in an attempt, its evidence read from the copies that were kept."""

    def change(path: str) -> str:
        kept = kept_path(files, Path(path))
        return str(kept) if path.startswith("/") and kept.exists() else path

    here = located(step, files.root)
    changed = with_paths(here, change)
    return msgspec.structs.replace(changed, artifacts=here.artifacts)


def artifact_states(step: Step, files: AttemptLayout) -> tuple[ArtifactState, ...]:
    """The artifacts as they are, or as they were last seen where they are gone."""
    seen: dict[str, ArtifactState] = {}
    if files.seen.exists():
        seen = {state.path: state for state in read_json(files.seen, tuple[ArtifactState, ...])}
    now = look(step.artifacts, files.root)
    return tuple(state if state.exists else seen.get(state.path, state) for state in now)


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from below(path, _EVENTS)
    elif path.is_file():
        yield path


def _keep(original: Path, copy: Path) -> None:
    if copy.exists():
        if os.path.samestat(copy.stat(), original.stat()):
            return
        if copy.stat().st_mtime_ns == original.stat().st_mtime_ns:
            return
        copy.unlink()
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        copy.hardlink_to(original)
    except OSError:
        shutil.copy2(original, copy)
