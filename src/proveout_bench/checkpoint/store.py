"""Writes and reads checkpoints: one file a part, a manifest with their digests, a tracker of the newest step."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from proveout_bench import ranks
from proveout_bench.checkpoint.find import MANIFEST, TRACKER, read_manifest, step_folder
from proveout_bench.errors import ConfigError, EnvironmentFaultError


class Stateful(Protocol):
    """Something of a run that must be saved for the run to go on bit for bit."""

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain data."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Take the state over."""
        ...


@runtime_checkable
class FolderPart(Protocol):
    """A part that all ranks write and read together, each its share, in a directory of its own."""

    def save_to(self, folder: Path) -> None:
        """Write into ``folder``, which is there and empty."""
        ...

    def load_from(self, folder: Path, leave_out: str = "") -> None:
        """Take over what was written, but for the named part of it."""
        ...


Part = Stateful | FolderPart


def save(root: Path, step: int, parts: Mapping[str, Part], identity: Mapping[str, Any], keep: int) -> Path:
    """The directory of the new checkpoint, which appears whole or not at all; then the tracker names it.

    ``identity`` is what a run must share with this one to go on from it. OSError where it cannot be written.
    """
    target = step_folder(root, step)
    draft = root / ranks.shared(f".{target.name}.{os.getpid()}")
    if ranks.first():
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
    _save_folders(draft, parts)
    states = {
        name: part if isinstance(part, FolderPart) else part.state_dict() for name, part in parts.items()
    }
    if ranks.first():
        _finish(root, step, draft, states, identity)
        _forget_old(root, keep)
    ranks.barrier()
    return target


def _save_folders(draft: Path, parts: Mapping[str, Part]) -> None:
    for name, part in parts.items():
        if isinstance(part, FolderPart):
            if ranks.first():
                (draft / name).mkdir()
            ranks.barrier()
            part.save_to(draft / name)
            ranks.barrier()


def _finish(
    root: Path,
    step: int,
    draft: Path,
    states: Mapping[str, FolderPart | dict[str, Any]],
    identity: Mapping[str, Any],
) -> None:
    target = step_folder(root, step)
    digests: dict[str, str] = {}
    for name, part in states.items():
        if isinstance(part, FolderPart):
            digests |= {
                str(file.relative_to(draft)): _digest(file)
                for file in sorted((draft / name).rglob("*"))
                if file.is_file()
            }
            continue
        file = draft / f"{name}.pt"
        try:
            torch.save(part, file)
        except RuntimeError as error:
            raise EnvironmentFaultError(f"cannot write {file}: {error}") from error
        digests[file.name] = _digest(file)
        _sync(file)
    manifest = {"step": step, "identity": dict(identity), "files": digests}
    _write(draft / MANIFEST, json.dumps(manifest, indent=2))
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    _write(root / f".{TRACKER}", f"{step}\n")
    (root / f".{TRACKER}").replace(root / TRACKER)
    _sync(root)


def restore(folder: Path, parts: Mapping[str, Part], identity: Mapping[str, Any], leave_out: str = "") -> int:
    """Load every part but ``leave_out``; the step that the checkpoint was saved after.

    Raises ConfigError where the checkpoint is of another kind of run, lacks a part or holds a damaged one;
    nothing is loaded then.
    """
    manifest = read_manifest(folder)
    saved = manifest.get("identity", {})
    for key, value in identity.items():
        if saved.get(key) != value:
            raise ConfigError(
                f"{folder}: was saved with {key}={saved.get(key)}, this run has {key}={value}; a run can only go "
                "on as what it was"
            )
    files, loaded = manifest["files"], {}
    for name, part in parts.items():
        if isinstance(part, FolderPart):
            _check_folder(folder, name, files)
        else:
            loaded[name] = _read(folder / f"{name}.pt", files)
    for name, part in parts.items():
        if isinstance(part, FolderPart):
            part.load_from(folder / name, leave_out)
        elif name != leave_out:
            part.load_state_dict(loaded[name])
    return int(manifest["step"])


def _check_folder(folder: Path, name: str, digests: Mapping[str, str]) -> None:
    files = [file for file in digests if file.startswith(f"{name}/")]
    if not files:
        raise ConfigError(
            f"{folder / name}: this part of the checkpoint is missing; resume from another checkpoint"
        )
    for file in files:
        _check_file(folder / file, digests[file])


def _read(file: Path, digests: Mapping[str, str]) -> dict[str, Any]:
    if file.name not in digests or not file.is_file():
        raise ConfigError(f"{file}: this part of the checkpoint is missing; resume from another checkpoint")
    _check_file(file, digests[file.name])
    return dict(torch.load(file, map_location="cpu", weights_only=True))


def _check_file(file: Path, digest: str) -> None:
    if not file.is_file():
        raise ConfigError(f"{file}: this part of the checkpoint is missing; resume from another checkpoint")
    if _digest(file) != digest:
        raise ConfigError(
            f"{file}: is not what was saved (its digest differs); resume from another checkpoint"
        )


def _forget_old(root: Path, keep: int) -> None:
    folders = {int(found.name[5:]): found for found in root.glob("step_*") if found.name[5:].isdecimal()}
    for step in sorted(folders)[:-keep] if keep else ():
        shutil.rmtree(folders[step])


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    _sync(file)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
