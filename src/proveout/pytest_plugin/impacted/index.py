"""From names to files: which tracked files a module name, a file name or a directory name may mean.

Several answers are all taken: shadowing, search-path order and the working directory are not known before a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PYTHON = ".py"
_COMMON_DIRS = {"src", "lib", "python"}


def parent(path: str) -> str:
    """The directory of a path; an empty string at the root."""
    return path.rpartition("/")[0]


def ancestors(path: str) -> list[str]:
    """All directories above a path, nearest first, the root (an empty string) last."""
    found = []
    while path:
        path = parent(path)
        found.append(path)
    return found


class Index:
    """Look-ups over one set of paths. ``roots`` are directories from which absolute imports start."""

    def __init__(self, paths: Iterable[str], roots: Iterable[str] = ()) -> None:
        self.paths = set(paths)
        self.directories: set[str] = set()
        self.by_name: dict[str, list[str]] = {}
        self._by_stem: dict[str, list[str]] = {}
        self._by_directory: dict[str, list[str]] = {}
        for path in self.paths:
            directory, _, name = path.rpartition("/")
            self.by_name.setdefault(name, []).append(path)
            if name.endswith(_PYTHON):
                stem = directory.rpartition("/")[2] if name == "__init__.py" else name[:-3]
                self._by_stem.setdefault(stem, []).append(path)
            while directory and directory not in self.directories:
                self.directories.add(directory)
                self._by_directory.setdefault(directory.rpartition("/")[2], []).append(directory)
                directory = parent(directory)
        self.packages = {parent(path) for path in self.by_name.get("__init__.py", ())}
        self.roots = sorted({"", *roots, *self._inferred()})
        self._tops = self._top_modules()
        self._modules: dict[tuple[str, str], tuple[str, ...]] = {}

    def _inferred(self) -> set[str]:
        found = {directory for directory in self.directories if directory.rpartition("/")[2] in _COMMON_DIRS}
        found.update(parent(package) for package in self.packages if parent(package) not in self.packages)
        return found

    def _top_modules(self) -> set[str]:
        roots, tops = set(self.roots), set()
        for path in self.paths:
            if path.endswith(_PYTHON):
                child = path.removesuffix(_PYTHON)
                while child:
                    directory, _, name = child.rpartition("/")
                    if directory in roots:
                        tops.add(name)
                    child = directory
        return tops

    def top_package(self, word: str) -> bool:
        """Whether a word is a package (a directory with ``__init__.py``) that can be imported by that name alone."""
        return any((f"{root}/{word}" if root else word) in self.packages for root in self.roots)

    def module(self, name: str, near: str = "") -> tuple[str, ...]:
        """Files of the longest prefix of a dotted name that is a module, looked for from every root and ``near``."""
        key = (name, near)
        if key not in self._modules:
            self._modules[key] = self._module(name.split("."), near)
        return self._modules[key]

    def _module(self, parts: list[str], near: str) -> tuple[str, ...]:
        found: set[str] = set()
        starts = [*self.roots, near] if near not in self.roots else self.roots
        if parts[0] not in self._tops:
            starts = [near]
        for root in starts:
            for length in range(len(parts), 0, -1):
                hit = self._files("/".join(([root] if root else []) + parts[:length]))
                if hit:
                    found.update(hit)
                    break
        if not found and len(parts) > 1:
            found.update(self._anywhere(parts))
        return tuple(sorted(found))

    def _files(self, base: str) -> list[str]:
        return [path for path in (base + ".py", base + "/__init__.py") if path in self.paths]

    def _anywhere(self, parts: list[str]) -> list[str]:
        for length in range(len(parts), 1, -1):
            stem, tail = parts[length - 1], "/".join(parts[:length])
            ends = (f"/{tail}.py", f"/{tail}/__init__.py")
            found = [path for path in self._by_stem.get(stem, ()) if path.endswith(ends)]
            if found:
                return found
        return []

    def relative(self, name: str, path: str) -> tuple[str, ...]:
        """Files of a relative import (leading dots) written in ``path``."""
        level = len(name) - len(name.lstrip("."))
        directory = parent(path)
        for _ in range(level - 1):
            directory = parent(directory)
        rest = name.lstrip(".")
        parts = rest.split(".") if rest else []
        for length in range(len(parts), -1, -1):
            base = "/".join(([directory] if directory else []) + parts[:length])
            found = self._files(base) if length else [p for p in (f"{base}/__init__.py",) if p in self.paths]
            if found:
                return tuple(found)
        return ()

    def package_directories(self, name: str) -> list[str]:
        """Directories that a dotted name may mean as a package, with or without ``__init__.py``."""
        tail = name.replace(".", "/")
        candidates = [f"{root}/{tail}" if root else tail for root in self.roots]
        return [directory for directory in candidates if directory in self.directories]

    def files(self, name: str, near: str) -> list[str]:
        """Files that a file name or pattern (``*`` for unknown parts) in a file of directory ``near`` may mean."""
        parts = [part for part in name.split("/") if part not in {"", ".", ".."}]
        if not parts or all(set(part) <= {"*", "?"} for part in parts):
            return []
        if any("*" in part or "?" in part for part in parts):
            return self._matching(parts, near)
        tail = "/".join(parts)
        return [path for path in self.by_name.get(parts[-1], ()) if path == tail or path.endswith("/" + tail)]

    def _matching(self, parts: list[str], near: str) -> list[str]:
        translated = [".*" if part == "**" else _translated(part) for part in parts]
        while translated and translated[0] in {".*", "[^/]*"} and len(translated) > 1:
            translated.pop(0)
        pattern = re.compile("(?:^|.*/)" + "/".join(translated).replace(".*/", "(?:.*/)?") + "$")
        bare = len(translated) == 1 and parts[-1].lstrip("*?").startswith(".")
        scope = near + "/" if bare and near else ""
        return [path for path in self.paths if path.startswith(scope) and pattern.match(path)]

    def named_directories(self, chain: str, near: str) -> list[str]:
        """Directories that a chain of path parts may mean: below ``near`` or any directory above it."""
        parts = [part for part in chain.split("/") if part not in {"", ".", ".."} and "*" not in part]
        if not parts:
            return []
        tail = "/".join(parts)
        if len(parts) > 1:
            named = self._by_directory.get(parts[-1], ())
            return [directory for directory in named if directory == tail or directory.endswith("/" + tail)]
        above = {near, *ancestors(near)}
        return [place for start in above if (place := f"{start}/{tail}" if start else tail) in self.directories]


def _translated(part: str) -> str:
    return "".join("[^/]*" if c == "*" else "[^/]" if c == "?" else re.escape(c) for c in part)
