"""Facts of a Python file, read from its syntax tree."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from proveout.pytest_plugin.impacted.facts import Facts, Flag
from proveout.pytest_plugin.impacted.import_time import import_time_calls
from proveout.pytest_plugin.impacted.places import PlaceReader, is_listing, is_path_expression
from proveout.pytest_plugin.impacted.text import DOTTED, WORD, imports_in, paths_in, text_facts

_LISTING = {
    "glob",
    "rglob",
    "iglob",
    "iterdir",
    "listdir",
    "walk",
    "scandir",
    "files",
    "contents",
    "list_templates",
}
_WALKING = {"iter_modules", "walk_packages"}
_IMPORTING = {
    "import_module",
    "__import__",
    "importorskip",
    "run_module",
    "find_spec",
    "resolve_name",
    "reload",
}
_LOADING = {"run_path", "spec_from_file_location", "SourceFileLoader", "exec_module", "locate"}
_SPAWNING_MODULES = {
    "ray",
    "subprocess",
    "multiprocessing",
    "concurrent",
    "torch.multiprocessing",
    "pty",
    "pexpect",
}
_SPAWNING = {
    "remote", "Popen", "Process", "Pool", "ProcessPoolExecutor", "spawn", "fork", "posix_spawn", "system", "popen",
    "create_subprocess_exec", "create_subprocess_shell", "check_call", "check_output", "getoutput", "execv", "execvp",
    "pytester", "testdir", "runpytest_subprocess",
}  # fmt: skip
_OWN_PLACE = {
    "__file__",
    "__path__",
    "__spec__",
    "getcwd",
    "cwd",
    "resources",
    "rootpath",
    "rootdir",
    "invocation_params",
}
_SESSION_HOOKS = {
    "pytest_configure", "pytest_unconfigure", "pytest_addoption", "pytest_sessionstart", "pytest_sessionfinish",
    "pytest_collection_modifyitems", "pytest_cmdline_main", "pytest_load_initial_conftests", "pytest_plugin_registered",
    "pytest_collection", "pytest_runtestloop", "pytest_deselected",
}  # fmt: skip
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def python_facts(source: bytes) -> Facts:
    """Facts of Python source; source that does not parse here falls back to a search of its text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text_facts(source.decode("utf-8", "replace"), python=True)
    reader = _Reader()
    try:
        reader.visit(tree)
    except RecursionError:
        return text_facts(source.decode("utf-8", "replace"), python=True)
    places, roots = reader.places.places()
    own, calls = import_time_calls(tree)
    if own:
        reader.flags |= Flag.ACTS
    return Facts(
        imports=tuple(sorted(reader.imports)),
        names=tuple(sorted(reader.names)),
        words=tuple(sorted(reader.words)),
        paths=tuple(sorted(reader.paths)),
        places=tuple(sorted(places)),
        roots=tuple(sorted(roots)),
        tables={name: tuple(sorted(keys)) for name, keys in sorted(reader.tables.items())},
        whole=tuple(sorted(reader.whole)),
        calls=tuple(sorted(calls)),
        flags=int(reader.flags),
        skeleton=_skeleton(tree, source),
    )


def _skeleton(tree: ast.Module, source: bytes) -> str:
    lines = source.split(b"\n")
    for function in _outermost(tree.body):
        first, end = function.body[0], function.end_lineno or 0
        if not lines[first.lineno - 1][: first.col_offset].strip():
            lines[first.lineno - 1 : end] = [b""] * (end - first.lineno + 1)
    return hashlib.sha1(b"\n".join(line for line in lines if line), usedforsecurity=False).hexdigest()


def _outermost(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for statement in body:
        if isinstance(statement, _FUNCTION):
            yield statement
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from _outermost(getattr(statement, field, []) or [])
        for handler in getattr(statement, "handlers", []):
            yield from _outermost(handler.body)


def _literal(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class _Reader:
    """One walk over a tree; the attributes are the sets that become ``Facts``."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.names: set[str] = set()
        self.words: set[str] = set()
        self.paths: set[str] = set()
        self.places = PlaceReader()
        self.flags = Flag(0)
        self.tables: dict[str, set[str]] = {}
        self.whole: set[str] = set()
        self._looked_up: set[int] = set()
        self._pending: set[str] = set()
        self._handlers: dict[type[ast.AST], Callable[[Any], ast.AST | None]] = {
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Constant: self._constant,
            ast.JoinedStr: self._joined,
            ast.BinOp: self._binary,
            ast.Call: self._call,
            ast.Attribute: self._attribute,
            ast.Name: self._name,
            ast.AnnAssign: self._annotated,
            ast.Subscript: self._subscript,
            ast.Compare: self._compare,
            ast.Assign: self._assign,
            ast.List: self._sequence,
            ast.Tuple: self._sequence,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.ClassDef: self._documented,
            ast.Module: self._documented,
        }

    def visit(self, root: ast.AST) -> None:
        """Visit every node once; a handler returns the nodes that it has dealt with itself."""
        pending = [root]
        while pending:
            node = pending.pop()
            handler = self._handlers.get(type(node))
            skipped = handler(node) if handler is not None else None
            for child in ast.iter_child_nodes(node):
                if skipped is None or child is not skipped:
                    pending.append(child)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.imports.add(alias.name)
            self.places.imported.add(alias.asname or alias.name.split(".")[0])
            if alias.name.split(".")[0] in _SPAWNING_MODULES or alias.name in _SPAWNING_MODULES:
                self.flags |= Flag.SPAWNS

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        self.imports.add(module)
        if not node.level and module.split(".")[0] in _SPAWNING_MODULES | {"torch.multiprocessing"}:
            self.flags |= Flag.SPAWNS
        if module == "importlib":
            self._place({alias.name for alias in node.names})
        self.places.imported.update(alias.asname or alias.name for alias in node.names)
        separator = "" if module.endswith(".") else "."
        self.imports.update(module + separator + alias.name for alias in node.names if alias.name != "*")

    def _constant(self, node: ast.Constant) -> None:
        if id(node) in self._looked_up:
            return
        if isinstance(node.value, str):
            self._text(node.value)
        elif isinstance(node.value, bytes) and len(node.value) < 20_000:
            self._text(node.value.decode("utf-8", "replace"))

    def _text(self, text: str) -> None:
        if not text:
            return
        if WORD.fullmatch(text):
            self.words.add(text)
            return
        self._dotted(text)
        self.paths.update(paths_in(text))
        if "import" in text or "-m" in text:
            self.imports.update(imports_in(text))
        self.words.update(WORD.findall(text) if " " in text and len(text) < 200 else ())
        if ":" in text and WORD.fullmatch(text.partition(":")[0]):
            self.words.add(text.partition(":")[0])

    def _dotted(self, text: str) -> None:
        """Names in a string that holds nothing but names: a sentence that mentions one loads nothing."""
        parts = text.split()
        if len(parts) < 2 or all(DOTTED.fullmatch(part) for part in parts):
            self.names.update(DOTTED.findall(text))

    def _joined(self, node: ast.JoinedStr) -> ast.AST | None:
        whole = "".join(_literal(part) or "*" for part in node.values)
        self.paths.update(paths_in(whole))
        self._dotted(whole)
        self.imports.update(imports_in(whole))
        return None

    def _binary(self, node: ast.BinOp) -> None:
        if is_path_expression(node):
            self.places.expressions.append(node)

    def _call(self, node: ast.Call) -> None:
        name = _called(node.func)
        self._table_call(node)
        if name in _LISTING and not (
            isinstance(node.func, ast.Attribute) and _called(node.func.value) == "ast"
        ):
            self.flags |= Flag.LISTS
        if name in _WALKING:
            self.flags |= Flag.WALKS_PACKAGES
        if name in _SPAWNING:
            self.flags |= Flag.SPAWNS
        if name == "entry_points":
            self.flags |= Flag.ENTRY_POINTS
        if name in _LOADING or (isinstance(node.func, ast.Name) and name in {"exec", "eval"}):
            self.flags |= Flag.DYNAMIC
        if name in _IMPORTING and node.args:
            self._import_call(node.args[0])
        if is_listing(node):
            self.places.listings.append(node)
        elif is_path_expression(node):
            self.places.expressions.append(node)
        if name in {"syspath_prepend", "addsitedir"} or (
            name in {"insert", "append", "extend"}
            and isinstance(node.func, ast.Attribute)
            and _called(node.func.value) == "path"
        ):
            self.places.search_path.append(node)

    def _import_call(self, target: ast.expr) -> None:
        name = _literal(target)
        if name is not None:
            self.imports.add(name)
            return
        self.flags |= Flag.DYNAMIC
        values = self.places.values.get(target.id, []) if isinstance(target, ast.Name) else [target]
        for value in values:
            self._built(value)
        if isinstance(target, ast.Name):
            self._pending.add(target.id)

    def _built(self, value: ast.expr) -> None:
        """A module name put together from parts: without a literal beginning it may be any module near by."""
        while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Mod):
            value = value.left
            if _literal(value) is None and not isinstance(value, ast.BinOp):
                self.flags |= Flag.BUILDS_NAMES
        if isinstance(value, ast.JoinedStr) and _literal(value.values[0]) is None:
            tail = _literal(value.values[-1]) or ""
            if tail.startswith(".") and tail.strip("."):
                self.imports.add("*" + tail)
            else:
                self.flags |= Flag.BUILDS_NAMES

    def _attribute(self, node: ast.Attribute) -> None:
        self._place({node.attr})
        self._used(node, node.attr)
        if node.attr in {"remote", "pytester"}:
            self.flags |= Flag.SPAWNS
        if node.attr in _WALKING:
            self.flags |= Flag.WALKS_PACKAGES

    def _name(self, node: ast.Name) -> None:
        self._place({node.id})
        self._used(node, node.id)
        if node.id in {"pytester", "testdir"}:
            self.flags |= Flag.SPAWNS

    def _place(self, names: set[str]) -> None:
        if names & _OWN_PLACE:
            self.flags |= Flag.OWN_PLACE

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._value(target, node.value)
        if any(_called(target) == "pytest_plugins" for target in node.targets):
            values = ast.walk(node.value)
            self.imports.update(text for value in values if (text := _literal(value)))

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._value(node.target, node.value)

    def _subscript(self, node: ast.Subscript) -> None:
        self._looked_up.add(id(node.value))

    def _compare(self, node: ast.Compare) -> None:
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                self._looked_up.add(id(right))

    def _table_call(self, node: ast.Call) -> None:
        """``TABLE.get(key)`` looks up one key; ``TABLE.update(OTHER)`` takes the keys of another table in."""
        if not (isinstance(node.func, ast.Attribute) and _called(node.func.value).isupper()):
            return
        if node.func.attr in {"get", "pop", "setdefault", "update", "__contains__", "__getitem__"}:
            self._looked_up.add(id(node.func.value))
        if node.func.attr == "update":
            for argument in node.args:
                if _called(argument).isupper():
                    self._looked_up.add(id(argument))
                    self.tables.setdefault(_called(node.func.value), set()).add("#" + _called(argument))

    def _table(self, name: str, value: ast.Dict) -> None:
        keys = self.tables.setdefault(name, set())
        for key, item in zip(value.keys, value.values, strict=True):
            text = _literal(key) if key is not None else None
            if text is not None and DOTTED.fullmatch(text):
                keys.add(text)
                self._looked_up.add(id(key))
            elif key is None and _called(item).isupper():
                keys.add("#" + _called(item))
                self._looked_up.add(id(item))

    def _used(self, node: ast.Name | ast.Attribute, name: str) -> None:
        if name.isupper() and isinstance(node.ctx, ast.Load) and id(node) not in self._looked_up:
            self.whole.add(name)

    def _value(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if target.id.isupper() and isinstance(value, ast.Dict):
                self._table(target.id, value)
            self.places.values.setdefault(target.id, []).append(value)
            if target.id in self._pending:
                self._built(value)

    def _sequence(self, node: ast.List | ast.Tuple) -> None:
        for option, value in zip(node.elts, node.elts[1:], strict=False):
            if _literal(option) == "-m" and (module := _literal(value)):
                self.imports.update((module, module + ".__main__"))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST | None:
        if node.name in _SESSION_HOOKS:
            self.flags |= Flag.GLOBAL_HOOKS
        if {argument.arg for argument in node.args.args} & {"pytester", "testdir"}:
            self.flags |= Flag.SPAWNS
        return self._documented(node)

    def _documented(self, node: ast.AST) -> ast.AST | None:
        body: list[ast.stmt] = getattr(node, "body", [])
        first = body[0] if body else None
        if isinstance(first, ast.Expr):
            text = _literal(first.value)
            if text is not None and ">>>" not in text:
                return first
        return None
