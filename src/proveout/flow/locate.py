"""The paths of a step for one attempt: its own directory filled in, and copies where the originals may vanish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.step import ATTEMPT_DIR, Step


def located(step: Step, root: Path) -> Step:
    """``step`` with ``{attempt_dir}`` filled in wherever evidence is looked for."""
    return with_paths(step, lambda path: path.replace(ATTEMPT_DIR, str(root)))


def outside(step: Step, root: Path) -> tuple[str, ...]:
    """Absolute paths beyond the attempt directory from which a located step's evidence is read."""
    sources = [source.path for source in (*step.metrics, *((step.config,) if step.config else ()))]
    files = [artifact.path for artifact in step.artifacts if artifact.path.endswith(".json")]
    named = [
        value
        for criterion in step.criteria
        for value in criterion.params.values()
        if isinstance(value, str) and value.endswith(".json")
    ]
    every = dict.fromkeys((*sources, *files, *named))
    return tuple(path for path in every if path.startswith("/") and not Path(path).is_relative_to(root))


def with_paths(step: Step, change: Callable[[str], str]) -> Step:
    """``step`` with every path of its evidence changed."""
    replace = msgspec.structs.replace
    return replace(
        step,
        artifacts=tuple(replace(item, path=change(item.path)) for item in step.artifacts),
        metrics=tuple(replace(item, path=change(item.path)) for item in step.metrics),
        config=replace(step.config, path=change(step.config.path)) if step.config else None,
        criteria=tuple(replace(item, params=_changed(item.params, change)) for item in step.criteria),
    )


def _changed(params: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    return {
        key: change(value) if isinstance(value, str) and value.endswith(".json") else value
        for key, value in params.items()
    }
