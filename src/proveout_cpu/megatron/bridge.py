"""Repairs of Megatron-Bridge."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

from proveout_cpu.repair import Repair, expect, rebind, repair

AUTO_BRIDGE = "megatron.bridge.models.conversion.auto_bridge"
QUANTIZATION = "modelopt.torch.quantization.utils"
"""Imported by ``AutoBridge.save_hf_weights`` only to ask whether the model is quantised; absent, it is not."""

MOCKED = "megatron.core.extensions.transformer_engine"


@repair(
    "megatron.bridge.utils.import_utils",
    "megatron/bridge/utils/import_utils.py",
    "without Transformer Engine, megatron.core.extensions.transformer_engine loads and holds mocks, which count as it",
)
def transformer_engine_flags(module: ModuleType) -> None:
    """Every HAVE_TE... flag of the Bridge is False where Transformer Engine is not installed."""
    plain = expect(
        module, "safe_import_from", "importlib.import_module(module)", parameters=("module", "symbol")
    )

    def safe_import_from(module: str, symbol: str, **named: Any) -> Any:
        absent = module == MOCKED and importlib.util.find_spec("transformer_engine") is None
        return plain("transformer_engine" if absent else module, symbol, **named)

    rebind(module, "safe_import_from", safe_import_from)


LOCAL: tuple[Repair, ...] = (transformer_engine_flags,)
