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
        self._importable: set[str] = set()
        for path in self.paths:
            directory, _, name = path.rpartition("/")
            self.by_name.setdefault(name, []).append(path)
            if name.endswith(_PYTHON):
                stem = directory.rpartition("/")[2] if name == "__init__.py" else name[:-3]
                self._by_stem.setdefault(stem, []).append(path)
                child = path.removesuffix(_PYTHON)
                while child and child not in self._importable:
                    self._importable.add(child)
                    child = parent(child)
            while directory and directory not in self.directories:
                self.directories.add(directory)
                self._by_directory.setdefault(directory.rpartition("/")[2], []).append(directory)
                directory = parent(directory)
        self.packages = {parent(path) for path in self.by_name.get("__init__.py", ())}
        self.set_roots(roots)

    def set_roots(self, roots: Iterable[str]) -> None:
        """Choose the directories from which absolute imports start, besides those that packages imply."""
        self.roots = sorted({"", *roots, *self._inferred()})
        starts = set(self.roots)
        self._top_packages = {place.rpartition("/")[2] for place in self.packages if parent(place) in starts}
        self._modules: dict[tuple[str, str], tuple[str, ...]] = {}

    def _inferred(self) -> set[str]:
        found = {directory for directory in self.directories if directory.rpartition("/")[2] in _COMMON_DIRS}
        found.update(parent(package) for package in self.packages if parent(package) not in self.packages)
        return found

    def top_package(self, word: str) -> bool:
        """Whether a word is a package (a directory with ``__init__.py``) that can be imported by that name alone."""
        return word in self._top_packages

    def module(self, name: str, near: str = "") -> tuple[str, ...]:
        """Files of the longest prefix of a dotted name that is a module, looked for from every root and ``near``."""
        key = (name, near)
        if key not in self._modules:
            self._modules[key] = self._module(name.split("."), near)
        return self._modules[key]

    def _module(self, parts: list[str], near: str) -> tuple[str, ...]:
        found: set[str] = set()
        starts = [root for root in self.roots if f"{root}/{parts[0]}".lstrip("/") in self._importable]
        if near not in starts:
            starts.append(near)
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

    def ending(self, tail: str) -> tuple[str, ...]:
        """Files of every module whose dotted name ends in ``tail``."""
        end = "/" + tail.replace(".", "/")
        stem = end.rpartition("/")[2]
        ends = (f"{end}.py", f"{end}/__init__.py")
        return tuple(path for path in self._by_stem.get(stem, ()) if ("/" + path).endswith(ends))

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
        while len(parts) > 1 and set(parts[0]) <= {"*"}:
            parts = parts[1:]
        pattern = re.compile("(?:.*/)?" + _pattern(parts) + "$")
        bare = len(parts) == 1 and parts[-1].lstrip("*?").startswith(".")
        scope = near + "/" if bare and near else ""
        tail = re.split(r"[*?]", parts[-1])[-1]
        return [p for p in self.paths if p.endswith(tail) and p.startswith(scope) and pattern.match(p)]

    def data_below(self, directory: str) -> list[str]:
        """Files below a directory that are not Python."""
        prefix = directory + "/" if directory else ""
        return [path for path in self.paths if path.startswith(prefix) and not path.endswith(_PYTHON)]

    def place(self, text: str, path: str) -> tuple[list[str], list[str]]:
        """Files and directories that a stored place means when it stands in ``path``."""
        levels, _, pattern = text.partition(":")
        parts = [part for part in pattern.split("/") if part not in {"", "."}]
        if levels == "-":
            return self._place_anywhere(parts)
        above = ancestors(path)
        level = int(levels)
        base = path if level == 0 else above[min(level, len(above)) - 1]
        while parts and parts[0] == "..":
            base, parts = parent(base), parts[1:]
        parts = [part for part in parts if part != ".."]
        found_files, found_directories = self._below(base, parts)
        if level > len(above) and not found_files and not found_directories:
            for start in above[:-1]:
                files, directories = self._below(start, parts)
                found_files, found_directories = found_files + files, found_directories + directories
        return found_files, found_directories

    def _below(self, base: str, parts: list[str]) -> tuple[list[str], list[str]]:
        fixed = next((place for place, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
        start = "/".join(([base] if base else []) + parts[:fixed])
        rest = parts[fixed:]
        if not rest:
            return ([start] if start in self.paths else []), (
                [start] if start in self.directories or not start else []
            )
        if start and start not in self.directories:
            return [], []
        if all(set(part) <= {"*"} for part in rest):
            return [], [start]
        pattern = re.compile(_pattern(rest) + "(?:/.*)?$")
        prefix = start + "/" if start else ""
        return [p for p in self.paths if p.startswith(prefix) and pattern.match(p, len(prefix))], []

    def _place_anywhere(self, parts: list[str]) -> tuple[list[str], list[str]]:
        if parts and all(set(part) <= {"*"} for part in parts):
            return [], [""]
        fixed = next((place for place, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
        tail = "/".join(part for part in parts[:fixed] if part != "..")
        if not tail:
            return self.files("/".join(parts), ""), []
        named = self._by_directory.get(parts[fixed - 1], ())
        places = [place for place in named if place == tail or place.endswith("/" + tail)]
        if fixed == len(parts):
            return [], places
        found = [self._below(place, parts[fixed:]) for place in places]
        return [p for files, _ in found for p in files], [p for _, directories in found for p in directories]


def _pattern(parts: list[str]) -> str:
    text = ""
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        text += (".*" if last else "(?:.*/)?") if part == "**" else _translated(part) + ("" if last else "/")
    return text


def _translated(part: str) -> str:
    return "".join("[^/]*" if c == "*" else "[^/]" if c == "?" else re.escape(c) for c in part)
