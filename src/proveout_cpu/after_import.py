"""Calls a function right after a module was imported, whoever imports it; at once if it is there already."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

Function = Callable[[ModuleType], None]


def after_import(name: str, function: Function) -> None:
    """Call ``function`` with the module ``name`` whenever it is loaded. What it raises, the import raises."""
    present = sys.modules.get(name)
    if present is not None and not _loading(present):
        function(present)
    _finder().waiting.setdefault(name, []).append(function)


def _loading(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _finder() -> _Finder:
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder
    made = _Finder()
    sys.meta_path.insert(0, made)
    return made


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the awaited modules as the finders behind it do, and wraps their loaders."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Function]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.waiting:
            return None
        spec = self._find(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.waiting[fullname])
        return spec

    def _find(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        later = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else [PathFinder]
        for finder in later:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Loads as ``inner`` does, then calls the functions. Stands in for ``inner`` in all else."""

    def __init__(self, inner: importlib.abc.Loader, functions: list[Function]) -> None:
        self._inner, self._functions = inner, functions

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        for function in self._functions:
            function(module)
