"""Evidence of attempts, built from real files in a temporary directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proveout.domain.evidence import ArtifactState, End, Evidence, ExitRecord
from proveout.domain.metrics import MetricTable, Series
from proveout.domain.step import Artifact, Command, Coverage, Criterion, Step

Points = Mapping[int, float]

HEALTHY = {
    "train/loss": {1: 0.5, 2: 0.41, 3: 0.33},
    "train/grad_norm": {1: 1.2, 2: 0.9, 3: 1.1},
    "train/reward": {1: 0.1, 2: 0.2, 3: 0.3},
}


class Attempt:
    """Builds the evidence of one attempt: every argument is one thing that a test wants different."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(
        self,
        metrics: Mapping[str, Points] | None = None,
        *,
        log: str | None = "step 3 of 3\n",
        planned: int | None = 3,
        criteria: tuple[Criterion, ...] = (),
        loop: str = "bench",
        end: End = End.EXITED,
        code: int | None = 0,
        env: dict[str, str] | None = None,
        argv: tuple[str, ...] = ("python", "train.py"),
        artifacts: tuple[ArtifactState, ...] = (),
        declared: tuple[Artifact, ...] = (),
        walls: float | None = None,
        **more: Any,
    ) -> Evidence:
        self.directory.mkdir(parents=True, exist_ok=True)
        if log is not None:
            (self.directory / "run.log").write_text(log)
        table = MetricTable(
            {tag: Series.of(points, "m.json") for tag, points in (metrics or HEALTHY).items()}
        )
        now = time.time()
        for series in table.series.values():
            for place in range(len(series)):
                series.wall[place] = now if walls is None else walls
        step = Step(
            id="grpo",
            coverage=Coverage(loop=loop, level=0),
            deliverable="a GRPO smoke",
            claim="a short GRPO run",
            command=Command(argv=argv, env=env or {}),
            planned_steps=planned,
            criteria=criteria,
            artifacts=declared,
        )
        return Evidence(
            step=step,
            attempt=1,
            attempt_dir=str(self.directory),
            exit=ExitRecord(end=end, code=code, started=now - 10, finished=now),
            log="run.log",
            metrics=table,
            artifacts=artifacts,
            **more,
        )


@pytest.fixture
def attempt(tmp_path: Path) -> Callable[..., Evidence]:
    """Makes evidence in its own directory."""
    return Attempt(tmp_path / "attempt")


@pytest.fixture
def attempts(tmp_path: Path) -> Callable[[str], Attempt]:
    """A builder of evidence for each name, so that one attempt can be related to another."""
    return lambda name: Attempt(tmp_path / name)
