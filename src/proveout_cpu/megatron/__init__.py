"""Real Megatron-Core and Megatron-Bridge on the CPU.

``apply()`` comes before the first import of Megatron, in every process that uses it; then Megatron's own calls run
inside ``proveout_cpu.torch_cuda.on_cpu()`` (or after ``enter_thread()``, or ``everywhere()``).
"""

from __future__ import annotations

import os
from types import ModuleType

from proveout_cpu import absent_imports, python311
from proveout_cpu.after_import import after_import
from proveout_cpu.megatron import bridge, core
from proveout_cpu.repair import Repair, run

REPAIRS: tuple[Repair, ...] = (*core.REPAIRS, *bridge.REPAIRS)
ENVIRONMENT = {"TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
STATE_SPACE = "megatron.core.ssm."
_DONE: list[bool] = []


def apply(*, state_space: bool = False) -> None:
    """Prepare this process for Megatron on the CPU; nothing happens where CUDA is there, or a second time.

    Every repair is made when its module is imported, or at once where it was already. ``state_space`` answers
    absent packages in megatron.core.ssm too, whose importers mostly ask on their own. What was done is
    ``proveout_cpu.applied()``; what a report must say of it ``proveout_cpu.limitations()``. An import raises
    UnknownVersionError where Megatron is not what a repair expects.
    """
    if _DONE:
        return
    _DONE.append(True)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    python311.typing_override()
    absent_imports.install(
        "megatron",
        without=() if state_space else (STATE_SPACE,),
        inside={bridge.AUTO_BRIDGE: bridge.QUANTIZATION},
        wanted=_no_cuda,
    )
    after_import("torch", _facade)
    for item in REPAIRS:
        after_import(item.module, _Hook(item))


def install() -> None:
    """``apply()``, under the name that every platform module has."""
    apply()


class _Hook:
    def __init__(self, item: Repair) -> None:
        self._item = item

    def __call__(self, module: ModuleType) -> None:
        if _no_cuda():
            run(self._item, module)


def _no_cuda() -> bool:
    from proveout_cpu.torch_cuda import cuda_is_there

    return not cuda_is_there()


def _facade(_: ModuleType) -> None:
    from proveout_cpu.torch_cuda import facade

    facade()
