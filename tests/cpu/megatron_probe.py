"""Runs in the environment bridge-cpu: ``python megatron_probe.py CHECK [--without REPAIR]``; status 0 if it holds.

Each check needs the repair of the same name, so that the test can take it away and see the check fail.
"""

from __future__ import annotations

import os
import sys
import tempfile
from types import SimpleNamespace

import proveout_cpu.megatron as platform

if "--without" in sys.argv:
    left_out = sys.argv[sys.argv.index("--without") + 1]
    for group in ("ON_CPU", "LOCAL"):
        kept = tuple(item for item in getattr(platform, group) if item.name != left_out)
        setattr(platform, group, kept)
    if left_out == "absent_imports":
        platform.absent_imports.install = lambda *_, **__: None
platform.apply()

import torch  # noqa: E402

from proveout_cpu.torch_cuda import on_cpu  # noqa: E402


def cuda_generator() -> None:
    from megatron.core.tensor_parallel import random as parallel_random

    tracker = parallel_random.get_cuda_rng_tracker()
    with on_cpu():
        tracker.add("here", 7)
        outside = torch.get_rng_state()
        with tracker.fork("here"):
            first = torch.rand(3)
        assert torch.equal(outside, torch.get_rng_state())
        with tracker.fork("here"):
            second = torch.rand(3)
    expected = torch.rand(6, generator=torch.Generator().manual_seed(7))
    assert torch.equal(torch.cat([first, second]), expected)


def root_mean_square_norm() -> None:
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    settings = SimpleNamespace(
        normalization="RMSNorm",
        layernorm_zero_centered_gamma=True,
        sequence_parallel=True,
        persist_layer_norm=False,
        memory_efficient_layer_norm=False,
        params_dtype=torch.float32,
    )
    norm, x = WrappedTorchNorm(settings, 8, eps=1e-6), torch.randn(3, 8)
    assert norm.weight.sequence_parallel
    assert torch.allclose(norm(x), torch.nn.RMSNorm(8, eps=1e-6)(x))
    settings.layernorm_zero_centered_gamma = settings.sequence_parallel = False
    assert isinstance(WrappedTorchNorm(settings, 8), torch.nn.RMSNorm)


def all_to_all_splits() -> None:
    import numpy
    from megatron.core.transformer.moe import token_dispatcher

    moved = token_dispatcher.maybe_move_tensor_to_cpu(torch.tensor([1, 2]), as_numpy=True)
    assert isinstance(moved, numpy.ndarray)
    assert token_dispatcher.maybe_move_tensor_to_cpu(3) == 3


def offload() -> None:
    from megatron.core.distributed import param_and_grad_buffer

    data = torch.arange(4.0)
    held = SimpleNamespace(grad_data=None, param_data=data, param_data_cpu=None)
    with on_cpu():
        param_and_grad_buffer._ParamAndGradBuffer.offload_to_cpu(held)
        assert data.untyped_storage().size() == 0
        param_and_grad_buffer._ParamAndGradBuffer.reload_from_cpu(held)
    assert data.tolist() == [0.0, 1.0, 2.0, 3.0]


def transformer_engine_flags() -> None:
    from megatron.bridge.peft import module_matcher, utils

    flags = {name: value for module in (utils, module_matcher) for name, value in vars(module).items()}
    wrong = [name for name, value in flags.items() if name.startswith("HAVE_TE") and value]
    assert not wrong, wrong


def absent_imports() -> None:
    import torch.distributed as dist
    import transformers
    from megatron.bridge import AutoBridge
    from megatron.bridge.models.gpt_provider import local_layer_spec
    from megatron.core.transformer.enums import AttnBackend

    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    model = transformers.Qwen2ForCausalLM(config).eval()
    ids = torch.randint(0, 64, (2, 12))
    with tempfile.TemporaryDirectory() as folder, on_cpu():
        model.save_pretrained(folder)
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=0, world_size=1)
        bridge = AutoBridge.from_hf_pretrained(folder, torch_dtype=torch.float32)
        provider = bridge.to_megatron_provider(load_weights=True)
        provider.transformer_layer_spec = local_layer_spec
        provider.attention_backend = AttnBackend.auto
        provider.pipeline_dtype = provider.params_dtype
        for name in ("masked_softmax_fusion", "apply_rope_fusion", "persist_layer_norm"):
            setattr(provider, name, False)
        provider.finalize()
        provider.initialize_model_parallel(seed=0)
        built = provider.provide_distributed_model(use_cpu_initialization=True, wrap_with_ddp=False)
        apart = (built[0](ids, torch.arange(12).expand(2, -1), None) - model(ids).logits).abs().max()
        assert float(apart) < 1e-5, float(apart)
        exported = dict(bridge.export_hf_weights(built, cpu=True, show_progress=False))
        assert all(torch.equal(exported[name], weight) for name, weight in model.state_dict().items())
        bridge.save_hf_pretrained(built, f"{folder}/saved", show_progress=False)
        assert os.path.isfile(f"{folder}/saved/model.safetensors")  # noqa: PTH113
        dist.destroy_process_group()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("holds")
