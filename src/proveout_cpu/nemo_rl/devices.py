"""What NeMo-RL asks of GPUs: numbers of devices, their memory and identity, NCCL, CUDA IPC handles."""

from __future__ import annotations

import importlib
import os
from types import ModuleType, SimpleNamespace
from typing import Any

from proveout_cpu.repair import Repair, expect, rebind, record, repair

DEVICES = 8
TOTAL_BYTES, FREE_BYTES, REFIT_BYTES = 16 << 30, 8 << 30, 1 << 28
CAPABILITY = (9, 0)


def no_cuda() -> bool:
    """Whether this process has no CUDA device, so that the platform is on."""
    importlib.import_module("torch")  # first: its own import uses torch_cuda, which must be whole by then
    from proveout_cpu.torch_cuda import cuda_is_there

    return not cuda_is_there()


def prepare(torch: ModuleType) -> None:
    """Device numbers and memory of ``torch.cuda``, "cuda" everywhere the CPU, gloo for NCCL."""
    from proveout_cpu.torch_cuda import everywhere, facade

    if not no_cuda():
        return
    facade()
    everywhere()
    torch.Tensor.record_stream = lambda *_, **__: None
    current = {"device": 0}

    def set_device(device: Any) -> None:
        current["device"] = device if isinstance(device, int) else (getattr(device, "index", None) or 0)

    properties = SimpleNamespace(
        name="CPU", major=9, minor=0, total_memory=TOTAL_BYTES, multi_processor_count=1
    )
    answers: dict[str, Any] = {
        "set_device": set_device,
        "current_device": lambda: current["device"],
        "device_count": lambda: DEVICES,
        "mem_get_info": lambda *_, **__: (FREE_BYTES, TOTAL_BYTES),
        "memory_stats": lambda *_, **__: {},
        "get_device_name": lambda *_, **__: "CPU",
        "get_device_capability": lambda *_, **__: CAPABILITY,
        "get_device_properties": lambda *_, **__: properties,
        "manual_seed_all": torch.default_generator.manual_seed,
    }
    for name in ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"):
        answers[name] = lambda *_, **__: 0
    for name in (
        "empty_cache",
        "ipc_collect",
        "init",
        "_lazy_init",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
        "set_per_process_memory_fraction",
    ):
        answers[name] = lambda *_, **__: None
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    _gloo(torch)
    record("cuda_devices", "torch/cuda/__init__.py", "NeMo-RL numbers its devices and asks for their memory")


def _gloo(torch: ModuleType) -> None:
    import torch.distributed.distributed_c10d as c10d

    distributed = torch.distributed
    start, group, barrier = c10d.init_process_group, c10d.new_group, c10d.barrier

    def backend(name: Any) -> Any:
        return "gloo" if name is None or "nccl" in str(name) else name

    def init_process_group(name: Any = None, *args: Any, **named: Any) -> Any:
        named.pop("device_id", None)
        return start(backend(named.pop("backend", name)), *args, **named)

    def new_group(
        ranks: Any = None,
        timeout: Any = None,
        backend_: Any = None,
        pg_options: Any = None,
        *args: Any,
        **named: Any,
    ) -> Any:
        named.pop("device_id", None)
        named.pop("pg_options", None)
        asked = named.pop("backend", backend_)
        return group(ranks, timeout, None if asked is None else backend(asked), None, *args, **named)

    def waiting(*args: Any, **named: Any) -> Any:
        named.pop("device_ids", None)
        return barrier(*args, **named)

    for holder in (distributed, c10d):
        holder.init_process_group, holder.new_group, holder.barrier = init_process_group, new_group, waiting
    record("gloo", "nemo_rl/models/megatron/setup.py", "processes meet through NCCL")


@repair(
    "nemo_rl.utils.nvml", "nemo_rl/utils/nvml.py", "asks NVML which GPU this is and how much of it is free"
)
def nvml(module: ModuleType) -> None:
    """A made-up identity for each device of this run, and a fixed size for the transfer buffer."""
    expect(module, "get_device_uuid", "nvmlDeviceGetUUID", parameters=("device_idx",))
    expect(module, "get_free_memory_bytes", "nvmlDeviceGetMemoryInfo", parameters=("device_idx",))
    expect(module, "log_gpu_memory_diagnostics")
    run = os.environ.get("PROVEOUT_CPU_RUN", "0")
    rebind(module, "get_device_uuid", lambda device_idx: f"GPU-cpu-{run}-{device_idx}")
    rebind(module, "get_free_memory_bytes", lambda device_idx: float(REFIT_BYTES))
    rebind(module, "log_gpu_memory_diagnostics", lambda *_, **__: None)


@repair(
    "nemo_rl.models.policy.utils",
    "nemo_rl/models/policy/utils.py",
    "weights are handed over as a CUDA IPC handle",
)
def handle(module: ModuleType) -> None:
    """The bytes themselves go through the same socket in place of a handle."""
    expect(module, "get_handle_from_tensor", "reduce_tensor", parameters=("tensor",))
    expect(module, "stream_weights_via_ipc_zmq_impl", "get_handle_from_tensor", "IPCProtocol.COMPLETE")
    rebind(module, "get_handle_from_tensor", lambda tensor: tensor.detach().numpy().copy())


REPAIRS: tuple[Repair, ...] = (nvml, handle)
