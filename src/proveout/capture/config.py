"""The resolved configuration of an attempt, as dotted keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proveout.capture.configs.registry import CONFIG_READERS
from proveout.domain.finding import Finding, Severity, Where
from proveout.domain.step import Source


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; lists stay values."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def read_config(source: Source | None, base: Path) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    """The flattened configuration, or None with a finding that says why it cannot be read."""
    if source is None:
        return None, ()
    path = base / source.path
    reader = CONFIG_READERS.get(source.format)
    try:
        if reader is None:
            raise ValueError(f"no reader for format {source.format!r}")
        return flatten(reader(path)), ()
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        finding = Finding(
            id="capture.config.unreadable",
            severity=Severity.WARNING,
            what=f"the resolved configuration cannot be read: {error}",
            where=Where(file=source.path),
            remedy="criteria that look at the configuration cannot hold without it",
        )
        return None, (finding,)
