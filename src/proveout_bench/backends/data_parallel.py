"""Starts the ranks of backend ``hf``.

Every rank runs the whole loop on the same batches, so that the loss is that of one process.
"""

from __future__ import annotations

from collections.abc import Callable

from proveout_bench.backends.megatron.launch import spread
from proveout_bench.config.schema import RunConfig


def start(config: RunConfig, run: Callable[[], None]) -> None:
    """Call ``run`` on each of ``runtime.ranks`` x ``runtime.tp`` processes: forks of this one, which ``group.join``."""
    world = config.runtime.ranks * config.runtime.tp
    if world == 1:
        run()
    else:
        spread(config, world, run)
