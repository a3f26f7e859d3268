"""NeMo-RL's configuration inheritance: ``defaults:`` names parents, depth first, the last one wins.

Source of the rules: NeMo-RL ``nemo_rl/utils/config.py``.
"""

from __future__ import annotations

import posixpath
from typing import Any

from proveout.domain.config.interpolate import MISSING
from proveout.domain.errors import UsageError
from proveout.domain.tree import Tree

_DEEPEST = 32


def load(tree: Tree, relative: str, _chain: tuple[str, ...] = ()) -> dict[str, Any]:
    """The composed configuration of ``relative``; parents are relative to the file that names them.

    The result is shared and must not be changed. Raises UsageError for a parent that does not exist, or a
    file that inherits from itself.
    """
    if relative in _chain or len(_chain) > _DEEPEST:
        raise UsageError(
            f"inherits from itself: {' -> '.join((*_chain, relative))}", where=str(tree.path(relative))
        )
    if ("inherit", relative) in tree.kept:
        kept: dict[str, Any] = tree.kept["inherit", relative]
        return kept
    composed = tree.kept["inherit", relative] = _compose(tree, relative, _chain)
    return composed


def _compose(tree: Tree, relative: str, chain: tuple[str, ...]) -> dict[str, Any]:
    own = dict(tree.yaml(relative))
    parents = own.pop("defaults", None)
    if parents is None:
        return own
    composed: dict[str, Any] = {}
    for parent in [parents] if isinstance(parents, str) else list(parents):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(relative), str(parent)))
        if not tree.exists(path):
            raise UsageError(
                f"names a parent that does not exist: {parent}", where=f"{tree.path(relative)} (defaults)"
            )
        composed = merge(composed, load(tree, path, (*chain, relative)))
    return merge(composed, own)


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``base`` with ``over`` merged in; a top section marked ``_override_: true`` replaces instead."""
    base, over = dict(base), dict(over)
    for key, value in over.items():
        if isinstance(value, dict) and value.get("_override_", False):
            over[key] = {name: item for name, item in value.items() if name != "_override_"}
            base.pop(key, None)
    return deep_merge(base, over)


def deep_merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """OmegaConf's merge: mappings recursively, anything else replaced; ``???`` never hides a value."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = deep_merge(old, value)
        elif not (value == MISSING and old is not None):
            merged[key] = value
    return merged
