"""The model that a change names, where it can be had without the network."""

from __future__ import annotations

from pathlib import Path

from proveout.domain.loop import LoopContext


def own_model(context: LoopContext) -> str:
    """The directory that the plan names as its model, "" for a name on the hub or none at all.

    What is written as a path stays one although nothing is there: the run then fails on it, and no other model
    takes its place.
    """
    named = context.model or ""
    is_path = named.startswith(("/", "."))
    return str(Path(named).absolute()) if is_path or (named and Path(named).is_dir()) else ""
