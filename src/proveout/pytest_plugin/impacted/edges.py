"""From facts to edges: which files a file may load, read or start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from proveout.pytest_plugin.impacted.facts import Facts, Flag
from proveout.pytest_plugin.impacted.index import Index, ancestors, parent
from proveout.pytest_plugin.impacted.project import Project


class Kind(StrEnum):
    """How one file depends on another."""

    IMPORT = "imports"
    PACKAGE = "lies in package"
    CONFTEST = "gets fixtures from"
    SESSION = "runs in a session with"
    STRING = "names in a string"
    DATA = "names the file"
    DIRECTORY = "reads the directory"
    TREE = "may load any module of"
    LINK = "links to"


Edges = dict[str, Kind]
ROOT = "/"
_PROJECT_FILES = ("pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
SESSION = "<session>"
"""The node on which every test depends: plugins and hooks that act on the whole session."""


def directory_node(directory: str) -> str:
    """The node that stands for every file below a directory."""
    return directory + "/" if directory else ROOT


def edges_of(path: str, facts: Facts, index: Index, project: Project) -> Edges:
    """Edges of one file. Earlier rules name the kind when several give the same target.

    That code other than a test reads test modules as data is no edge: it collects or selects them.
    """
    found: Edges = {}
    for kind, target in _all(path, facts, index, project):
        reads_tests = kind in {Kind.DATA, Kind.DIRECTORY} and project.is_test(target)
        if target != path and not (reads_tests and not project.is_test(path)):
            found.setdefault(target, kind)
    return found


def _all(path: str, facts: Facts, index: Index, project: Project) -> Iterator[tuple[Kind, str]]:
    near = parent(path)
    flags = Flag(facts.flags)
    yield from _imports(path, facts, index)
    yield from ((Kind.PACKAGE, target) for target in _package(path, index))
    yield from _strings(path, facts, flags, index, project)
    for name in facts.whole:
        yield from ((Kind.STRING, node) for node in _table_nodes(path, name, facts, index))
    for name in facts.paths:
        yield from ((Kind.DATA, target) for target in index.files(name, near))
    for place in facts.places:
        if place == "1:*":
            yield from ((Kind.DATA, target) for target in index.data_below(near))
            continue
        files, directories = index.place(place, path)
        yield from ((Kind.DATA, target) for target in files)
        yield from ((Kind.DIRECTORY, directory_node(target)) for target in directories)
    yield from _wide(path, facts, flags, index)
    if Flag.ENTRY_POINTS in flags:
        for module in project.entry_points:
            yield from ((Kind.STRING, target) for target in index.module(module))


def _imports(path: str, facts: Facts, index: Index) -> Iterator[tuple[Kind, str]]:
    near = parent(path)
    for name in facts.imports:
        if name.startswith("*"):
            targets = index.ending(name[2:])
        else:
            targets = index.relative(name, path) if name.startswith(".") else index.module(name, near)
        yield from ((Kind.IMPORT, target) for target in targets)


def called_files(path: str, facts: Facts, index: Index) -> tuple[str, ...]:
    """Files whose functions a file may run while it is imported."""
    found = {path} if Flag.ACTS in Flag(facts.flags) else set()
    for name in facts.calls:
        found.update(index.relative(name, path) if name.startswith(".") else index.module(name, parent(path)))
    return tuple(sorted(found))


def table_edges(path: str, facts: Facts, index: Index) -> dict[str, Edges]:
    """Edges of the constant tables of a file: what using such a table as a whole may load.

    A name that is only a key is no edge of the file itself: whoever looks it up holds the name too.
    """
    found: dict[str, Edges] = {}
    for table, keys in facts.tables.items():
        edges: Edges = {}
        for key in keys:
            if key.startswith("#"):
                edges.update(dict.fromkeys(_table_nodes(path, key[1:], facts, index), Kind.STRING))
            else:
                edges.update(dict.fromkeys(index.module(key), Kind.STRING))
        found[table_node(path, table)] = edges
    return found


def table_node(path: str, name: str) -> str:
    """The node that stands for all keys of a constant table."""
    return f"{path}#{name}"


def _table_nodes(path: str, name: str, facts: Facts, index: Index) -> list[str]:
    """Tables of that name in the file itself and in the files that it imports."""
    return [
        table_node(place, name) for place in (path, *(target for _, target in _imports(path, facts, index)))
    ]


def _package(path: str, index: Index) -> list[str]:
    if not path.endswith(".py"):
        return []
    places = ancestors(path)
    return [init for place in places if place and (init := place + "/__init__.py") in index.paths]


def _strings(
    path: str, facts: Facts, flags: Flag, index: Index, project: Project
) -> Iterator[tuple[Kind, str]]:
    near = parent(path)
    dynamic = bool(flags & (Flag.DYNAMIC | Flag.WALKS_PACKAGES))
    for name in facts.names:
        open_ended = name.endswith(".")
        dotted = name.rstrip(".")
        yield from ((Kind.STRING, target) for target in index.module(dotted, near if dynamic else ""))
        places = index.package_directories(dotted)
        if places and open_ended and (dynamic or "." in dotted):
            yield from ((Kind.TREE, directory_node(place)) for place in places)
        elif places and Flag.OWN_PLACE in flags:
            yield from ((Kind.DIRECTORY, directory_node(place)) for place in places)
    is_package = path.endswith("/__init__.py")
    for word in facts.words:
        if word in project.scripts:
            yield from ((Kind.STRING, target) for target in index.module(project.scripts[word]))
        if index.top_package(word) or dynamic:
            yield from ((Kind.STRING, target) for target in index.module(word, near if dynamic else ""))
        if is_package:
            yield from ((Kind.STRING, target) for target in index.relative("." + word, path))


def _wide(path: str, facts: Facts, flags: Flag, index: Index) -> Iterator[tuple[Kind, str]]:
    near = parent(path)
    if Flag.WALKS_PACKAGES in flags:
        named = [name.rstrip(".") for name in (*facts.imports, *facts.names, *facts.words)]
        for place in (place for name in named for place in index.package_directories(name)):
            yield Kind.TREE, directory_node(place)
        yield Kind.TREE, directory_node(near)
    if Flag.DYNAMIC in flags and Flag.BUILDS_NAMES in flags and path.endswith(".py"):
        packages = [place for place in ancestors(path) if place in index.packages]
        yield Kind.TREE, directory_node(packages[-1] if packages else near)
    if Flag.LISTS in flags and Flag.OWN_PLACE in flags and not facts.places:
        yield Kind.DIRECTORY, directory_node(near)


def session_edges(index: Index, project: Project) -> Edges:
    """Edges of every session: plugins that the project configures or installs into pytest."""
    return {target: Kind.SESSION for plugin in project.plugins for target in index.module(plugin)}


def session_node(path: str, paths: Mapping[str, str]) -> str:
    """The session of the project that a file belongs to: the nearest directory with a configuration of its own."""
    for place in ancestors(path):
        if place and any(f"{place}/{name}" in paths for name in _PROJECT_FILES):
            return f"{SESSION}{place}"
    return SESSION


def is_session(node: str) -> bool:
    """Whether a node stands for a session."""
    return node.startswith(SESSION)


def test_edges(path: str, paths: Mapping[str, str]) -> Edges:
    """Edges that a test file has because it is a test: the conftest files above it, and the session."""
    found = {
        name: Kind.CONFTEST
        for place in ancestors(path)
        if (name := f"{place}/conftest.py" if place else "conftest.py") in paths
    }
    return {**found, session_node(path, paths): Kind.SESSION}


def root_directories(roots: Mapping[str, tuple[str, ...]], project: Project, index: Index) -> set[str]:
    """Directories that absolute imports may start from besides those inferred from packages.

    ``roots`` holds, for every file, the places that it puts on the module search path.
    """
    found = {root for root in project.roots if root}
    for path, places in roots.items():
        if project.is_test(path) or path.endswith("conftest.py"):
            place = parent(path)
            while place and f"{place}/__init__.py" in index.paths:
                place = parent(place)
            found.add(place)
        for root in places:
            found.update(index.place(root, path)[1])
    return found
