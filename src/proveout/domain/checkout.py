"""Source trees with a role, as they were found, and the import path that they make."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

ROLES: dict[str, str] = {
    "bridge": "BRIDGE_REPO",
    "mcore": "MCORE_REPO",
    "nemo-rl": "NEMO_RL_REPO",
    "verl": "VERL_REPO",
}
"""Role -> the environment variable that names its checkout."""

MCORE_IN_BRIDGE = "3rdparty/Megatron-LM"
BRIDGE_IN_NEMO_RL = "3rdparty/Megatron-Bridge-workspace/Megatron-Bridge"


class Submodule(msgspec.Struct, frozen=True, kw_only=True):
    """One submodule: the commit that the checkout pins, and whether its files are there.

    ``state`` is ``initialised``, ``uninitialised``, ``other commit`` or ``dirty``.
    """

    path: str
    pinned: str
    state: str


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """One source tree: ``commit`` '' when it is no git tree; ``branch`` '' when HEAD is detached.

    ``dirty`` are changed tracked files, ``untracked`` new ones; ``diff_hash`` is the SHA-256 of the working
    tree's difference from ``commit``, untracked files included.
    """

    role: str
    path: str
    commit: str = ""
    branch: str = ""
    dirty: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    submodules: tuple[Submodule, ...] = ()
    diff_hash: str = ""
    shallow: bool = False


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """A vendored copy against the tree under test: ``state`` is same, differs or missing."""

    path: str
    state: str
    differs: tuple[str, ...] = ()
    only_here: tuple[str, ...] = ()
    only_there: tuple[str, ...] = ()


def import_roots(checkouts: Mapping[str, str], loop_role: str) -> dict[str, str]:
    """Module -> the directory under which it must be found: the checkouts under test.

    Megatron-Core comes from its own checkout when one is given, else from the Bridge's submodule.
    """
    roots: dict[str, str] = {}
    if bridge := checkouts.get("bridge"):
        roots["megatron.bridge"] = f"{bridge}/src"
    if mcore := checkouts.get("mcore"):
        roots["megatron.core"] = mcore
    elif bridge:
        roots["megatron.core"] = f"{bridge}/{MCORE_IN_BRIDGE}"
    module = {"nemo-rl": "nemo_rl", "verl": "verl"}.get(loop_role)
    if module and loop_role in checkouts:
        roots[module] = checkouts[loop_role]
    return roots


def compose_pythonpath(roots: Mapping[str, str], existing: str = "") -> str:
    """The import path: the trees under test first, then what was there, each once.

    The order is Bridge, Megatron-Core, the loop: the Bridge's ``src`` holds ``megatron/bridge`` alone, so
    it cannot hide the other two. An empty entry (from a leading, trailing or double colon) would put the
    current directory on the path; it is left out.
    """
    entries = [*roots.values(), *existing.split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(entry for entry in entries if entry))
