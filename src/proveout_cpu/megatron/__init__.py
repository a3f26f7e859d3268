"""Real Megatron-Core and Megatron-Bridge without a GPU, and on a GPU without Transformer Engine.

``apply()`` comes before the first import of Megatron, in every process that uses it; then Megatron's own calls run
inside ``proveout_cpu.torch_cuda.on_cpu()`` (or after ``enter_thread()``, or ``everywhere()``). Two things that may be
absent are kept apart: CUDA, without which ``torch.cuda`` is answered for and ``ON_CPU`` is repaired; and packages such
as Transformer Engine, without which unguarded imports of them are answered and ``LOCAL`` is repaired, on a GPU too.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from types import ModuleType

from proveout_cpu import absent_imports, python311
from proveout_cpu.after_import import after_import
from proveout_cpu.megatron import bridge, core
from proveout_cpu.repair import Repair, run

ON_CPU: tuple[Repair, ...] = core.ON_CPU
"""For a machine without CUDA."""
LOCAL: tuple[Repair, ...] = (*core.LOCAL, *bridge.LOCAL)
"""For an environment without Transformer Engine, where Megatron's local layers run."""
REPAIRS: tuple[Repair, ...] = (*ON_CPU, *LOCAL)
ENVIRONMENT = {"TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
STATE_SPACE = "megatron.core.ssm."
_DONE: list[bool] = []


def apply(*, state_space: bool = False) -> None:
    """Prepare this process for Megatron; where CUDA and Transformer Engine are there, and a second time, nothing
    happens.

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
    )
    after_import("torch", _facade)
    for item in ON_CPU:
        after_import(item.module, _Hook(item, _no_cuda))
    for item in LOCAL:
        after_import(item.module, _Hook(item, _local_layers))


def install() -> None:
    """``apply()``, under the name that every platform module has."""
    apply()


class _Hook:
    def __init__(self, item: Repair, wanted: Callable[[], bool]) -> None:
        self._item, self._wanted = item, wanted

    def __call__(self, module: ModuleType) -> None:
        if self._wanted():
            run(self._item, module)


def _no_cuda() -> bool:
    from proveout_cpu.torch_cuda import cuda_is_there

    return not cuda_is_there()


def transformer_engine_is_there() -> bool:
    """Whether this environment has Transformer Engine; it is not imported."""
    return importlib.util.find_spec("transformer_engine") is not None


def _local_layers() -> bool:
    return _no_cuda() or not transformer_engine_is_there()


def _facade(_: ModuleType) -> None:
    from proveout_cpu.torch_cuda import facade

    facade()
