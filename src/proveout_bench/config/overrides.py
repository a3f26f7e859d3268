"""Dotted ``key=value`` overrides onto a dataclass tree, typed and safe."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec

from proveout_bench.errors import ConfigError

T = TypeVar("T")


def leaves(schema: type, prefix: str = "") -> dict[str, Any]:
    """All dotted keys of a dataclass tree with the (annotated) type of each."""
    hints = get_type_hints(schema, include_extras=True)
    found: dict[str, Any] = {}
    for item in dataclasses.fields(schema):
        kind = hints[item.name]
        key = prefix + item.name
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            found.update(leaves(kind, key + "."))
        else:
            found[key] = kind
    return found


def apply(schema: type[T], words: Iterable[str]) -> T:
    """Build ``schema`` from its defaults and ``key=value`` words; a later word for a key wins.

    Raises:
        ConfigError: a word without ``=``, an unknown key (the nearest is named), a value that does not fit.
    """
    known = leaves(schema)
    tree: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"override {word!r} is not of the form key=value{_nearest(key, known)}")
        if key not in known:
            raise ConfigError(f"unknown key {key!r}{_nearest(key, known)}")
        _put(tree, key, _convert(key, text, known[key]))
    return _build(schema, tree)


def _convert(key: str, text: str, kind: Any) -> Any:
    try:
        value = msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"key {key!r}: value {text!r} does not fit: {error}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"key {key!r}: value {text!r} is not a finite number")
    return value


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    *path, leaf = key.split(".")
    for part in path:
        tree = tree.setdefault(part, {})
    tree[leaf] = value


def _build(schema: type[T], tree: Mapping[str, Any]) -> T:
    hints = get_type_hints(schema)
    values = {
        name: _build(hints[name], value) if isinstance(value, dict) else value for name, value in tree.items()
    }
    return schema(**values)


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    last = key.rpartition(".")[2]
    same_leaf = [name for name in known if name.rpartition(".")[2] == last]
    close = same_leaf or difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    if not close:
        by_leaf = {name.rpartition(".")[2]: name for name in known}
        close = [by_leaf[leaf] for leaf in difflib.get_close_matches(last, by_leaf, n=1, cutoff=0.5)]
    return f"; nearest valid key: {close[0]}" if close else f"; valid keys: {', '.join(known)}"
