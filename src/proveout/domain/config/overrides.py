"""Command-line overrides, applied under struct mode as Hydra applies them.

``key=value`` needs a key that exists, ``+key=value`` one that does not, ``++key=value`` takes both and
``~key`` deletes. Source of the rules: Hydra ``hydra/_internal/config_loader_impl.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from proveout.domain.config.interpolate import ABSENT, lookup, raw
from proveout.domain.config.values import OverrideValueError, parse_value
from proveout.domain.errors import nearest


class Override(msgspec.Struct, frozen=True):
    """One override word. ``sign`` is '', '+', '++' or '~'."""

    text: str
    sign: str
    key: str
    value: Any = None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a word is rejected (or has no effect): ``kind`` is syntax, unknown, exists, mismatch or
    type."""

    kind: str
    text: str
    key: str
    what: str
    remedy: str = ""


@lru_cache(maxsize=8192)
def parse(text: str) -> Override | Problem:
    """The override that a word holds, or what is wrong with it."""
    sign = next((mark for mark in ("++", "+", "~") if text.startswith(mark)), "")
    key, equals, value = text[len(sign) :].partition("=")
    key = key.strip()
    if not key or (not equals and sign != "~"):
        return Problem(
            kind="syntax", text=text, key=key, what=f"{text!r} is no override", remedy="write it as key=value"
        )
    if not all(
        part.replace("-", "_").replace("@", "_").replace("/", "_").replace("$", "_").isidentifier()
        or part.isdigit()
        for part in key.split(".")
    ):
        return Problem(kind="syntax", text=text, key=key, what=f"{key!r} is no dotted key")
    try:
        return Override(text, sign, key, parse_value(value) if equals else None)
    except OverrideValueError as problem:
        return Problem(
            kind="syntax", text=text, key=key, what=f"the value of {key} does not parse: {problem}"
        )


def apply(config: dict[str, Any], words: Iterable[str]) -> tuple[dict[str, Any], list[Problem]]:
    """``config`` with all overrides applied in order, and what is wrong with those that were left out."""
    result: dict[str, Any] = _copied(config)
    problems: list[Problem] = []
    for word in words:
        override = parse(word)
        problem = override if isinstance(override, Problem) else _apply_one(result, override)
        if problem:
            problems.append(problem)
    return result, problems


def _copied(node: Any) -> Any:
    """A copy in which no two places share a node (a deep copy would keep what composed files share)."""
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(item) for item in node] if isinstance(node, list) else node


def _apply_one(config: dict[str, Any], override: Override) -> Problem | None:
    refused = _refused(config, override, raw(config, override.key))
    if refused is not None and refused.kind != "type":
        return refused
    if override.sign == "~":
        _parent(config, override.key).pop(override.key.rpartition(".")[2], None)
    else:
        _set(config, override)
    return refused


def _refused(config: dict[str, Any], override: Override, current: Any) -> Problem | None:
    key, value, what, kind, remedy = override.key, override.value, "", "", ""
    absent = current is ABSENT or (override.sign == "~" and current is None)
    if absent and override.sign in ("", "~"):
        return _unknown(config, override)
    if override.sign == "~":
        if "=" in override.text and value != current:
            kind, remedy = "mismatch", f"write ~{key}"
            what = f"{key} is {current!r} and not {value!r}, so it is not deleted"
    elif isinstance(value, list | dict) and _clash(current, value):
        kind = "mismatch"
        what = f"{key} is a {_KIND[type(current)]} and cannot be merged with a {_KIND[type(value)]}"
    elif override.sign == "+" and not absent and not isinstance(value, dict | list):
        if lookup(config, key) is not None:
            kind, remedy = "exists", f"drop the +, or write ++{key}=..."
            what = f"{key} exists already, so + is refused"
    elif override.sign == "" and isinstance(current, bool) and not _may_be_bool(value):
        kind, what = "type", f"{key} is true or false in the tree, and {value!r} is neither"
    return Problem(kind=kind, text=override.text, key=key, what=what, remedy=remedy) if kind else None


def _may_be_bool(value: Any) -> bool:
    return isinstance(value, bool | None) or (isinstance(value, str) and "$" in value)


_KIND: dict[type, str] = {dict: "mapping", list: "list"}


def _clash(current: Any, value: Any) -> bool:
    return isinstance(current, dict | list) and type(current) is not type(value)


def _set(config: dict[str, Any], override: Override) -> None:
    parent = _parent(config, override.key, create=True)
    leaf = override.key.rpartition(".")[2]
    if isinstance(parent, list):
        if leaf.isdigit() and int(leaf) < len(parent):
            parent[int(leaf)] = override.value
        return
    old = parent.get(leaf)
    if isinstance(old, dict) and isinstance(override.value, dict):
        old.update(override.value)
    else:
        parent[leaf] = _copied(override.value)


def _parent(config: dict[str, Any], key: str, create: bool = False) -> Any:
    node: Any = config
    for part in key.split(".")[:-1]:
        if isinstance(node, list):
            node = node[int(part)] if part.isdigit() and int(part) < len(node) else {}
            continue
        following = node.get(part)
        if not isinstance(following, dict | list):
            following = {}
            if create:
                node[part] = following
        node = following
    return node


def _unknown(config: Mapping[str, Any], override: Override) -> Problem:
    known = ""
    parts = override.key.split(".")
    for length in range(len(parts) - 1, 0, -1):
        if isinstance(raw(config, ".".join(parts[:length])), dict):
            known = ".".join(parts[:length])
            break
    scope = raw(config, known) if known else config
    unknown = parts[len(known.split(".")) if known else 0]
    guess = nearest(unknown, [str(name) for name in scope])
    elsewhere = [key for key in keys(config) if key.rpartition(".")[2] == parts[-1]]
    if guess and known:
        guess = guess.replace("'", f"'{known}.", 1)
    elif elsewhere:
        guess = f"; did you mean {min(elsewhere, key=len)!r}?"
    elif not guess:
        guess = nearest(override.key, list(keys(config)))
    return Problem(
        kind="unknown",
        text=override.text,
        key=override.key,
        what=f"no key {override.key}" + (f" ({known} has no {unknown})" if known else "") + guess,
        remedy=(
            "correct the key; only a key that the code reads beside its files may be added with "
            f"++{override.key}=..."
        ),
    )


def keys(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """All dotted leaf keys."""
    for name, value in config.items():
        full = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(value, dict) and value:
            yield from keys(value, full)
        else:
            yield full
