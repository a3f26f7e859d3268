"""What is under test: changed files and their changed lines, from git, a patch file, a list of paths, or
all of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import msgspec

from proveout.domain.checkout import ROLES, Checkout
from proveout.domain.errors import UsageError
from proveout.plan.git import git, names, shown

_LARGEST_PATCH = 64 * 1024 * 1024
_LARGEST_NEW_FILE = 1024 * 1024


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file: ``status`` is added, modified, deleted or renamed; ``lines`` its added and removed
    lines.

    ``lines`` is empty where only the path is known.
    """

    role: str
    path: str
    status: str = "modified"
    lines: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The change under test. ``source`` says where it was taken from, for a reader."""

    files: tuple[ChangedFile, ...]
    source: str
    whole: tuple[str, ...] = ()


def from_git(role: str, checkout: Checkout, base: str | None) -> tuple[str, tuple[ChangedFile, ...]]:
    """What differs between ``base`` (default: the merge base with the default branch) and the working tree.

    Returns the commit compared with, and the files; untracked files count as added. Raises UsageError for a
    revision that does not exist.
    """
    root = Path(checkout.path)
    commit = _base(root, base)
    if commit in ("HEAD", checkout.commit) and not checkout.dirty and not checkout.untracked:
        return commit, ()
    patch = git(
        root,
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "-U0",
        "-M",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        commit,
        "--",
    )
    found = list(parse_patch(role, patch, f"diff of {root}"))
    for name in (
        names(git(root, "ls-files", "--others", "--exclude-standard", "-z")) if checkout.untracked else ()
    ):
        found.append(ChangedFile(role=role, path=shown(name), status="added", lines=_new_lines(root / name)))
    return commit, tuple(found)


def _base(root: Path, base: str | None) -> str:
    if base:
        if base.startswith("-"):
            raise UsageError(f"{base!r} is no revision", where="--base")
        found = git(
            root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}", ok=(0, 1, 128)
        )
        if not found.strip():
            raise UsageError(
                f"no revision {base!r} in {root}",
                where="--base",
                remedy="a shallow clone holds only its newest commits; git fetch the one that is meant",
            )
        return found.decode().strip()
    for branch in (
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
        "refs/heads/main",
        "refs/heads/master",
    ):
        found = git(root, "merge-base", "HEAD", branch, ok=(0, 1, 128)).strip()
        if found:
            return found.decode()
    if not git(root, "rev-parse", "--verify", "--quiet", "HEAD", ok=(0, 1, 128)).strip():
        raise UsageError(
            "has no commit to compare with", where=str(root), remedy="give --whole or a list of paths"
        )
    return "HEAD"


def from_patch(role: str, path: Path) -> tuple[ChangedFile, ...]:
    """The files of a unified diff. Raises UsageError when it is none."""
    try:
        if path.stat().st_size > _LARGEST_PATCH:
            raise UsageError(f"is larger than {_LARGEST_PATCH // 2**20} MiB", where=str(path))
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    found = tuple(parse_patch(role, data, str(path)))
    if not found:
        raise UsageError(
            "holds no unified diff", where=str(path), remedy="make it with git diff or git format-patch"
        )
    return found


def parse_patch(  # noqa: PLR0912 - a format of lines
    role: str, data: bytes, where: str
) -> Iterable[ChangedFile]:
    """Files of a unified diff in order, with the lines that it adds and removes."""
    path, status, lines, old = "", "modified", [], ""
    left = 0
    for raw in data.split(b"\n"):
        if left > 0 and raw[:1] in (b"+", b"-", b" "):
            left -= 1
            if raw[:1] != b" ":
                lines.append(raw[1:].decode("utf-8", "replace"))
            continue
        if raw.startswith((b"diff --git ", b"--- ")) and path and (raw.startswith(b"diff") or not old):
            yield ChangedFile(role=role, path=path, status=status, lines=tuple(lines))
            path, status, lines, old = "", "modified", [], ""
        if raw.startswith(b"diff --git "):
            path, status, lines, old = _git_path(raw), "modified", [], "git"
        elif raw.startswith(b"new file mode"):
            status = "added"
        elif raw.startswith(b"deleted file mode"):
            status = "deleted"
        elif raw.startswith(b"rename to "):
            path, status = _unquote(raw[10:]), "renamed"
        elif raw.startswith(b"+++ "):
            name = _unquote(raw[4:].split(b"\t")[0])
            if name != "/dev/null":
                path = name.removeprefix("b/")
        elif raw.startswith(b"--- ") and not old:
            name = _unquote(raw[4:].split(b"\t")[0])
            path, status = (name.removeprefix("a/"), status) if name != "/dev/null" else ("", "added")
        elif raw.startswith(b"@@ "):
            left = _hunk_lines(raw, where)
    if path:
        yield ChangedFile(role=role, path=path, status=status, lines=tuple(lines))


def _hunk_lines(header: bytes, where: str) -> int:
    total = 0
    for word in header.split(b"@@")[1].split():
        _, _, count = word[1:].partition(b",")
        if not word[1:].replace(b",", b"").isdigit():
            raise UsageError(f"has a broken hunk header: {header[:60].decode(errors='replace')}", where=where)
        total += int(count) if count else 1
    return total


def _git_path(raw: bytes) -> str:
    rest = raw[len(b"diff --git ") :]
    if rest.startswith(b'"'):
        return _unquote(rest[rest.index(b'" ') + 2 :] if b'" ' in rest else rest).removeprefix("b/")
    middle = (len(rest) - 1) // 2
    return _unquote(rest[middle + 1 :]).removeprefix("b/")


def _unquote(raw: bytes) -> str:
    if raw.startswith(b'"') and raw.endswith(b'"') and len(raw) > 1:
        raw = raw[1:-1].decode("unicode_escape", "replace").encode("latin-1", "replace")
    return shown(os.fsdecode(raw))


def _new_lines(path: Path) -> tuple[str, ...]:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_NEW_FILE:
            return ()
        data = path.read_bytes()
    except OSError:
        return ()
    return () if b"\0" in data else tuple(data.decode("utf-8", "replace").splitlines())


def from_paths(paths: Iterable[str], checkouts: dict[str, str]) -> tuple[ChangedFile, ...]:
    """Named paths: absolute, or relative to the current directory or to the root of exactly one checkout.

    A directory stands for all that lies in it. Raises UsageError for a path in no checkout, or in several.
    """
    return tuple(file for path in paths for file in _one_path(path, checkouts))


def _one_path(path: str, checkouts: dict[str, str]) -> list[ChangedFile]:
    if "\0" in path or not path.strip():
        raise UsageError(f"{path!r} is no path")
    roots = {role: Path(root) for role, root in checkouts.items()}
    given = Path(os.path.normpath(path))
    if given.is_absolute() or given.exists():
        absolute = Path(os.path.normpath(Path.cwd() / given))
        inside = {
            role: absolute.relative_to(root) for role, root in roots.items() if absolute.is_relative_to(root)
        }
        if inside:
            role = max(inside, key=lambda name: len(roots[name].parts))
            return _named(role, roots[role], inside[role].as_posix())
        if given.is_absolute():
            raise UsageError(f"{path} lies in none of the checkouts", remedy=_known(checkouts))
    if given.parts[:1] == ("..",):
        raise UsageError(f"{path} lies outside the checkouts", remedy=_known(checkouts))
    relative = given.as_posix()
    matches = [role for role, root in roots.items() if _exists(root / relative)]
    if not matches:
        parents = {role: _existing_parent(root, relative) for role, root in roots.items()}
        deepest = max(parents.values(), default=0)
        matches = [role for role, depth in parents.items() if depth == deepest and depth > 0]
        if not matches:
            raise UsageError(f"{path} is in none of the checkouts", remedy=_known(checkouts))
    if len(matches) > 1:
        raise UsageError(
            f"{path} is in more than one checkout: {', '.join(matches)}", remedy="give it as an absolute path"
        )
    return _named(matches[0], roots[matches[0]], relative)


def _named(role: str, root: Path, relative: str) -> list[ChangedFile]:
    if not _exists(root / relative):
        return [ChangedFile(role=role, path=relative, status="added")]
    if not (root / relative).is_dir():
        return [ChangedFile(role=role, path=relative)]
    found = []
    for folder, folders, files in os.walk(root / relative, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in {".git", "__pycache__"})
        inside = Path(folder).relative_to(root)
        found += [ChangedFile(role=role, path=shown((inside / name).as_posix())) for name in sorted(files)]
    return found or [ChangedFile(role=role, path=relative)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _existing_parent(root: Path, relative: str) -> int:
    return next(
        (
            len(parent.parts)
            for parent in PurePosixPath(relative).parents
            if parent.parts and _exists(root / parent)
        ),
        0,
    )


def _known(checkouts: dict[str, str]) -> str:
    known = ", ".join(f"{role} at {path}" for role, path in checkouts.items())
    return f"checkouts: {known}" if known else f"give a checkout first ({', '.join(ROLES.values())})"
