"""The working tree's difference from its commit as a patch, made without touching the tree."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from proveout.domain.checkout import Checkout
from proveout.plan.git import git, names

LARGEST_DIRTY = 20 * 1024 * 1024


def working_patch(root: Path, commit: str, untracked: Iterable[str]) -> tuple[bytes, list[str]]:
    """The working tree's difference from ``commit`` as a patch, untracked files as additions.

    Returns the patch and the names of files too large to be put in. Nothing in the tree is touched.
    """
    too_large = [name for name in untracked if _size(root / name) > LARGEST_DIRTY]
    tracked = (
        git(root, "diff", "--no-ext-diff", "--no-textconv", "--binary", commit or "--", "--")
        if commit
        else b""
    )
    if len(tracked) > LARGEST_DIRTY:
        changed = names(git(root, "diff", "--name-only", "-z", commit, "--"))
        too_large += [name for name in changed if _size(root / name) > LARGEST_DIRTY] or changed
        tracked = git(root, "diff", "--no-ext-diff", "--no-textconv", "--stat", commit, "--")
    parts = [tracked]
    for name in sorted(untracked):
        parts.append(_addition(root, name, name in too_large))
    return b"".join(parts), too_large


def _addition(root: Path, name: str, left_out: bool) -> bytes:
    path, shown = root / name, os.fsencode(name)
    try:
        if path.is_symlink():
            mode, data = b"120000", os.fsencode(path.readlink())
        elif not path.is_file():
            return b""
        else:
            mode = b"100755" if path.stat().st_mode & stat.S_IXUSR else b"100644"
            data = b"" if left_out else path.read_bytes()
    except OSError as error:
        return b"# " + shown + b" cannot be read: " + str(error.strerror).encode() + b"\n"
    head = b"diff --git a/" + shown + b" b/" + shown + b"\nnew file mode " + mode + b"\n"
    if left_out or b"\0" in data:
        digest = hashlib.sha256(data).hexdigest() if not left_out else "left out"
        return head + f"# {_size(path)} bytes, sha256 {digest}\n".encode()
    lines = data.splitlines(keepends=True)
    if not lines:
        return head
    body = b"".join(b"+" + line for line in lines)
    end = b"" if data.endswith(b"\n") else b"\n\\ No newline at end of file\n"
    return head + b"--- /dev/null\n+++ b/" + shown + f"\n@@ -0,0 +1,{len(lines)} @@\n".encode() + body + end


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def patch_of(checkout: Checkout) -> bytes:
    """What ``checkout`` holds beside its commit, as one patch; empty for a clean tree or one without git.

    Raises UsageError when git cannot read an object.
    """
    if not checkout.commit or not (checkout.dirty or checkout.untracked):
        return b""
    root = Path(checkout.path)
    untracked = names(git(root, "ls-files", "--others", "--exclude-standard", "-z"))
    return working_patch(root, checkout.commit, untracked)[0]
