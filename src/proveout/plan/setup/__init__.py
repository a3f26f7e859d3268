"""The first files of a checkout: ``proveout.toml`` and a CI workflow, from what can be found out here.

Paths of other trees belong to one machine, and a settings file that names a tree that is not there is an error:
they are written as comments.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from proveout.domain.checkout import ROLES
from proveout.domain.errors import UsageError, nearest
from proveout.domain.files import write_atomic
from proveout.plan.checkouts import LANDMARKS
from proveout.plan.git import git
from proveout.plan.settings import FILE

CI_FILES = {"github": ".github/workflows/proveout.yml", "gitlab": ".gitlab/proveout.yml"}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What is here: the role of this tree, where the other trees are and why they are believed to be, the CI.

    ``unsure`` holds roles for which several trees were found.
    """

    role: str
    checkouts: dict[str, tuple[str, str]]
    unsure: dict[str, tuple[str, ...]]
    ci: tuple[str, ...]


def look(folder: Path, environment: Mapping[str, str]) -> Found:
    """What ``folder`` is. Raises UsageError where it is no checkout of a known role."""
    role = _role(folder)
    if role is None:
        marks = ", ".join(f"{mark} ({name})" for name, mark in LANDMARKS.items())
        raise UsageError(
            "is no checkout that is known",
            where=str(folder),
            remedy=f"go to the root of a tree with one of {marks}",
        )
    checkouts = {role: (".", "this tree")}
    unsure: dict[str, tuple[str, ...]] = {}
    beside = _beside(folder)
    for other, variable in ROLES.items():
        if other in checkouts:
            continue
        named = environment.get(variable, "")
        near = beside.get(other, [])
        if named and _role(Path(named)) == other:
            checkouts[other] = (named, f"from {variable}")
        elif len(near) == 1:
            checkouts[other] = (os.path.relpath(near[0], folder), "found beside this tree")
        elif near:
            unsure[other] = tuple(os.path.relpath(each, folder) for each in near)
    return Found(role=role, checkouts=checkouts, unsure=unsure, ci=_ci(folder))


def contents(found: Found, ci: tuple[str, ...]) -> dict[str, str]:
    """File name -> content. Raises UsageError for a CI that is not known."""
    for name in ci:
        if name not in CI_FILES:
            raise UsageError(f"no CI {name!r}{nearest(name, CI_FILES)}", where="--ci")
    here = files(__package__)
    return {FILE: _settings(found)} | {
        CI_FILES[name]: (here / f"{name}.yml").read_text(encoding="utf-8") for name in ci
    }


def write(folder: Path, wanted: Mapping[str, str], *, force: bool) -> dict[str, str]:
    """Write the files; gives ``written``, ``replaced`` or ``unchanged`` for each.

    Raises UsageError, before anything is written, where one is there with other content and ``force`` is not set.
    """
    states = {name: _state(folder / name, content) for name, content in wanted.items()}
    others = [name for name, state in states.items() if state == "replaced"]
    if others and not force:
        raise UsageError(
            f"{', '.join(others)} {'is' if len(others) == 1 else 'are'} there already; nothing was written",
            where=str(folder),
            remedy="--dry-run shows what would be written, --force replaces",
        )
    for name, content in wanted.items():
        if states[name] != "unchanged":
            try:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                write_atomic(folder / name, content)
            except OSError as error:
                raise UsageError(f"cannot be written: {error.strerror}", where=str(folder / name)) from None
    return states


def _state(path: Path, content: str) -> str:
    if not path.exists():
        return "written"
    return "unchanged" if path.read_bytes() == content.encode() else "replaced"


def _role(folder: Path) -> str | None:
    """The role whose landmark is in ``folder``; the Bridge's before Megatron-Core's, which it may hold too."""
    return next((role for role, mark in LANDMARKS.items() if (folder / mark).is_dir()), None)


def _beside(folder: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    try:
        neighbours = sorted(entry for entry in folder.parent.iterdir() if entry.is_dir() and entry != folder)
    except OSError:
        return {}
    for entry in neighbours:
        role = _role(entry)
        if role is not None:
            found.setdefault(role, []).append(entry)
    return found


def _ci(folder: Path) -> tuple[str, ...]:
    if (folder / ".gitlab-ci.yml").exists():
        return ("gitlab",)
    if (folder / ".github").is_dir():
        return ("github",)
    try:
        remotes = git(folder, "remote", "--verbose").decode(errors="replace")
    except UsageError:
        remotes = ""
    return ("gitlab",) if "gitlab" in remotes else ("github",)


def _settings(found: Found) -> str:
    lines = []
    for role, variable in ROLES.items():
        if role in found.checkouts:
            path, why = found.checkouts[role]
            hidden = "" if role == found.role else "# "
            lines.append(f"{hidden}{role} = {json.dumps(path)}  # {why}")
        elif role in found.unsure:
            lines += [f"# {role} = {json.dumps(path)}  # one of several found" for path in found.unsure[role]]
        else:
            lines.append(f'# {role} = "PATH"  # or {variable}')
    template = (files(__package__) / "settings.toml").read_text(encoding="utf-8")
    return template.replace("{checkouts}", "\n".join(lines))
