"""Lets modules be imported that import GPU-only packages at their top without asking whether they are there.

Only *unguarded* imports of packages that are not installed are answered, with a stand-in that nothing is an
instance of. A guarded one (inside ``try``) still fails, so that every HAVE_... flag of the stack stays what it is:
a fake package in ``sys.modules`` would flip them all.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from proveout_cpu.repair import record

GPU_ONLY = ("triton", "transformer_engine", "modelopt", "nvidia_resiliency_ext")


def install(
    package: str,
    names: Iterable[str] = GPU_ONLY,
    without: tuple[str, ...] = (),
    inside: Mapping[str, str] | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Answer unguarded top-level imports of the absent ones of ``names`` in the modules of ``package``.

    Modules that start with one of ``without`` are left alone. ``inside`` maps a module to one that it imports
    inside a function without asking. ``wanted`` is asked when such a module is found; where it says no, the
    module is imported as it is.
    """
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    if absent and not any(isinstance(f, _Finder) and f.package == package for f in sys.meta_path):
        place = next((i for i, f in enumerate(sys.meta_path) if f is PathFinder), 0)
        sys.meta_path.insert(place, _Finder(package, absent, without, dict(inside or {}), wanted))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(
        self,
        package: str,
        absent: list[str],
        without: tuple[str, ...],
        inside: dict[str, str],
        wanted: Callable[[], bool],
    ) -> None:
        self.package, self._absent, self._without = package, absent, without
        self._inside, self._wanted = inside, wanted
        self._pattern = re.compile(rf"^(import|from) +({'|'.join(absent)})\b", re.MULTILINE)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self.package + ".") or fullname.startswith(self._without or "."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return spec
        source = spec.loader.get_source(fullname)
        inside = self._inside.get(fullname, "")
        if (
            source is not None
            and (self._pattern.search(source) or (inside and inside in source))
            and self._wanted()
        ):
            spec.loader = _Loader(fullname, spec.loader.path, self._absent, inside)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the module with its unguarded imports of ``absent`` packages answered."""

    def __init__(self, fullname: str, path: str, absent: list[str], inside: str) -> None:
        super().__init__(fullname, path)
        self._absent, self._inside = absent, inside

    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_source(fullname)
        if source is None:
            return None
        tree = ast.parse(source)
        tree.body = [new for node in tree.body for new in self._answer(node)]
        if self._inside:
            _InFunctions(self._inside, self._answer).visit(tree)
        return compile(ast.fix_missing_locations(tree), self.get_filename(fullname), "exec")

    def _answer(self, node: ast.stmt) -> list[ast.stmt]:
        names = self._names(node)
        if not names:
            return [node]
        record(
            f"absent_import:{self.name}",
            f"{self.name.replace('.', '/')}.py, line {node.lineno}",
            f"imports {ast.unparse(node)!r} without asking whether it is there",
        )
        text = "\n".join(f"{name} = __import__({__name__!r}, fromlist=['_']).{call}" for name, call in names)
        return [ast.copy_location(new, node) for new in ast.parse(text).body]

    def _names(self, node: ast.stmt) -> list[tuple[str, str]]:
        """Each name that the statement binds, with the expression that gives its stand-in; none if it is fine."""
        if isinstance(node, ast.Import) and any(self._is_absent(alias.name) for alias in node.names):
            return [
                (alias.asname or alias.name.split(".")[0], f"stand_in({alias.name!r})")
                for alias in node.names
            ]
        if isinstance(node, ast.ImportFrom) and not node.level and self._is_absent(node.module or ""):
            return [
                (alias.asname or alias.name, f"stand_in({node.module!r}, {alias.name!r})")
                for alias in node.names
            ]
        return []

    def _is_absent(self, module: str) -> bool:
        return module.split(".", maxsplit=1)[0] in self._absent


class _InFunctions(ast.NodeTransformer):
    """Answers ``from module import ...`` wherever it stands but in ``try``."""

    def __init__(self, module: str, answer: Callable[[ast.stmt], list[ast.stmt]]) -> None:
        self._module, self._answer = module, answer

    def visit_Try(self, node: ast.Try) -> ast.AST:
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        return self._answer(node) if node.module == self._module else node


class _Absent(ModuleType):
    """A package that is not there: its attributes are classes without instances."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0.0.0"
        if name.startswith("__"):
            raise AttributeError(name)
        child: Any = (
            _Absent(f"{self.__name__}.{name}") if name.islower() else type(name, (), {"__new__": _made})
        )
        if name in _DECORATORS:
            child = _decorator
        setattr(self, name, child)
        return child

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As a function or a decorator."""
        return _made(None, *args, **kwargs)


_DECORATORS = ("jit", "autotune", "heuristics")


def _decorator(*args: Any, **kwargs: Any) -> Any:
    return args[0] if len(args) == 1 and isinstance(args[0], FunctionType) else lambda function: function


def _made(_: object, *args: Any, **kwargs: Any) -> Any:
    """What calling a stand-in gives: a decorated function unchanged, else nothing."""
    if args and isinstance(args[0], FunctionType):
        return args[0]
    return (lambda function: function) if kwargs else None


def stand_in(module: str, name: str = "") -> Any:
    """The stand-in of ``module``, or of ``name`` in it; ImportError for a package that is there after all."""
    if name:
        return getattr(_Absent(module), name)
    if importlib.util.find_spec(module.split(".", maxsplit=1)[0]) is not None:
        return importlib.import_module(module)
    return _Absent(module)
