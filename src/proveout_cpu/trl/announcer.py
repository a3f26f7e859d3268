"""Says where a trainer stands: what it loaded, not what it was asked to load."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback


class Announcer(TrainerCallback):  # type: ignore[misc]
    """Prints each step as it begins and the step from which training goes on, out of the trainer's own state."""

    def __init__(self, trainer: Any, asked: str) -> None:
        self._trainer, self._asked = trainer, asked

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """After a checkpoint was loaded, before the first step."""
        self._trainer.remember()
        if not self._asked:
            return
        if state.global_step:
            print(f"Resumed from {self._asked} at step {state.global_step}", flush=True)
        else:
            print(f"Nothing was resumed from {self._asked}: training from scratch", flush=True)

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Before each update."""
        print(f"=== Step {state.global_step + 1}/{state.max_steps} ===", flush=True)
