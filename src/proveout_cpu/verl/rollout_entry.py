"""Enters the rollout "hf" into verl's two tables of rollouts, when verl makes them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from proveout_cpu.repair import Repair, expect, repair

NAME = "hf"


@repair(
    "verl.workers.rollout.base", "verl/workers/rollout/base.py", "knows vLLM, SGLang and TensorRT-LLM alone"
)
def worker_side(module: ModuleType) -> None:
    """The training worker's side."""
    table = expect(module, "_ROLLOUT_REGISTRY")
    table[NAME, "async"] = "proveout_cpu.verl.rollout.ServerAdapter"


@repair(
    "verl.workers.rollout.replica",
    "verl/workers/rollout/replica.py",
    "knows vLLM, SGLang and TensorRT-LLM alone",
)
def server_side(module: ModuleType) -> None:
    """The server, through the registry that verl keeps for it."""
    expect(module, "RolloutReplicaRegistry.register", parameters=("name", "loader"))
    module.RolloutReplicaRegistry.register(NAME, _replica)


def _replica() -> Any:
    from proveout_cpu.verl.rollout import Replica

    return Replica


REPAIRS: tuple[Repair, ...] = (worker_side, server_side)
