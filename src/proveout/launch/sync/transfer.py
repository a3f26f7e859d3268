"""Copies checkouts into a fresh directory of another machine, where every tree's hash has to be the same."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.errors import BlockedError, UsageError
from proveout.launch.sync import manifest
from proveout.launch.sync.local import Repository, State, git, state_of
from proveout.launch.sync.place import Place, start

MARKER = "PROVEOUT-TREE "
HANDED = "refs/proveout/handed"
SHOWN = 5


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """One checkout as it stands on the other machine; ``tree`` is the hash of its files, the same on both sides."""

    role: str
    local: str
    remote: str
    commit: str
    tree: str
    files: int


def sync(checkouts: Mapping[str, str], place: Place) -> tuple[str, tuple[Synced, ...]]:
    """Copy each checkout; the fresh directory, and what stands in it. Nothing that was there is touched.

    Raises:
        UsageError: a checkout cannot be read.
        BlockedError: the other machine cannot be reached or lacks git, rsync or python3, or a tree is not the same
            there. What was copied until then lies in a directory whose name begins with ``.incoming``.
    """
    states = {role: state_of(Path(path)) for role, path in checkouts.items()}
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    incoming, final = place.path(f".incoming-{name}"), place.path(name)
    place.run(["mkdir", "-p", "--", place.directory], ["mkdir", "--", incoming])
    found = [_copy(role, state, place, incoming, final) for role, state in states.items()]
    place.run(["mv", "-T", "--", incoming, final])
    return final, tuple(found)


def _copy(role: str, state: State, place: Place, incoming: str, final: str) -> Synced:
    target = f"{incoming}/{role}"
    place.run(
        ["mkdir", "--", target], *(words for each in state.repositories for words in _empty(each, target))
    )
    for repository in state.repositories:
        if repository.commit:
            _push(repository, place, _at(repository, target))
    _contents(state, place, target)
    commands = [words for each in state.repositories if each.commit for words in _settled(each, target)]
    if commands:
        place.run(*commands)
    _verify(role, state, place, target)
    return Synced(
        role=role,
        local=state.root,
        remote=f"{final}/{role}",
        commit=state.repositories[0].commit if state.repositories else "",
        tree=state.tree,
        files=len(state.lines),
    )


def _at(repository: Repository, target: str) -> str:
    return f"{target}/{repository.path}".rstrip("/")


def _empty(repository: Repository, target: str) -> list[list[str]]:
    """A repository without a commit, which takes those of a shallow clone too."""
    here = _at(repository, target)
    return [
        ["git", "init", "--quiet", here],
        ["git", "-C", here, "config", "receive.shallowUpdate", "true"],
    ]


def _push(repository: Repository, place: Place, target: str) -> None:
    """The repository's commits, and what a merge base is looked for from; no file of the tree yet."""
    here = str(Path(repository.root) / repository.path)
    refs = [
        f"{repository.commit}:{HANDED}",
        *(f"{ref}:{ref}" for ref in repository.refs if _kept(ref, repository)),
    ]
    ssh = {"GIT_SSH_COMMAND": shlex.join(place.ssh), "GIT_SSH_VARIANT": "ssh"}
    words = [
        "-c",
        "push.recurseSubmodules=no",
        "push",
        "--quiet",
        "--no-verify",
        f"{place.host}:{target}",
        *refs,
    ]
    try:
        git(here, *words, env=ssh)
    except UsageError as error:
        raise BlockedError(f"its history could not be copied: {error.what}", where=here) from error


def _settled(repository: Repository, target: str) -> list[list[str]]:
    """HEAD and branch as they are here; the index shows the commit, so that the same files differ from it."""
    git_there = ["git", "-C", _at(repository, target)]
    head = [
        [*git_there, "symbolic-ref", "HEAD", f"refs/heads/{repository.branch}"],
        [*git_there, "update-ref", "HEAD", repository.commit],
    ]
    if not repository.branch:
        head = [[*git_there, "update-ref", "--no-deref", "HEAD", repository.commit]]
    return [*head, [*git_there, "update-ref", "-d", HANDED], [*git_there, "reset", "--quiet", "--mixed"]]


def _kept(ref: str, repository: Repository) -> bool:
    """Whether a ref is handed on: not a symbolic one, and not the branch that HEAD will be."""
    return not ref.endswith("/HEAD") and ref != f"refs/heads/{repository.branch}"


def _contents(state: State, place: Place, target: str) -> None:
    """The files as they are."""
    done = start(
        [
            "rsync",
            "--archive",
            "--no-owner",
            "--no-group",
            "--protect-args",
            "--from0",
            "--files-from=-",
            "--rsh",
            shlex.join(place.ssh),
            "--",
            f"{state.root}/",
            f"{place.host}:{target}/",
        ],
        given=b"\0".join(map(os.fsencode, state.files)),
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
        raise BlockedError(
            f"rsync failed: {said[0]}", where=str(place), remedy="rsync has to be on both machines"
        )


def _verify(role: str, state: State, place: Place, target: str) -> None:
    program = Path(manifest.__file__).read_bytes()
    answer = _answer(place.run(["python3", "-", target], given=program), place)
    there = set(answer["lines"])
    if answer["tree"] == state.tree:
        return
    here = {line.decode("utf-8", "backslashreplace") for line in state.lines}
    wrong = sorted({line.split(" ", 2)[2] for line in here ^ there})
    raise BlockedError(
        f"{role}: {len(wrong)} file(s) are not the same there ({', '.join(wrong[:SHOWN])})",
        where=f"{place.host}:{target}",
        remedy="sync again once nothing writes into the checkout",
    )


def _answer(said: str, place: Place) -> dict[str, Any]:
    for line in reversed(said.splitlines()):
        if line.startswith(MARKER):
            found: dict[str, Any] = json.loads(line.removeprefix(MARKER))
            return found
    raise BlockedError("what it says of the copied tree cannot be read", where=place.host)
