"""The platform "cpu" of verl (verl/plugin/platform): gloo, logical Ray GPUs, one device that is the CPU."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

NAME = "cpu"
ANSWER_PROBE = "PROVEOUT_CPU_ANSWER_PROBE"


class _Device(ModuleType):
    """``torch.cpu`` with what verl's workers ask of ``torch.cuda``: memory, of which none is used, and the RNG."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


def _device() -> _Device:
    module = _Device("proveout_cpu.verl.device")
    for name in (
        "memory_allocated",
        "memory_reserved",
        "max_memory_allocated",
        "max_memory_reserved",
        "current_device",
    ):
        setattr(module, name, lambda *_, **__: 0)
    for name in ("empty_cache", "synchronize", "set_device", "ipc_collect", "reset_peak_memory_stats"):
        setattr(module, name, lambda *_, **__: None)
    for name in ("manual_seed", "manual_seed_all"):
        setattr(module, name, torch.manual_seed)
    answers: dict[str, Any] = {
        "is_available": lambda: False,
        "device_count": lambda: 1,
        "mem_get_info": lambda *_, **__: (0, 1),
        "get_rng_state": lambda *_, **__: torch.get_rng_state(),
        "set_rng_state": lambda state, *_, **__: torch.set_rng_state(state),
        "get_device_name": lambda *_, **__: NAME,
    }
    for name, answer in answers.items():
        setattr(module, name, answer)
    return module


DEVICE = _device()


@PlatformRegistry.register(platform=NAME)
class CpuPlatform(PlatformBase):  # type: ignore[misc]
    """What verl asks of an accelerator, answered by the CPU."""

    @property
    def device_name(self) -> str:
        """ "cpu"; "cuda" for the device question of verl's end-to-end scripts alone.

        They ask it in a program of their own, read from standard input, know no other answer than cuda and npu
        (tests/special_e2e/run_ppo_trainer_megatron.sh, "Detect device"), and start the same trainer for cuda.
        """
        return "cuda" if os.environ.get(ANSWER_PROBE) == "1" and sys.argv[:1] == ["-"] else NAME

    @property
    def vendor_name(self) -> str:
        return NAME

    @property
    def device_module(self) -> ModuleType:
        return DEVICE

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return os.environ.get("VERL_PLATFORM") == NAME

    def current_device(self) -> Any:
        return torch.device(NAME)

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...
    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...
    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None: ...
    def profiler_stop(self) -> None: ...

    def ray_resource_name(self) -> str:
        """A logical resource: verl's pools count GPUs, and the run tells Ray how many there are to be."""
        return "GPU"

    def ray_resource_options(self, num_gpus: float) -> dict[str, Any]:
        return {"num_gpus": num_gpus}

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> None:
        return None
