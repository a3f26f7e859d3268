"""Repairs of verl itself: what stands in the way of a worker without an accelerator."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from proveout_cpu import torch_cuda
from proveout_cpu.repair import Repair, expect, rebind, repair

REFUSED = "proveout_cpu: refused"


@repair(
    "verl.utils.distributed",
    "verl/utils/distributed.py",
    "names gloo for the CPU twice where the device is the CPU, which torch refuses",
)
def one_backend(module: ModuleType) -> None:
    """The process group's backend is gloo."""
    plain = expect(
        module,
        "initialize_global_process_group_ray",
        'f"cpu:gloo,{get_device_name()}:{get_nccl_backend()}"',
        parameters=("timeout_second", "backend"),
    )

    def initialize(timeout_second: Any = None, backend: Any = None) -> Any:
        return plain(timeout_second, backend or "cpu:gloo")

    rebind(module, "initialize_global_process_group_ray", initialize)


@repair(
    "verl.workers.engine_workers",
    "verl/workers/engine_workers.py",
    "Megatron's calls name CUDA devices in whichever thread Ray runs a method",
)
def cuda_means_cpu(module: ModuleType) -> None:
    """In every thread of a training worker CUDA devices mean the CPU; the worker says what it imported and trains."""
    plain = expect(module, "TrainingWorker.reset", "self.engine.initialize()", parameters=("self",))
    torch_cuda.everywhere()

    def reset(self: Any) -> Any:
        try:
            done = plain(self)
        finally:
            say_imports()
        say_trainable(self.engine)
        return done

    reset.__dict__.update(plain.__dict__)
    reset.__name__ = plain.__name__
    module.TrainingWorker.reset = reset


@repair(
    "verl.workers.engine.megatron.utils",
    "verl/workers/engine/megatron/utils.py",
    "seeds Megatron's generators only where a GPU is there",
)
def seed_megatron(module: ModuleType) -> None:
    """Megatron's tracker of random states is seeded, as on a GPU; nothing to do where it always is."""
    expect(module, "set_random_seed", "model_parallel_cuda_manual_seed(seed)", parameters=("seed",))
    if hasattr(module, "is_cuda_available"):
        vars(module)["is_cuda_available"] = True


@repair(
    "verl.workers.config.engine",
    "verl/workers/config/engine.py",
    "takes half precision alone, which a CPU computes slowly and too coarsely to compare weights exactly",
)
def full_precision(module: ModuleType) -> None:
    """``megatron.dtype=float32`` is taken too; verl's optimizer and model code know it."""
    plain = expect(
        module,
        "McoreEngineConfig.__post_init__",
        'self.dtype in ["bfloat16", "float16"]',
        parameters=("self",),
    )

    def post_init(self: Any) -> None:
        if self.dtype != "float32":
            plain(self)
            return
        self.__dict__["dtype"] = "bfloat16"
        plain(self)
        self.__dict__["dtype"] = "float32"

    module.McoreEngineConfig.__post_init__ = post_init


@repair(
    "verl.utils.megatron_utils",
    "verl/utils/megatron_utils.py",
    "moves weights between device and host, frees what it moved (on a CPU the same memory), and expects the "
    "parameter buffers that only a distributed optimizer has",
)
def one_memory(module: ModuleType) -> None:
    """Nothing is moved: device and host are the same memory."""
    for name, first in (
        ("load_megatron_model_to_gpu", "models"),
        ("offload_megatron_model_to_cpu", "models"),
        ("load_megatron_optimizer", "optimizers"),
        ("offload_megatron_optimizer", "optimizers"),
    ):
        expect(module, name, parameters=(first,))
        rebind(module, name, lambda *_, **__: None)


@repair(
    "verl.utils.checkpoint.megatron_checkpoint_manager",
    "verl/utils/checkpoint/megatron_checkpoint_manager.py",
    "saves a distributed optimizer, whose state resumes wrongly, and in silence, without Transformer Engine",
)
def no_distributed_optimizer(module: ModuleType) -> None:
    """A checkpoint of a distributed optimizer is refused, at saving and at loading."""
    manager = expect(module, "MegatronCheckpointManager")
    for name in ("save_checkpoint", "load_checkpoint"):
        setattr(manager, name, _refusing(expect(manager, name, parameters=("self", "local_path"))))


@repair(
    "verl.utils.checkpoint.megatron_checkpoint_manager",
    "verl/utils/checkpoint/megatron_checkpoint_manager.py",
    "lays out the optimizer's state along the model's shards after loading the weights has put tensors in their place",
)
def fresh_layout(module: ModuleType) -> None:
    """At loading, the optimizer is laid out along shards of its own making; without a distributed optimizer verl
    stops there ("Param id 0 does not match any model sharded param")."""
    manager = expect(module, "MegatronCheckpointManager")
    expect(manager, "_build_model_sharded_state_dict", parameters=("self", "metadata"))
    plain = expect(
        manager,
        "_build_optimizer_state_dict",
        parameters=("self", "model_sharded_state_dict", "metadata", "is_loading"),
    )

    def build(self: Any, shards: dict[str, Any], metadata: dict[str, Any], is_loading: bool = False) -> Any:
        return plain(
            self,
            self._build_model_sharded_state_dict(metadata) if is_loading else shards,
            metadata,
            is_loading,
        )

    manager._build_optimizer_state_dict = build


def _refusing(plain: Any) -> Any:
    @functools.wraps(plain)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, "use_distributed_optimizer", True) and self.optimizer is not None:
            raise RuntimeError(
                f"{REFUSED}: checkpoints of a distributed optimizer resume wrongly without Transformer Engine; "
                "set megatron.use_distributed_optimizer=False for actor and critic"
            )
        return plain(self, *args, **kwargs)

    return call


def say_imports() -> None:
    """One line for each part of the stack that this worker imported, and where from."""
    for name in ("megatron.bridge", "megatron.core", "verl"):
        loaded = sys.modules.get(name)
        if loaded is not None:
            print(f"[import] worker {name} {getattr(loaded, '__file__', None) or ''}", flush=True)


def say_trainable(engine: Any) -> None:
    """One line of how many parameters an engine that has an optimizer trains."""
    if getattr(engine, "optimizer", None) is not None:
        sizes = [
            (weight.numel(), weight.requires_grad) for part in engine.module for weight in part.parameters()
        ]
        trained = sum(count for count, yes in sizes if yes)
        print(f"trainable parameters: {trained:,} of {sum(count for count, _ in sizes):,}", flush=True)


REPAIRS: tuple[Repair, ...] = (
    one_backend,
    full_precision,
    cuda_means_cpu,
    seed_megatron,
    one_memory,
    no_distributed_optimizer,
    fresh_layout,
)
