"""What a tree holds, by content: a program of its own too (``python3 - ROOT``), for the other side.

Standard library only, Python 3.7 or newer. One line for each file: mode, SHA-256 of its bytes (of the target for a
symbolic link) and path; the tree's hash is that of all lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from pathlib import Path
from typing import Iterable, Iterator, List  # noqa: UP035 - as old a Python as the other side may have

LEFT_OUT = ".git"
CHUNK = 1 << 20


def lines_of(root: Path, names: Iterable[str]) -> List[bytes]:  # noqa: UP006
    """The sorted manifest lines of files below ``root``; ``names`` are relative to it."""
    return sorted(_line(root / name, name) for name in set(names))


def tree_hash(lines: Iterable[bytes]) -> str:
    """The hash of a tree from its manifest."""
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def names_below(root: Path) -> Iterator[str]:
    """Every file below ``root`` but for what git keeps for itself."""
    for folder, folders, files in os.walk(str(root)):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name not in links and name != LEFT_OUT]
        for name in files + links:
            if name != LEFT_OUT:
                yield str(Path(folder, name).relative_to(root))


def _line(path: Path, name: str) -> bytes:
    found = path.lstat()
    content = hashlib.sha256()
    if stat.S_ISLNK(found.st_mode):
        mode = b"120000"
        content.update(os.fsencode(os.readlink(str(path))))  # noqa: PTH115 - Path.readlink is newer
    else:
        mode = b"100755" if found.st_mode & stat.S_IXUSR else b"100644"
        with path.open("rb") as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                content.update(chunk)
    return mode + b" " + content.hexdigest().encode() + b" " + os.fsencode(name)


if __name__ == "__main__":
    top = Path(sys.argv[1])
    listed = lines_of(top, names_below(top))
    shown = [line.decode("utf-8", "backslashreplace") for line in listed]
    print("\nPROVEOUT-TREE " + json.dumps({"tree": tree_hash(listed), "lines": shown}))
