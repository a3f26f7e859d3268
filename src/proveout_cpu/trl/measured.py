"""What a run must show and TRL does not log: how many parameters are trained, and that they moved."""

from __future__ import annotations

from typing import Any


def measured(trainer: type) -> type:
    """The trainer with ``trainable_params`` and ``weight_delta`` in its own logs, so in its own event files.

    ``weight_delta`` is the 2-norm of the change of the trained parameters since the last log.
    """

    class Measured(trainer):  # type: ignore[misc]
        """The same trainer; its logs say more."""

        def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
            """Log as TRL does, with the two numbers beside every loss."""
            if "loss" in logs:
                logs = {**logs, **self._measure()}
            super().log(logs, *args, **kwargs)

        def remember(self) -> None:
            """Take the parameters of this moment as those that later ones are compared with."""
            self._before = self._trained()

        def _measure(self) -> dict[str, float]:
            before, self._before = self._before, self._trained()
            moved = float((self._before - before).norm())
            return {"trainable_params": float(before.numel()), "weight_delta": moved}

        def _trained(self) -> Any:
            import torch

            found = [p.detach().flatten().clone() for p in self.model.parameters() if p.requires_grad]
            return torch.cat(found) if found else torch.zeros(0)

    Measured.__name__ = trainer.__name__
    return Measured


def say_imports() -> None:
    """Name the file of each package that the run is about."""
    import sys

    for name in ("trl", "transformers", "peft", "torch"):
        module = sys.modules.get(name)
        if module is not None:
            print(f"[import] driver {name} {module.__file__}", flush=True)
