"""Checkouts by role: where they are, what state they are in, and the patch that their state is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from proveout.domain.checkout import ROLES, Checkout, Submodule
from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding, Severity, Where
from proveout.plan.git import git, names, shown
from proveout.plan.patch import LARGEST_DIRTY, working_patch

LANDMARKS = {
    "bridge": "src/megatron/bridge",
    "mcore": "megatron/core",
    "nemo-rl": "nemo_rl",
    "verl": "verl/trainer",
}


def locate(
    flags: Mapping[str, str | None], environment: Mapping[str, str], settings: Mapping[str, str]
) -> dict[str, str]:
    """Role -> absolute path: from flags, then the environment, then the settings file.

    Raises UsageError for a path that is no directory or holds no tree of that role.
    """
    found: dict[str, str] = {}
    for role, variable in ROLES.items():
        for source, value in (
            (f"--{role}", flags.get(role)),
            (variable, environment.get(variable)),
            (f"proveout.toml: {role}", settings.get(role)),
        ):
            if value:
                found[role] = str(_directory(role, value, source))
                break
    return found


def _directory(role: str, value: str, source: str) -> Path:
    try:
        path = Path(value).expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = "is a loop of symbolic links" if "loop" in str(error).lower() else "does not exist"
        raise UsageError(f"{value} {reason}", where=source) from error
    if not path.is_dir():
        raise UsageError(f"{value} is not a directory", where=source)
    if not (path / LANDMARKS[role]).is_dir() and not (path / "HEAD").is_file():
        raise UsageError(
            f"{value} is no {role} checkout: it has no {LANDMARKS[role]}",
            where=source,
            remedy=f"give the root of a {role} source tree",
        )
    return path


def inspect(role: str, path: str) -> tuple[Checkout, tuple[Finding, ...]]:
    """The state of one checkout, and what about it a reader must know.

    Raises UsageError for a bare repository.
    """
    root = Path(path)
    try:
        facts = (
            git(
                root,
                "rev-parse",
                "--is-bare-repository",
                "--is-shallow-repository",
                "--show-toplevel",
                ok=(0, 128),
            )
            .decode(errors="replace")
            .split("\n")
        )
    except UsageError as error:
        return Checkout(role=role, path=path), (_finding("unreadable", role, path, str(error), error.remedy),)
    if facts[0] == "true":
        raise UsageError(
            "is a bare repository: it has no files to run",
            where=path,
            remedy="give a working tree (git clone or git worktree add)",
        )
    if facts[0] != "false":
        return Checkout(role=role, path=path), (_not_git(role, root),)
    shallow, top = facts[1] == "true", facts[2] if len(facts) > 2 else ""
    findings: list[Finding] = []
    if top and Path(top).resolve() != root.resolve():
        findings.append(
            _finding(
                "inside-other", role, path, f"lies inside another git tree ({top})", "give the root itself"
            )
        )
    state = _status(root)
    submodules = _submodules(root, state.changed_submodules)
    findings += _state_findings(role, path, shallow, state.branch, submodules)
    if state.without_index:
        findings.append(
            _finding(
                "no-index",
                role,
                path,
                "has commits but an empty index (an interrupted checkout), so its changes cannot be told",
                f"git -C {path} reset, or give --whole, --patch or a list of paths",
            )
        )
        return Checkout(
            role=role,
            path=path,
            commit=state.commit,
            branch=state.branch,
            submodules=submodules,
            shallow=shallow,
        ), tuple(findings)
    try:
        changed = bool(state.dirty or state.untracked)
        patch, too_large = working_patch(root, state.commit, state.untracked) if changed else (b"", [])
    except UsageError as error:
        patch, too_large = b"", []
        findings.append(
            _finding(
                "unreadable",
                role,
                path,
                f"its changes cannot be written as a patch: {error.what}",
                "fetch the missing objects (git fetch --refetch)",
            )
        )
    findings += [
        _finding(
            "huge-file",
            role,
            f"{path}/{name}",
            f"{shown(name)} is larger than {LARGEST_DIRTY // 2**20} MiB; the patch names it and leaves "
            "its bytes out",
            "commit it, ignore it, or note it in the report",
        )
        for name in too_large
    ]
    return (
        Checkout(
            role=role,
            path=path,
            commit=state.commit,
            branch=state.branch,
            dirty=tuple(map(shown, state.dirty)),
            untracked=tuple(map(shown, state.untracked)),
            submodules=submodules,
            shallow=shallow,
            diff_hash=hashlib.sha256(patch).hexdigest() if patch else "",
        ),
        tuple(findings),
    )


class _Status:
    def __init__(self) -> None:
        self.commit = self.branch = ""
        self.dirty: list[str] = []
        self.untracked: list[str] = []
        self.changed_submodules: dict[str, str] = {}
        self.without_index = False


def _status(root: Path) -> _Status:
    state = _Status()
    staged: list[str] = []
    records = iter(names(git(root, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")))
    for record in records:
        kind, _, rest = record.partition(" ")
        if record.startswith("# branch.oid "):
            state.commit = "" if record.endswith("(initial)") else record.split(" ", 2)[2]
        elif record.startswith("# branch.head "):
            name = record.split(" ", 2)[2]
            state.branch = "" if name == "(detached)" else name
        elif kind in ("1", "2", "u"):
            staged.append(rest[:1])
            fields = rest.split(" ", {"1": 7, "2": 8, "u": 9}[kind])
            state.dirty.append(fields[-1])
            if fields[1].startswith("S"):
                state.changed_submodules[fields[-1]] = "other commit" if "C" in fields[1] else "dirty"
            if kind == "2":
                next(records, None)
        elif kind == "?":
            state.untracked.append(rest)
    if state.commit and state.dirty and all(code == "D" for code in staged):
        state.without_index = not git(root, "ls-files", "-z")
    return state


def _submodules(root: Path, changed: Mapping[str, str]) -> tuple[Submodule, ...]:
    if not (root / ".gitmodules").is_file():
        return ()
    found = []
    listed = [
        line.partition("=")[2].strip()
        for line in (root / ".gitmodules").read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip().startswith("path")
    ]
    if not listed:
        return ()
    for entry in names(git(root, "ls-files", "--stage", "-z", "--", *listed)):
        fields, _, path = entry.partition("\t")
        if not fields.startswith("160000 "):
            continue
        present = (root / path / ".git").exists()
        state = changed.get(path, "initialised") if present else "uninitialised"
        found.append(Submodule(path=path, pinned=fields.split()[1], state=state))
    return tuple(found)


def _not_git(role: str, root: Path) -> Finding:
    return _finding(
        "not-git",
        role,
        str(root),
        "is not a git tree, so its commit and changes cannot be recorded",
        "give --whole, a list of paths, or --patch, or make it a git tree",
    )


def _state_findings(
    role: str, path: str, shallow: bool, branch: str, submodules: Iterable[Submodule]
) -> list[Finding]:
    found = []
    if shallow:
        found.append(
            _finding(
                "shallow",
                role,
                path,
                "is a shallow clone, so a merge base may be out of reach",
                "give --base REV explicitly, or git fetch --unshallow",
                Severity.NOTICE,
            )
        )
    if not branch:
        found.append(_finding("detached", role, path, "has a detached HEAD", severity=Severity.NOTICE))
    for submodule in submodules:
        if submodule.state != "initialised":
            found.append(
                _finding(
                    "submodule",
                    role,
                    f"{path}/{submodule.path}",
                    f"submodule {submodule.path} is {submodule.state} (pinned {submodule.pinned[:9]})",
                    f"git -C {path} submodule update --init {submodule.path}"
                    if submodule.state == "uninitialised"
                    else "",
                    Severity.NOTICE if submodule.state == "uninitialised" else Severity.WARNING,
                )
            )
    return found


def _finding(  # noqa: PLR0917 - one line for each finding reads best
    kind: str, role: str, where: str, what: str, remedy: str = "", severity: Severity = Severity.WARNING
) -> Finding:
    return Finding(
        id=f"plan.checkout.{kind}",
        severity=severity,
        what=f"{role}: {what}",
        where=Where(file=shown(where)),
        remedy=remedy,
    )
