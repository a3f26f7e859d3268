"""Repairs of megatron-core."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from proveout_cpu.repair import Repair, expect, rebind, repair


@repair(
    "megatron.core.tensor_parallel.random",
    "megatron/core/tensor_parallel/random.py",
    "reads and sets the state of the CUDA generator through private calls of torch",
)
def cuda_generator(module: ModuleType) -> None:
    """The generator of random numbers that Megatron forks is the CPU's."""
    import torch

    expect(module, "_get_cuda_rng_state", "torch.cuda.random.get_rng_state", parameters=("device", "clone"))
    expect(module, "_set_cuda_rng_state", "default_generator.set_state", parameters=("new_state", "device"))

    def get_state(device: Any = "cuda", clone: bool = False, graph_safe: bool = False) -> Any:
        return torch.get_rng_state()

    def set_state(new_state: Any, device: Any = -1, graph_safe: bool = False) -> None:
        torch.set_rng_state(new_state)

    rebind(module, "_get_cuda_rng_state", get_state)
    rebind(module, "_set_cuda_rng_state", set_state)


@repair(
    "megatron.core.transformer.torch_norm",
    "megatron/core/transformer/torch_norm.py",
    "torch's RMSNorm is refused for zero-centred gamma and for sequence parallelism",
)
def root_mean_square_norm(module: ModuleType) -> None:
    """A RMSNorm that takes both; its weight is marked, so that its gradient is reduced over sequence ranks."""
    import torch

    wrapped = expect(
        module,
        "WrappedTorchNorm.__new__",
        "not config.layernorm_zero_centered_gamma",
        "not config.sequence_parallel",
        parameters=("cls", "config", "hidden_size", "eps"),
    )

    class RootMeanSquareNorm(torch.nn.Module):  # type: ignore[misc]
        returns_residual = False

        def __init__(self, config: Any, hidden_size: int, eps: float) -> None:
            super().__init__()
            self.centred, self.eps = bool(config.layernorm_zero_centered_gamma), eps
            start = torch.zeros if self.centred else torch.ones
            self.weight = torch.nn.Parameter(start(hidden_size, dtype=config.params_dtype))
            self.weight.sequence_parallel = config.sequence_parallel

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = self.weight.float() + 1.0 if self.centred else self.weight.float()
            return torch.nn.functional.rms_norm(x.float(), weight.shape, weight, self.eps).type_as(x)

    def make(cls: type, config: Any, hidden_size: int, eps: float = 1e-5, *rest: Any, **named: Any) -> Any:
        special = config.layernorm_zero_centered_gamma or config.sequence_parallel
        if special and config.normalization == "RMSNorm":
            return RootMeanSquareNorm(config, hidden_size, eps)
        return wrapped(cls, config, hidden_size, eps, *rest, **named)

    module.WrappedTorchNorm.__new__ = make


@repair(
    "megatron.core.transformer.moe.moe_utils",
    "megatron/core/transformer/moe/moe_utils.py",
    "the split sizes of an all-to-all become numbers only where they are on a GPU",
)
def all_to_all_splits(module: ModuleType) -> None:
    """``maybe_move_tensor_to_cpu`` gives an array also for a tensor that is on the CPU already."""
    import torch

    plain = expect(
        module,
        "maybe_move_tensor_to_cpu",
        "tensor.is_cuda",
        parameters=("tensor", "as_numpy", "record_stream"),
    )

    def move(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
        if as_numpy and torch.is_tensor(tensor) and not tensor.is_cuda:
            return tensor.numpy()
        return plain(tensor, as_numpy, record_stream)

    rebind(module, "maybe_move_tensor_to_cpu", move)


@repair(
    "megatron.core.distributed.param_and_grad_buffer",
    "megatron/core/distributed/param_and_grad_buffer.py",
    "offloads weights with .cpu() and then frees the original, which on the CPU is the same memory",
)
def offload(module: ModuleType) -> None:
    """The copy is allocated before; without it the weights would be lost without an error."""
    import torch

    plain = expect(module, "_ParamAndGradBuffer.offload_to_cpu", "self.param_data_cpu", "resize_(0)")

    def offload_to_cpu(self: Any, move_params: bool = True, move_grads: bool = True) -> None:
        data = self.param_data
        if move_params and data is not None and self.param_data_cpu is None and data.untyped_storage().size():
            self.param_data_cpu = torch.empty_like(data)
        plain(self, move_params, move_grads)

    module._ParamAndGradBuffer.offload_to_cpu = offload_to_cpu


ON_CPU: tuple[Repair, ...] = (cuda_generator, all_to_all_splits, offload)
LOCAL: tuple[Repair, ...] = (root_mean_square_norm,)
