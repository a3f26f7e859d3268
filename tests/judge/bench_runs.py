"""Real runs of the built-in loop, sound and broken, in one process: ``python bench_runs.py DIRECTORY``.

Each run gets a directory with its console in ``run.log`` and its event files below ``tensorboard``.
"""

import contextlib
import sys
from pathlib import Path
from unittest import mock

import torch

from proveout_bench import registry
from proveout_bench.config import resolve
from proveout_bench.tasks.digits import DigitsTask

SMALL = (
    "tiny.hidden_size=64",
    "tiny.intermediate_size=128",
    "rollout.max_new_tokens=8",
    "runtime.threads=1",
    "max_steps=24",
)
NOTHING = contextlib.nullcontext()
RUNS = {
    "sound": ((), NOTHING),
    "again": ((), NOTHING),
    "rate-0": (("lr=0",), NOTHING),
    "late-nan": (("fault.nan_loss_at_step=20",), NOTHING),
    "early-end": (("stop_after_step=20",), NOTHING),
    "constant-reward": ((), mock.patch.object(DigitsTask, "reward", lambda self, prompt, response: 1.0)),
    "frozen": ((), mock.patch.object(torch.optim.AdamW, "step", lambda self, closure=None: None)),
}


def main(directory: Path) -> None:
    """Run all of them."""
    grpo = registry.load(registry.ALGORITHMS, "grpo")
    for name, (words, broken) in RUNS.items():
        folder = directory / name
        folder.mkdir()
        with (folder / "run.log").open("w") as log, contextlib.redirect_stdout(log), broken:
            config = resolve.resolve([*SMALL, *words, f"output_dir={folder}"])
            resolve.open_output(config)
            grpo(config)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
