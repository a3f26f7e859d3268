"""A tree made ready for questions: its files, their graph, and what is kept between runs to be quick."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from proveout.domain.layout import STATE_DIR
from proveout.pytest_plugin.impacted import tree
from proveout.pytest_plugin.impacted.cache import FactCache, write_atomically
from proveout.pytest_plugin.impacted.edges import (
    Edges,
    Kind,
    called_files,
    directory_node,
    edges_of,
    root_directories,
    session_edges,
    session_node,
    table_edges,
    test_edges,
)
from proveout.pytest_plugin.impacted.facts import EMPTY, FACTS_VERSION, Facts, Flag
from proveout.pytest_plugin.impacted.graph import Graph
from proveout.pytest_plugin.impacted.index import Index
from proveout.pytest_plugin.impacted.project import Project, read_project

CACHE_DIR = "impacted"
FACTS_FILE, GRAPH_FILE, STATE_FILE = "facts.msgpack", "graph.msgpack", "state.json"


class Node(msgspec.Struct, frozen=True, array_like=True):
    """One file of the graph as it is kept between runs."""

    blob: str
    edges: Edges = {}
    flags: int = 0
    skeleton: str = ""
    roots: tuple[str, ...] = ()
    tables: dict[str, Edges] = {}
    runs: tuple[str, ...] = ()
    """Files whose functions run while this one is imported."""


class _Kept(msgspec.Struct):
    key: str
    nodes: dict[str, Node]


@dataclass(frozen=True)
class Analysis:
    """Everything that selection needs to know about one tree at one moment."""

    root: Path
    in_git: bool
    table: tree.Table
    project: Project
    nodes: Mapping[str, Node]
    graph: Graph
    links: Mapping[str, str]
    cache_dir: Path

    def flags(self, path: str) -> Flag:
        """What a file does beyond plain imports."""
        node = self.nodes.get(path)
        return Flag(node.flags) if node else Flag(0)

    def earlier(self, path: str, blob: str) -> Facts | None:
        """Facts of an earlier content of a file, when that content was seen here."""
        return FactCache(self.cache_dir / FACTS_FILE).known(path, blob)


def cache_directory(root: Path) -> Path:
    """Where selection keeps its files: below the root, ignored by git."""
    return root / STATE_DIR / CACHE_DIR


def forget(root: Path) -> None:
    """Remove everything that is kept between runs."""
    shutil.rmtree(cache_directory(root), ignore_errors=True)


def analyse(start: Path, *, gone: Iterable[str] = ()) -> Analysis:
    """Read the tree that holds ``start``. Names also resolve to the paths in ``gone``, which exist no more."""
    root, in_git = tree.find_root(start)
    return analyse_table(root, tree.current(root, in_git=in_git), in_git=in_git, gone=gone)


def analyse_table(root: Path, table: tree.Table, *, in_git: bool, gone: Iterable[str] = ()) -> Analysis:
    """As ``analyse`` for files that were listed already."""
    cache_dir = cache_directory(root)
    project = read_project(root)
    paths = {**dict.fromkeys(gone, ""), **table}
    links = tree.linked_directories(root, table) if in_git else {}
    nodes = _nodes(root, table, paths, project, cache_dir)
    return Analysis(
        root, in_git, table, project, nodes, _graph(nodes, links, project, paths), links, cache_dir
    )


def with_gone(analysis: Analysis, gone: Iterable[str]) -> Analysis:
    """The same tree, in which names also resolve to ``gone``."""
    missing = sorted(set(gone) - set(analysis.nodes))
    if not missing:
        return analysis
    wider = analyse_table(
        analysis.root, analysis.table, in_git=analysis.in_git, gone=[*missing, *analysis.nodes]
    )
    return replace(wider, table=analysis.table)


def _nodes(
    root: Path, table: tree.Table, paths: Mapping[str, str], project: Project, cache_dir: Path
) -> dict[str, Node]:
    kept = _read(cache_dir / GRAPH_FILE)
    stale = {
        path: blob for path, blob in table.items() if path not in kept.nodes or kept.nodes[path].blob != blob
    }
    cache = FactCache(cache_dir / FACTS_FILE) if stale else None
    facts = cache.facts(root, stale) if cache else {}
    roots = {path: facts[path].roots if path in facts else kept.nodes[path].roots for path in table}
    index = Index(paths)
    extra = root_directories(roots, project, index)
    key = _key(paths, extra, project)
    if key != kept.key:
        cache = cache or FactCache(cache_dir / FACTS_FILE)
        facts = cache.facts(root, table)
    nodes = {}
    resolve_all = key != kept.key
    if resolve_all or stale:
        index.set_roots(extra)
    for path in paths:
        if resolve_all or path in stale:
            one = facts.get(path, EMPTY)
            edges = edges_of(path, one, index, project)
            tables = table_edges(path, one, index)
            runs = called_files(path, one, index)
            nodes[path] = Node(table.get(path, ""), edges, one.flags, one.skeleton, one.roots, tables, runs)
        else:
            nodes[path] = kept.nodes[path]
    if resolve_all or stale:
        write_atomically(cache_dir / GRAPH_FILE, msgspec.msgpack.encode(_Kept(key, nodes)))
    if cache:
        cache.save()
    return nodes


def _graph(
    nodes: Mapping[str, Node], links: Mapping[str, str], project: Project, paths: Mapping[str, str]
) -> Graph:
    forward: dict[str, Edges] = {path: node.edges for path, node in nodes.items()}
    tables = {name: edges for node in nodes.values() for name, edges in node.tables.items()}
    plugins = session_edges(Index(paths), project) if project.plugins else {}
    tests = [path for path in paths if project.is_test(path)]
    for path in tests:
        forward[path] = {**forward[path], **test_edges(path, paths)}
        forward[session_node(path, paths)] = dict(plugins)
    for path, node in nodes.items():
        if Flag.GLOBAL_HOOKS & Flag(node.flags) and path.rpartition("/")[2] == "conftest.py":
            forward.setdefault(session_node(path, paths), dict(plugins))[path] = Kind.SESSION
    for link, target in links.items():
        forward[link] = {**forward.get(link, {}), directory_node(target): Kind.LINK}
    forward.update(tables)
    acts = Flag.SPAWNS | Flag.DYNAMIC
    return Graph(forward, tests, (path for path, node in nodes.items() if acts & Flag(node.flags)))


def _key(paths: Iterable[str], roots: Iterable[str], project: Project) -> str:
    text = "\0".join([str(FACTS_VERSION), repr(project), *sorted(roots), "", *sorted(paths)])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _read(path: Path) -> _Kept:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return _Kept("", {})
