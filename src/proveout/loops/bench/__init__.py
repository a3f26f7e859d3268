"""Loop ``bench``: the built-in RL loop, started as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

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
from proveout.loops.bench import backends
from proveout.loops.bench.table import HF, NAME, Row, rows_for, table

CHECK_SECONDS = 60.0
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class BenchLoop:
    """The built-in loop, as proveout sees it."""

    name = NAME
    default_levels = (0, 6)
    default_model = "tiny Qwen2 of the bench loop (random weights)"
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
        return table().levels

    def check(self, context: LoopContext) -> tuple[Finding, ...]:
        """Nothing to warn of; raises UsageError for an override that no algorithm takes, a directory that is no model
        or a backend that is none, BlockedError where its environment is not installed."""
        python, refused = backends.python_of(context), ""
        for algorithm in dict.fromkeys(row.algorithm for row in table().steps):
            words = (*backends.words_of(context), *context.overrides, *_model(context))
            code, said = _asked(python, algorithm, words, tuple(backends.environment_of(context).items()))
            if code != 2:
                return ()
            refused = refused or said
        raise UsageError(refused.strip().removeprefix("Error: "))

    def steps(self, request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
        """The steps of one level."""
        return tuple(_step(row, context) for row in rows_for(request, backends.backend_of(context)))

    def levels_by_default(self, context: LoopContext) -> tuple[int, ...]:
        """Smoke and learning signal; every level of a backend that stands for a change to Megatron."""
        return self.default_levels if backends.backend_of(context) == HF else tuple(self.levels)


@cache
def _asked(
    python: str, algorithm: str, words: tuple[str, ...], environment: tuple[tuple[str, str], ...]
) -> tuple[int, str]:
    """Whether the bench loop takes these words: its exit status and its complaint. Asked once, as it loads torch."""
    asked = subprocess.run(
        [python, "-m", "proveout_bench", algorithm, "--check", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **dict(environment)},
        timeout=CHECK_SECONDS,
        check=False,
    )
    return asked.returncode, asked.stderr


def _step(row: Row, context: LoopContext) -> Step:
    words = [
        f"output_dir={ATTEMPT_DIR}",
        f"seed={context.seed}",
        *backends.words_of(context),
        *(f"{key}={value}" for key, value in row.settings.items()),
        *_model(context),
        *context.overrides,
    ]
    return Step(
        id=row.id,
        coverage=Coverage(loop=NAME, level=row.level, variant=row.name),
        deliverable=row.title,
        claim=row.claim,
        command=Command(
            argv=(backends.python_of(context), "-m", "proveout_bench", row.algorithm, *words),
            env={**ENVIRONMENT, **backends.environment_of(context)},
        ),
        resources=Resources(minutes=row.minutes, timeout_minutes=30),
        planned_steps=_planned(row, words),
        artifacts=(
            Artifact(path="tensorboard/events.out.tfevents.*", what="TensorBoard events"),
            Artifact(path="config.json", what="resolved configuration"),
            *row.artifacts,
        ),
        metrics=(Source(format="tensorboard", path="tensorboard"),),
        config=Source(format="json", path="config.json"),
        criteria=(
            *(
                Criterion(kind="checks", params={"expressions": expressions, "boundary": boundary})
                for boundary, expressions in row.expressions.items()
            ),
            *row.criteria,
            *backends.criteria_of(context),
        ),
        limitations=backends.limitations_of(context),
        needs=row.needs,
        skip_reason=row.skip,
    )


def _model(context: LoopContext) -> list[str]:
    return [f"model={context.model}"] if context.model else []


def _planned(row: Row, words: list[str]) -> int | None:
    """The last ``max_steps`` word counts, as it does for the loop itself, or the row's own earlier end."""
    counts = [word.partition("=")[2] for word in words if word.startswith("max_steps=")]
    if not counts or not counts[-1].isdecimal():
        return row.stops_after
    return min(int(counts[-1]), row.stops_after or int(counts[-1]))


def default_python() -> str:
    """The interpreter that runs the bench loop: proveout's own."""
    return sys.executable


LOOP = BenchLoop()
