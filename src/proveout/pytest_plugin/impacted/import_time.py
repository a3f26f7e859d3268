"""What a Python file runs while it is imported, or once for many tests: work that no single test's coverage shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_ONCE = {
    "cache", "lru_cache", "setup_module", "setup_class", "setUpClass", "setUpModule", "setup_package",
    "__init_subclass__", "__set_name__", "__prepare__", "__class_getitem__", "__mro_entries__",
}  # fmt: skip
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def import_time_calls(tree: ast.Module) -> tuple[bool, set[str]]:
    """Whether the file runs its own functions at import (or shares results between tests), and imported names it calls.

    A name counts as called when it is part of a call or of a decorator outside the bodies of functions.
    """
    imported, local = _names(tree)
    own, calls = _shares(tree), set()
    for expression in _evaluated(tree.body):
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                own = own or node.id in local
                if node.id in imported:
                    calls.add(imported[node.id])
    return own, calls


def _names(tree: ast.Module) -> tuple[dict[str, str], set[str]]:
    imported: dict[str, str] = {}
    local: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name.split(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                separator = "" if module.endswith(".") else "."
                imported[alias.asname or alias.name] = module + separator + alias.name
        elif isinstance(node, _FUNCTION | ast.ClassDef):
            local.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            local.update(target.id for target in node.targets if isinstance(target, ast.Name))
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        local.update(_called_names(tree))
    return imported, local - set(imported)


def _called_names(tree: ast.Module) -> set[str]:
    """Names that are called: after ``from x import *`` any of them may come from there."""
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def _shares(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTION) and node.name in _ONCE:
            return True
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in {"cache", "lru_cache"}:
                return True
        if isinstance(node, ast.keyword) and node.arg in {"scope", "metaclass"}:
            value = node.value
            if not (isinstance(value, ast.Constant) and value.value == "function"):
                return True
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "type" for base in node.bases):
            return True
    return False


def _evaluated(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Calls and decorators that run when the statements are executed, without entering functions."""
    for statement in body:
        if isinstance(statement, _FUNCTION):
            yield from statement.decorator_list
            yield from _calls(
                [*statement.args.defaults, *(d for d in statement.args.kw_defaults if d is not None)]
            )
            continue
        if isinstance(statement, ast.ClassDef):
            yield from statement.decorator_list
            yield from _calls([*statement.bases, *(keyword.value for keyword in statement.keywords)])
            yield from _evaluated(statement.body)
            continue
        inner = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
        handlers = [line for handler in getattr(statement, "handlers", []) for line in handler.body]
        yield from _evaluated([*inner, *handlers])
        yield from _calls(
            [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
        )


def _calls(nodes: list[ast.AST] | list[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
