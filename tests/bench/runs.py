"""Starts the bench loop as users do, and reads what it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """A bench process that ended."""

    status: int
    out: str
    err: str
    folder: Path

    def series(self) -> dict[str, dict[int, float]]:
        """All scalars of the run: tag -> step -> value."""
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(self.folder / "tensorboard"))
        events.Reload()
        return {
            tag: {point.step: point.value for point in events.Scalars(tag)}
            for tag in events.Tags()["scalars"]
        }


def bench(*words: str, folder: Path = Path(), prepare: Callable[[], None] | None = None) -> Finished:
    """``python -m proveout_bench WORDS...`` in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "proveout_bench", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        preexec_fn=prepare,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return Finished(done.returncode, done.stdout, done.stderr, folder)


SMALL = (
    *("tiny.hidden_size=32", "tiny.intermediate_size=64", "tiny.layers=1", "rollout.max_new_tokens=6"),
    *("rollout.prompts=2", "rollout.group_size=4", "max_steps=2"),
)


def inside(algorithm: str, folder: Path, *words: str) -> dict[str, dict[int, float]]:
    """A small run in this process; its scalars, without timing and what this process alone loaded and sent."""
    from proveout_bench import registry
    from proveout_bench.config import resolve

    small = (*SMALL, *(() if algorithm == "sft" else ("loss.minibatch_size=4",)))
    config = resolve.resolve([*small, *words, f"output_dir={folder}"], algorithm)
    folder.mkdir(parents=True, exist_ok=True)
    registry.load(registry.ALGORITHMS, algorithm)(config)
    found = Finished(0, "", "", folder).series()
    return {
        tag: points
        for tag, points in found.items()
        if not tag.startswith(("timing/", "parity/load", "refit/"))
    }


def grpo(folder: Path, *words: str, prepare: Callable[[], None] | None = None) -> Finished:
    """A ``grpo`` run that writes to ``folder``."""
    return bench("grpo", f"output_dir={folder}", *words, folder=folder, prepare=prepare)
