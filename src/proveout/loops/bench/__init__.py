"""Loop ``bench``: the built-in RL loop, started as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding
from proveout.domain.loop import LoopContext, Progress
from proveout.domain.step import (
    ATTEMPT_DIR,
    Artifact,
    Command,
    Coverage,
    Criterion,
    LevelRequest,
    Resources,
    Source,
    Step,
)

LIMITATIONS = (
    "bench is the built-in loop: a pass says nothing of NeMo-RL or verl",
    "CPU only, backend hf: no Megatron, GPU kernel, NCCL or vLLM was exercised",
)
CHECK_SECONDS = 60.0


@cache
def levels() -> dict[int, dict[str, Any]]:
    """The level table of this loop."""
    table: dict[int, dict[str, Any]] = yaml.safe_load((files(__package__) / "levels.yaml").read_text())
    return table


class BenchLoop:
    """The built-in loop, as proveout sees it."""

    name = "bench"
    default_levels = (0, 6)
    progress = Progress(
        step=r"=+ Step (?P<step>\d+)/(?P<total>\d+) =+",
        reward=r"Avg Reward: (?P<value>\S+)",
        loss=r"Loss: (?P<value>\S+)",
        phases={
            "setup": r"Setting up ",
            "generation": r"Generating responses",
            "logprobs": r"Computing logprobs",
            "policy training": r"Training policy",
        },
    )

    @property
    def levels(self) -> dict[int, str]:
        """Level number -> title."""
        return {number: row["title"] for number, row in levels().items()}

    def check(self, context: LoopContext) -> tuple[Finding, ...]:
        """Nothing to warn of; raises UsageError for a wrong override or a directory that is no model."""
        words = [*context.overrides, *_model(context)]
        asked = subprocess.run(
            [context.python, "-m", "proveout_bench", "grpo", "--check", *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=CHECK_SECONDS,
            check=False,
        )
        if asked.returncode == 2:
            raise UsageError(asked.stderr.strip().removeprefix("Error: "))
        return ()

    def steps(self, request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
        """The step of one level."""
        row = levels()[request.level]
        settings = [f"{key}={value}" for key, value in row["settings"].items()]
        words = [
            f"output_dir={ATTEMPT_DIR}",
            f"seed={context.seed}",
            *settings,
            *_model(context),
            *context.overrides,
        ]
        return (
            Step(
                id=f"{self.name}-L{request.level}-{row['variant']}",
                coverage=Coverage(loop=self.name, level=request.level, variant=row["variant"]),
                deliverable=row["title"],
                claim=row["claim"],
                command=Command(
                    argv=(context.python, "-m", "proveout_bench", "grpo", *words),
                    env={
                        "HF_HUB_OFFLINE": "1",
                        "TRANSFORMERS_OFFLINE": "1",
                        "TOKENIZERS_PARALLELISM": "false",
                    },
                ),
                resources=Resources(minutes=row["minutes"], timeout_minutes=30),
                planned_steps=_planned(words),
                artifacts=(
                    Artifact(path="tensorboard/events.out.tfevents.*", what="TensorBoard events"),
                    Artifact(path="config.json", what="resolved configuration"),
                ),
                metrics=(Source(format="tensorboard", path="tensorboard"),),
                config=Source(format="json", path="config.json"),
                criteria=(
                    Criterion(kind="checks", params={"expressions": row["checks"]}),
                    *(Criterion(**criterion) for criterion in row.get("criteria", ())),
                ),
                limitations=LIMITATIONS,
            ),
        )


def _model(context: LoopContext) -> list[str]:
    return [f"model={context.model}"] if context.model else []


def _planned(words: list[str]) -> int:
    """The last ``max_steps`` word counts, as it does for the loop itself."""
    return int([word.partition("=")[2] for word in words if word.startswith("max_steps=")][-1])


def default_python() -> str:
    """The interpreter that runs the bench loop: proveout's own."""
    return sys.executable


LOOP = BenchLoop()
