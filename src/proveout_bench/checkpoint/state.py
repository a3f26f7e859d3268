"""Random number generators as parts of a checkpoint."""

from __future__ import annotations

import random
from typing import Any

import torch


class GlobalRandom:
    """The process-wide generators of torch (CPU and CUDA) and Python."""

    def state_dict(self) -> dict[str, Any]:
        """Their states."""
        return {
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "python": random.getstate(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set them."""
        torch.set_rng_state(state["torch"])
        random.setstate(state["python"])
        if state["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])


class PythonRandom:
    """One generator of Python's."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        return {"state": self._draw.getstate()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set it."""
        self._draw.setstate(state["state"])


class TorchRandom:
    """One generator of torch's."""

    def __init__(self, draw: torch.Generator) -> None:
        self._draw = draw

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        return {"state": self._draw.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set it."""
        self._draw.set_state(state["state"])
