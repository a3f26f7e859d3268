"""Facts of a Python file, read from its syntax tree."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterator

from proveout.pytest_plugin.impacted.facts import Facts, Flag
from proveout.pytest_plugin.impacted.text import DOTTED, WORD, imports_in, paths_in, text_facts

_LISTING = {"glob", "rglob", "iglob", "iterdir", "listdir", "walk", "scandir", "files", "contents", "list_templates"}
_WALKING = {"iter_modules", "walk_packages"}
_IMPORTING = {"import_module", "__import__", "importorskip", "run_module", "find_spec", "resolve_name", "reload"}
_LOADING = {"run_path", "spec_from_file_location", "SourceFileLoader", "exec_module", "locate"}
_PATH_CALLS = {
    "join", "joinpath", "Path", "PurePath", "PosixPath", "open", "glob", "rglob", "iglob", "listdir", "walk", "scandir",
    "files", "with_name", "with_suffix", "abspath", "realpath", "copy", "copytree", "copyfile", "load", "exists",
    "isfile", "isdir", "iterdir", "FileSystemLoader", "PackageLoader", "get_data", "read_text", "chdir", "datadir",
}  # fmt: skip
_SPAWNING_MODULES = {"ray", "subprocess", "multiprocessing", "concurrent", "torch.multiprocessing", "pty", "pexpect"}
_SPAWNING = {
    "remote", "Popen", "Process", "Pool", "ProcessPoolExecutor", "spawn", "fork", "posix_spawn", "system", "popen",
    "create_subprocess_exec", "create_subprocess_shell", "check_call", "check_output", "getoutput", "execv", "execvp",
    "pytester", "testdir", "runpytest_subprocess",
}  # fmt: skip
_OWN_PLACE = {"__file__", "__path__", "__spec__", "getcwd", "cwd", "resources", "rootpath", "rootdir", "invocation_params"}
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
    return Facts(
        imports=tuple(sorted(reader.imports)),
        names=tuple(sorted(reader.names)),
        words=tuple(sorted(reader.words)),
        paths=tuple(sorted(reader.paths)),
        dirs=tuple(sorted(reader.dirs)),
        roots=tuple(sorted(reader.roots)),
        climbs=reader.climbs,
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
        self.dirs: set[str] = set()
        self.roots: set[str] = set()
        self.climbs = 0
        self.flags = Flag(0)
        self._handlers = {
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Constant: self._constant,
            ast.JoinedStr: self._joined,
            ast.BinOp: self._binary,
            ast.Call: self._call,
            ast.Attribute: self._attribute,
            ast.Name: self._name,
            ast.Subscript: self._subscript,
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
            if alias.name.split(".")[0] in _SPAWNING_MODULES or alias.name in _SPAWNING_MODULES:
                self.flags |= Flag.SPAWNS

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        self.imports.add(module)
        if not node.level and module.split(".")[0] in _SPAWNING_MODULES | {"torch.multiprocessing"}:
            self.flags |= Flag.SPAWNS
        if module == "importlib":
            self._place({alias.name for alias in node.names})
        separator = "" if module.endswith(".") else "."
        self.imports.update(module + separator + alias.name for alias in node.names if alias.name != "*")

    def _constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._text(node.value)
        elif isinstance(node.value, bytes) and len(node.value) < 20_000:
            self._text(node.value.decode("utf-8", "replace"))

    def _text(self, text: str) -> None:
        if len(text) < 2:
            return
        if WORD.fullmatch(text):
            self.words.add(text)
            return
        self.names.update(DOTTED.findall(text))
        self.paths.update(paths_in(text))
        if "import" in text or "-m" in text:
            self.imports.update(imports_in(text))
        self.words.update(WORD.findall(text) if " " in text and len(text) < 200 else ())
        if ":" in text and WORD.fullmatch(text.partition(":")[0]):
            self.words.add(text.partition(":")[0])

    def _joined(self, node: ast.JoinedStr) -> ast.AST | None:
        parts = [_literal(part) or "*" for part in node.values]
        if parts and parts[0] == "*":
            self.flags |= Flag.BUILDS_NAMES
        whole = "".join(parts)
        self.paths.update(paths_in(whole))
        self.names.update(DOTTED.findall(whole))
        self.imports.update(imports_in(whole))
        return None

    def _binary(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Div):
            chain, rest = self._chain(node)
            if chain:
                self.dirs.add("/".join(chain))
                self.dirs.update("/".join(chain[:end]) for end in range(1, len(chain)))
            if rest is not None and "tmp" in ast.unparse(rest)[:40]:
                self.dirs.difference_update("/".join(chain[:end]) for end in range(1, len(chain) + 1))
        elif isinstance(node.op, ast.Add | ast.Mod) and _literal(node.left) is None:
            self.flags |= Flag.BUILDS_NAMES

    def _chain(self, node: ast.AST) -> tuple[list[str], ast.AST | None]:
        """The literal segments at the start of ``root / "a" / "b" / name`` and the root."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            return [], node
        chain, root = self._chain(node.left)
        segment = _literal(node.right)
        complete = len(chain) == _divisions(node.left)
        if segment and complete:
            chain = [*chain, segment.strip("/")]
        return chain, root

    def _call(self, node: ast.Call) -> None:
        name = _called(node.func)
        if name in _LISTING:
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
            target = _literal(node.args[0])
            if target is None:
                self.flags |= Flag.DYNAMIC
            else:
                self.imports.add(target)
        if name in _PATH_CALLS:
            self._path_arguments(node)
        if name == "dirname":
            self.climbs += 1
        if name in {"insert", "append", "extend", "syspath_prepend", "addsitedir"}:
            self._search_path(node, name)

    def _path_arguments(self, node: ast.Call) -> None:
        literals = [(_literal(argument) or "").strip("/") for argument in node.args]
        joined: list[str] = []
        for literal in literals:
            if literal:
                joined.append(literal)
                self.dirs.add("/".join(joined))
                if "/" in literal:
                    self.dirs.add(literal)
            else:
                joined = []

    def _search_path(self, node: ast.Call, name: str) -> None:
        on_path = name in {"syspath_prepend", "addsitedir"} or (
            isinstance(node.func, ast.Attribute) and _called(node.func.value) == "path"
        )
        if not on_path:
            return
        for inner in ast.walk(node):
            text = _literal(inner)
            if text:
                self.roots.add(text.strip("/"))

    def _attribute(self, node: ast.Attribute) -> None:
        if node.attr == "parent":
            self.climbs += 1
        self._place({node.attr})
        if node.attr in {"remote", "pytester"}:
            self.flags |= Flag.SPAWNS
        if node.attr in _IMPORTING | _WALKING and not isinstance(node.ctx, ast.Store):
            self._handed_on(node.attr)

    def _subscript(self, node: ast.Subscript) -> None:
        if _called(node.value) == "parents":
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            self.climbs += index + 1 if isinstance(index, int) else 99

    def _name(self, node: ast.Name) -> None:
        self._place({node.id})
        if node.id in {"pytester", "testdir"}:
            self.flags |= Flag.SPAWNS

    def _handed_on(self, name: str) -> None:
        if name in _WALKING:
            self.flags |= Flag.WALKS_PACKAGES

    def _place(self, names: set[str]) -> None:
        if names & _OWN_PLACE:
            self.flags |= Flag.OWN_PLACE

    def _assign(self, node: ast.Assign) -> None:
        if any(_called(target) == "pytest_plugins" for target in node.targets):
            values = ast.walk(node.value)
            self.imports.update(text for value in values if (text := _literal(value)))

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


def _divisions(node: ast.AST) -> int:
    count = 0
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        node, count = node.left, count + 1
    return count
