"""Real NeMo-RL without a GPU: Ray, its Megatron policy workers, Megatron-Bridge and Megatron-Core on CPU cores.

Two parts are stand-ins: transformers samples behind the message flow that brings weights to vLLM (``vllm_worker``),
and a plain sampler over the policy's own Megatron model serves backend ``megatron`` (``megatron_generation``).
"""

from __future__ import annotations

from types import ModuleType

from proveout_cpu import bytecode, megatron, megatron_local, python311
from proveout_cpu.after_import import after_import
from proveout_cpu.nemo_rl import cluster, devices, megatron_generation, policy, replaced, workers
from proveout_cpu.repair import Repair, run

NAME = "cpu-nemo-rl"
VARIABLE = "PROVEOUT_PLATFORM"
REPAIRS: tuple[Repair, ...] = (
    *megatron_local.REPAIRS,
    *cluster.REPAIRS,
    *workers.REPAIRS,
    *devices.REPAIRS,
    *policy.REPAIRS,
    *megatron_generation.REPAIRS,
)


def install() -> None:
    """Prepare this process. Imports neither torch nor Ray: Ray's own helpers start with it too."""
    bytecode.keep_elsewhere()
    python311.typed_dict()
    megatron.apply(state_space=True)
    after_import("torch", devices.prepare)
    replaced.install()
    for item in REPAIRS:
        after_import(item.module, _Hook(item))


class _Hook:
    def __init__(self, item: Repair) -> None:
        self._item = item

    def __call__(self, module: ModuleType) -> None:
        if self._item.module == "ray" or devices.no_cuda():
            run(self._item, module)
