"""What VERL_USE_EXTERNAL_MODULES names: verl imports it in every process of a run, before anything of its own.

Where CUDA is there nothing happens: a run on GPUs is verl's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType

from proveout_cpu import megatron_local, torch_cuda
from proveout_cpu.after_import import after_import
from proveout_cpu.repair import Repair, run
from proveout_cpu.verl import repairs, rollout_entry

REPAIRS: tuple[Repair, ...] = (*megatron_local.REPAIRS, *repairs.REPAIRS, *rollout_entry.REPAIRS)


def apply() -> None:
    """Register the platform, and make every repair when its module is imported."""
    from proveout_cpu.verl import platform

    megatron_local.install()
    os.environ.setdefault("VERL_PLATFORM", platform.NAME)
    for item in REPAIRS:
        after_import(item.module, _making(item))


def _making(item: Repair) -> Callable[[ModuleType], None]:
    return lambda module: run(item, module)


if os.environ.get("VERL_PLATFORM") == "cpu" and not torch_cuda.cuda_is_there():
    apply()
