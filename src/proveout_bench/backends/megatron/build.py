"""From a Hugging Face checkpoint to a Megatron model through the Bridge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from proveout_bench import ranks
from proveout_bench.backends.megatron.limits import MODULES, targets_of
from proveout_bench.config.schema import RunConfig
from proveout_bench.faults import Faults
from proveout_bench.tokenizer import CharacterTokenizer
from proveout_cpu.megatron import transformer_engine_is_there
from proveout_cpu.torch_cuda import on_cpu

START = "start"


@dataclass(frozen=True)
class Built:
    """The Bridge, the wrapped model (one chunk), Megatron's configuration of it, and the adapters if there are any."""

    bridge: Any
    model: list[Any]
    settings: Any
    lora: Any


def start_folder(config: RunConfig, model: Any) -> Path:
    """The checkpoint that the Bridge imports: as configured, else the tiny ``model``, which rank 0 writes down."""
    if config.model:
        return Path(config.model)
    folder = Path(config.output_dir) / START
    if ranks.first():
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(folder)
        CharacterTokenizer().save(folder)
    ranks.barrier()
    return folder


def build(config: RunConfig, folder: Path, faults: Faults) -> Built:
    """Import ``folder`` with the layout of ``config``, float32, wrapped for data parallelism.

    The global random state stays as it was.
    """
    from megatron.bridge import AutoBridge
    from megatron.core.distributed import DistributedDataParallelConfig

    with torch.random.fork_rng(devices=[]), on_cpu():
        bridge = AutoBridge.from_hf_pretrained(str(folder), torch_dtype=torch.float32)
        provider = bridge.to_megatron_provider(load_weights=True)
        _settle(provider, config)
        faults.provider(provider)
        provider.finalize()
        provider.initialize_model_parallel(seed=config.seed)
        lora = _lora(config) if config.lora.rank else None
        if lora is not None:
            provider.register_pre_wrap_hook(lambda chunks: faults.bound(lora(chunks, training=True)))
        model = provider.provide_distributed_model(
            use_cpu_initialization=config.runtime.device == "cpu",
            wrap_with_ddp=True,
            ddp_config=DistributedDataParallelConfig(
                grad_reduce_in_fp32=True,
                overlap_grad_reduce=False,
                use_distributed_optimizer=config.megatron.distributed_optimizer,
            ),
        )
    return Built(bridge, model, model[0].module.config, lora)


def _settle(provider: Any, config: RunConfig) -> None:
    """The layout, and without CUDA or Transformer Engine the layers and settings that need no kernel of its own."""
    layout = config.megatron
    fields: dict[str, Any] = {
        "tensor_model_parallel_size": layout.tp,
        "pipeline_model_parallel_size": layout.pp,
        "expert_model_parallel_size": layout.ep,
        "sequence_parallel": layout.sequence_parallel,
        "params_dtype": torch.float32,
        "pipeline_dtype": torch.float32,
        "should_pad_vocab": False,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }
    if config.runtime.device == "cpu" or not transformer_engine_is_there():
        from megatron.bridge.models.gpt_provider import local_layer_spec
        from megatron.core.transformer.enums import AttnBackend

        fields |= {
            "transformer_layer_spec": local_layer_spec,
            "attention_backend": AttnBackend.auto,
            "masked_softmax_fusion": False,
            "apply_rope_fusion": False,
            "persist_layer_norm": False,
            "bias_activation_fusion": False,
            "bias_dropout_fusion": False,
            "gradient_accumulation_fusion": False,
            "moe_grouped_gemm": False,
            "moe_permute_fusion": False,
        }
    if config.runtime.device == "cpu":
        fields["use_cpu_initialization"] = True
    for name, value in fields.items():
        if hasattr(provider, name):
            setattr(provider, name, value)


def _lora(config: RunConfig) -> Any:
    from megatron.bridge.peft.lora import LoRA

    modules = list(dict.fromkeys(MODULES[name] for name in targets_of(config)))
    alpha = config.lora.alpha
    return LoRA(
        target_modules=modules,
        dim=config.lora.rank,
        alpha=int(alpha) if alpha.is_integer() else alpha,
        dropout=0.0,
    )
