"""Which marks NeMo-RL's unit tests carry, read from their source, and which flags select them."""

from __future__ import annotations

import ast
import re

import msgspec

from proveout.domain.tree import Tree

EXCLUSIVE = {
    "mcore": "mcore",
    "automodel": "automodel",
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "trtllm",
    "nemo_gym": "nemo_gym",
}
"""Mark -> the extra that its ``--MARK-only`` flag needs."""
GATED = "hf_gated"
_ANY_MARK = re.compile(rf"\bmark\.(?:{'|'.join((*EXCLUSIVE, GATED))})\b")
_TEST = re.compile(r"^\s*(?:async\s+)?def test", re.MULTILINE)


class TestFile(msgspec.Struct, frozen=True):
    """One test file: the marks of each of its tests that select or deselect it."""

    __test__ = False

    path: str
    tests: tuple[frozenset[str], ...]


def read_marks(tree: Tree, relative: str) -> TestFile:
    """The selecting marks of every test of a file: of the module, the class and the function together."""
    key = ("marks", relative)
    if key not in tree.kept:
        tree.kept[key] = _read(tree, relative)
    found: TestFile = tree.kept[key]
    return found


def _read(tree: Tree, relative: str) -> TestFile:
    text = tree.text(relative)
    if not _ANY_MARK.search(text):
        return TestFile(relative, (frozenset(),) * len(_TEST.findall(text)))
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return TestFile(relative, ())
    of_module = frozenset(
        mark
        for node in module.body
        if isinstance(node, ast.Assign)
        and any(getattr(target, "id", "") == "pytestmark" for target in node.targets)
        for mark in _marks(node.value)
    )
    return TestFile(relative, tuple(_tests(module.body, of_module)))


def _tests(body: list[ast.stmt], inherited: frozenset[str]) -> list[frozenset[str]]:
    found: list[frozenset[str]] = []
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            marks = inherited | {mark for decorator in node.decorator_list for mark in _marks(decorator)}
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                own = {
                    mark
                    for item in node.body
                    if isinstance(item, ast.Assign)
                    and any(getattr(target, "id", "") == "pytestmark" for target in item.targets)
                    for mark in _marks(item.value)
                }
                found += _tests(node.body, marks | own)
            elif not isinstance(node, ast.ClassDef) and node.name.startswith("test"):
                found.append(marks)
    return found


def _marks(node: ast.expr) -> set[str]:
    names = {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}
    return names & ({*EXCLUSIVE, GATED})


def selected(file: TestFile, only: str, gated: bool) -> int:
    """How many tests of a file run under ``--ONLY-only`` ('' for none) and ``--hf-gated``.

    The rules are those of ``tests/unit/conftest.py`` of NeMo-RL.
    """
    return sum(
        (gated or GATED not in marks) and (only in marks if only else not marks & set(EXCLUSIVE))
        for marks in file.tests
    )
