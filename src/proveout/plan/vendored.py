"""NeMo-RL's vendored Bridge against the Bridge under test, file by file."""

from __future__ import annotations

import os
from pathlib import Path

from proveout.domain.checkout import BRIDGE_IN_NEMO_RL, Drift
from proveout.plan.git import shown

_PACKAGE = Path("src/megatron/bridge")
_SKIPPED = {"__pycache__", ".git"}


def compare(bridge: str, nemo_rl: str) -> Drift:
    """Whether the vendored package equals the one under test: same, differs (with the lists) or missing.

    ``only_here`` are files that only the Bridge under test has. Links are compared by their targets.
    """
    vendored = Path(nemo_rl) / BRIDGE_IN_NEMO_RL
    if not (vendored / _PACKAGE).is_dir():
        return Drift(path=str(vendored), state="missing")
    if (vendored / _PACKAGE).resolve() == (Path(bridge) / _PACKAGE).resolve():
        return Drift(path=str(vendored), state="same")
    ours, theirs = _files(Path(bridge) / _PACKAGE), _files(vendored / _PACKAGE)
    differs = tuple(
        sorted(name for name in ours.keys() & theirs.keys() if not _same(ours[name], theirs[name]))
    )
    only_here, only_there = (
        tuple(sorted(ours.keys() - theirs.keys())),
        tuple(sorted(theirs.keys() - ours.keys())),
    )
    state = "differs" if differs or only_here or only_there else "same"
    return Drift(path=str(vendored), state=state, differs=differs, only_here=only_here, only_there=only_there)


def _files(root: Path) -> dict[str, Path]:
    found = {}
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in files:
            path = Path(folder) / name
            if path.suffix != ".pyc":
                found[shown(str(path.relative_to(root)))] = path
    return found


def _same(one: Path, other: Path) -> bool:
    try:
        if one.is_symlink() or other.is_symlink():
            return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
        return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()
    except OSError:
        return False
