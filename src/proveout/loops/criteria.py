"""Criteria that every loop that runs from a checkout has."""

from __future__ import annotations

from pathlib import Path

from proveout.domain.checkout import import_roots
from proveout.domain.loop import LoopContext
from proveout.domain.step import Criterion


def provenance(context: LoopContext, role: str) -> tuple[Criterion, ...]:
    """A worker imports Megatron from the trees under test; nothing where no Bridge or Megatron-Core is given.

    The Megatron-Core of a Bridge whose submodule is empty cannot be under test, so it is not asked for.
    """
    roots = import_roots(context.checkouts, role)
    expected = {
        module: root
        for module, root in roots.items()
        if module.startswith("megatron.")
        and (module == "megatron.bridge" or "mcore" in context.checkouts or Path(root, "megatron").is_dir())
    }
    if not expected:
        return ()
    return (Criterion(kind="provenance", params={"expected": expected, "by": ["worker"]}),)
