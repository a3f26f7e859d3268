"""The dependency graph of one tree, and the walk from changed files back to tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from proveout.pytest_plugin.impacted.edges import Edges, Kind, directory_node, is_session
from proveout.pytest_plugin.impacted.index import ancestors, parent

_PROGRAMS = (".py", ".sh", ".bash")


@dataclass(frozen=True)
class Step:
    """One link of a chain: ``source`` depends on ``target`` in the way of ``kind``."""

    source: str
    kind: Kind
    target: str


class Graph:
    """Files, session and directories as nodes; ``forward[a][b]`` is the kind of the edge by which a depends on b."""

    def __init__(
        self, forward: Mapping[str, Edges], tests: Iterable[str], executing: Iterable[str] = ()
    ) -> None:
        self.forward = forward
        self.tests = frozenset(tests)
        self._flagged = frozenset(executing)
        self._executes: dict[str, bool] = {}
        self._places: dict[str, list[str]] = {}
        self.backward: dict[str, list[str]] = {}
        for source, edges in forward.items():
            for target in edges:
                self.backward.setdefault(target, []).append(source)

    def dependents(self, node: str, *, changed: bool = True) -> list[str]:
        """Nodes with an edge to ``node`` or to a directory above it.

        A program that did not change itself matters to a reader only if the reader can run it: reading its text
        does not load what it imports.
        """
        found = self.backward.get(node, [])
        if node.endswith("/") or is_session(node) or "#" in node:
            return found
        through = self._readers(parent(node))
        if node in self.tests:
            through = [one for one in through if one in self.tests]
        if not changed and node.endswith(_PROGRAMS):
            found = [one for one in found if self.forward[one][node] is not Kind.DATA or self.executes(one)]
            through = [one for one in through if self.executes(one)]
        return found + through if through else found

    def executes(self, node: str) -> bool:
        """Whether a file may run what it names: tests, and code that starts processes or imports by name."""
        if node not in self._executes:
            loads = self.closure(node, lambda kind: kind in {Kind.IMPORT, Kind.PACKAGE})
            self._executes[node] = (
                node in self.tests or not node.endswith(".py") or not self._flagged.isdisjoint(loads)
            )
        return self._executes[node]

    def _readers(self, directory: str) -> list[str]:
        """Nodes with an edge to a directory or one above it."""
        if directory not in self._places:
            above = self._readers(parent(directory)) if directory else []
            self._places[directory] = above + self.backward.get(directory_node(directory), [])
        return self._places[directory]

    def reached_from(self, changed: Iterable[str]) -> dict[str, str]:
        """Every node that a changed file reaches, mapped to the next node towards that file (itself: the same)."""
        toward = {path: path for path in changed}
        pending = deque(toward)
        while pending:
            node = pending.popleft()
            for source in self.dependents(node, changed=toward[node] == node):
                if source not in toward:
                    toward[source] = node
                    pending.append(source)
        return toward

    def chain(self, test: str, toward: Mapping[str, str]) -> list[Step]:
        """The shortest chain from a test to the changed file that reaches it."""
        steps: list[Step] = []
        node = test
        while toward[node] != node:
            following = toward[node]
            steps.append(Step(node, self.kind(node, following), following))
            node = following
        return steps

    def kind(self, source: str, target: str) -> Kind:
        """The kind of the edge from ``source`` to ``target``, directly or through a directory."""
        edges = self.forward.get(source, {})
        if target in edges:
            return edges[target]
        return next(
            (edges[node] for place in ancestors(target) if (node := directory_node(place)) in edges),
            Kind.DIRECTORY,
        )

    def named(self, path: str) -> bool:
        """Whether anything depends on the file, directly or through a directory."""
        return bool(self.dependents(path))

    def closure(self, start: str, follow: Callable[[Kind], bool] = lambda kind: True) -> set[str]:
        """Every node that ``start`` reaches; directories stand for themselves."""
        return self.closure_of([start], follow)

    def closure_of(self, starts: Iterable[str], follow: Callable[[Kind], bool]) -> set[str]:
        """Every node that one of ``starts`` reaches by edges of the kinds that ``follow`` takes."""
        found = set(starts)
        pending = list(found)
        while pending:
            for target, kind in self.forward.get(pending.pop(), {}).items():
                if target not in found and follow(kind):
                    found.add(target)
                    pending.append(target)
        return found
