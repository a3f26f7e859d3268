"""Loop ``trl``: the real TRL, driven by a program of its own in the environment of the stack ``trl``."""

from __future__ import annotations

import subprocess
from pathlib import Path

from proveout.domain.errors import UsageError, nearest
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
from proveout.loops.trl.stack import program_path, python_of, require
from proveout.loops.trl.table import NAME, Row, rows_for, table

PROGRAM = "proveout_cpu.trl"
CHECK_SECONDS = 60.0
OPTIONS = ("python",)
LIMITATIONS = (
    "trl: a pass says nothing of Megatron, NeMo-RL or verl",
    "trl: on CPU in fp32, one process: no GPU kernel, NCCL, vLLM or mixed precision was exercised",
)
TINY = "trl: the model was a tiny Qwen2 with random weights, so nothing is said of a real checkpoint"
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_DATASETS_CACHE": f"{ATTEMPT_DIR}/datasets",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
}
EVERY_STEP = ('min(data["train/trainable_params"]) > 0', 'max(data["train/grad_norm"]) > 0')
SAME = {
    "train/learning_rate": {"rtol": 1e-6},
    "train/loss": {"rtol": 1e-5, "atol": 1e-7},
    "train/grad_norm": {"rtol": 1e-4},
    "train/weight_delta": {"rtol": 1e-3},
}


class TrlLoop:
    """TRL, as proveout sees it."""

    name = NAME
    default_levels = (0,)
    default_model = "tiny Qwen2 of loop trl (random weights)"
    progress = Progress(
        step=r"=+ Step (?P<step>\d+)/(?P<total>\d+) =+",
        reward=r"'reward': '?(?P<value>[-\d.e+]+)",
        loss=r"'loss': '?(?P<value>[-\d.e+a-z]+)",
        phases={
            "warm start": r"Warm start: ",
            "training": r"Training (sft|grpo|rloo|dpo) for",
        },
    )

    @property
    def levels(self) -> dict[int, str]:
        """Level number -> title."""
        return table().levels

    def check(self, context: LoopContext) -> tuple[Finding, ...]:
        """Nothing to warn of; raises UsageError for an option, setting or model that is wrong, and BlockedError
        where TRL has no environment."""
        for name in context.options:
            if name not in OPTIONS:
                raise UsageError(
                    f"loop {NAME} has no option {name!r}{nearest(name, OPTIONS)}",
                    remedy=f"options: {', '.join(OPTIONS)}",
                )
        require(context)
        words = [f"output_dir={Path.cwd()}", *_model(context), *context.overrides]
        refused = ""
        for algorithm in dict.fromkeys(row.algorithm for row in table().steps):
            asked = subprocess.run(
                [python_of(context), "-m", PROGRAM, algorithm, "--check", *words],
                env=ENVIRONMENT | {"PYTHONPATH": program_path()},
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=CHECK_SECONDS,
                check=False,
            )
            if asked.returncode != 2:
                return ()
            refused = refused or asked.stderr
        raise UsageError(refused.strip().removeprefix("Error: "))

    def steps(self, request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
        """The steps of one level."""
        return tuple(_step(row, context) for row in rows_for(request))


def _step(row: Row, context: LoopContext) -> Step:
    python = python_of(context)
    words = [
        f"output_dir={ATTEMPT_DIR}",
        f"seed={context.seed}",
        *(f"{key}={value}" for key, value in row.settings.items()),
        *([f"warm_steps={row.warm}"] if row.warm and not context.model else []),
        *_model(context),
        *context.overrides,
    ]
    return Step(
        id=row.id,
        coverage=Coverage(loop=NAME, level=row.level, variant=row.name),
        deliverable=f"TRL: {row.title}",
        claim=row.claim,
        command=Command(
            argv=(python, "-m", PROGRAM, row.algorithm, *words),
            env=ENVIRONMENT | {"PYTHONPATH": program_path()},
        ),
        resources=Resources(minutes=row.minutes, timeout_minutes=30),
        planned_steps=_planned(words),
        artifacts=(
            Artifact(path="runs/**/events.out.tfevents.*", what="TensorBoard events"),
            Artifact(path="config.json", what="settings of the run"),
            *row.artifacts,
        ),
        metrics=(Source(format="tensorboard", path="runs"),),
        config=Source(format="json", path="config.json"),
        criteria=tuple(_criteria(row, python)),
        limitations=(*LIMITATIONS, *(() if context.model else (TINY,)), *row.limitations),
        needs=row.needs,
    )


def _criteria(row: Row, python: str) -> list[Criterion]:
    home = str(Path(python).parents[1])
    found = [
        Criterion(kind="checks", params={"expressions": [*EVERY_STEP, *row.checks]}),
        Criterion(kind="trainable"),
        Criterion(kind="weights_moved"),
        Criterion(kind="provenance", params={"expected": {"trl": home}, "by": ["driver"]}),
    ]
    if row.resumes is not None:
        params = {
            "baseline": row.resumes.baseline,
            "saved": row.resumes.saved,
            "resumed_after": 2,
            "series": SAME,
        }
        found.append(Criterion(kind="resume_parity", params=params))
    return [*row.criteria, *found]


def _model(context: LoopContext) -> list[str]:
    return [f"model={context.model}"] if context.model else []


def _planned(words: list[str]) -> int | None:
    """The last ``max_steps`` word counts, as it does for the program itself."""
    counts = [word.partition("=")[2] for word in words if word.startswith("max_steps=")]
    return int(counts[-1]) if counts and counts[-1].isdecimal() else None


LOOP = TrlLoop()
