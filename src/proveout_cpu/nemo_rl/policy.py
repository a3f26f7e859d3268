"""Megatron-Bridge and Megatron-Core as NeMo-RL's policy workers set them up."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from proveout_cpu.nemo_rl.said import say_imports, say_trained
from proveout_cpu.repair import Repair, expect, repair

REFUSED = "proveout_cpu: refused"


class RefusedError(RuntimeError):
    """Something that this platform would do silently wrong."""


@repair(
    "megatron.bridge.training.initialize",
    "megatron/bridge/training/initialize.py",
    "requires CUDA unless told otherwise, compiles dataset helpers in C++, and warms up fused kernels",
)
def initialize(module: Any) -> None:
    """Initialise without CUDA, without helpers that RL does not use, without a warm-up."""
    plain = expect(module, "initialize_megatron", "if not allow_no_cuda", parameters=("cfg", "allow_no_cuda"))
    expect(module, "compile_helpers")
    expect(module, "_warmup_jit_function", parameters=("model_config", "micro_batch_size"))

    @functools.wraps(plain)
    def initialize_megatron(cfg: Any, allow_no_cuda: bool = False, *args: Any, **named: Any) -> Any:
        return plain(cfg, True, *args, **named)

    module.initialize_megatron = initialize_megatron
    module.compile_helpers = lambda *_, **__: None
    module._warmup_jit_function = lambda *_, **__: None


@repair(
    "megatron.bridge.models.gpt.gpt_builder",
    "megatron/bridge/models/gpt/gpt_builder.py",
    "the builder's default layers are Transformer Engine's",
)
def builder_layers(module: Any) -> None:
    """A builder that asks for Transformer Engine's layers gets Megatron's own."""
    expect(module, "transformer_engine_layer_spec")
    module.transformer_engine_layer_spec = expect(module, "local_layer_spec")


@repair(
    "megatron.core.optimizer.distrib_optimizer",
    "megatron/core/optimizer/distrib_optimizer.py",
    "a distributed optimizer's checkpoint resumes silently wrong without Transformer Engine",
)
def no_distributed_checkpoint(module: ModuleType) -> None:
    """Saving one is refused, so that no resume can go wrong unseen."""
    expect(module, "DistributedOptimizer.sharded_state_dict")

    def sharded_state_dict(self: Any, *args: Any, **named: Any) -> Any:
        raise RefusedError(
            f"{REFUSED}: a checkpoint of the distributed optimizer resumes silently wrong without Transformer "
            "Engine; set policy.megatron_cfg.optimizer.use_distributed_optimizer=false"
        )

    module.DistributedOptimizer.sharded_state_dict = sharded_state_dict


@repair(
    "nemo_rl.models.megatron.setup",
    "nemo_rl/models/megatron/setup.py",
    "nothing says from where a worker imports and what its adapter trains",
)
def said(module: Any) -> None:
    """Each policy worker names the files it imported, and the modules that an adapter was put on.

    Not a method of the worker: Ray has taken copies of those by the time the worker's module is imported.
    """
    made = expect(module, "setup_model_and_optimizer", "ModelAndOptimizerState")

    @functools.wraps(made)
    def setup_model_and_optimizer(*args: Any, **named: Any) -> Any:
        say_imports("worker", "nemo_rl", "megatron.bridge", "megatron.core")
        state = made(*args, **named)
        say_trained(state.model[0] if isinstance(state.model, list) else state.model)
        return state

    module.setup_model_and_optimizer = setup_model_and_optimizer


REPAIRS: tuple[Repair, ...] = (initialize, builder_layers, no_distributed_checkpoint, said)
