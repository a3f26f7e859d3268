"""Refit proof: generation workers that got different weights, and updates that are known to be too small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proveout.domain.evidence import End, Evidence, ExitRecord
from proveout.domain.finding import Severity
from proveout.domain.metrics import MetricTable, Series
from proveout.domain.step import Command, Coverage, Step
from proveout.judge.criteria.refit_proof import refit_proof

TAG = "train/token_mult_prob_error"
AGREE = [{"tag": TAG, "most": 1.001}]


def transfer(worker: int, number: int, checksum: str, change: float) -> dict[str, Any]:
    return {
        "worker": f"generation-{worker}", "transfer": number, "version": None, "received": 26, "missing": [],
        "extra": [], "wrong_shape": [], "checksum": checksum, "change": change, "from_original": change,
        "largest_from_original": 0.0 if number == 1 else change,
    }  # fmt: skip


def judged(folder: Path, lines: list[dict[str, Any]], error: list[float], **params: Any) -> dict[str, Any]:
    """Findings of the criterion by id."""
    (folder / "refit.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    step = Step(
        id="s",
        coverage=Coverage(loop="nemo-rl", level=0),
        deliverable="d",
        claim="c",
        command=Command(argv=("x",)),
    )
    series = Series.of(dict(enumerate(error, 1)), "events")
    evidence = Evidence(
        step=step,
        attempt=1,
        attempt_dir=str(folder),
        exit=ExitRecord(end=End.EXITED, code=0),
        log=str(folder / "run.log"),
        metrics=MetricTable(series={TAG: series}),
    )
    found = refit_proof(evidence, {"agreement": AGREE, **params})
    return {finding.id.removeprefix("judge.refit_proof."): finding for finding in found.findings}


SAME = [transfer(w, n, f"c{n}", 0.0 if n == 1 else 0.5) for n in (1, 2, 3) for w in (0, 1)]


def test_workers_with_the_same_weights_pass(tmp_path: Path) -> None:
    assert judged(tmp_path, SAME, [1.0, 1.0000001, 1.0000002]) == {}


def test_workers_with_different_weights_are_told_once_with_transfer_and_size(tmp_path: Path) -> None:
    lines = [
        *SAME[:2],
        transfer(0, 2, "a", 0.25),
        transfer(1, 2, "b", 0.5),
        transfer(0, 3, "c", 1),
        transfer(1, 3, "d", 1),
    ]
    found = judged(tmp_path, lines, [1.0, 1.5, 1.6])
    differ, disagrees = found["workers-differ"], found["disagrees"]
    assert "from transfer 2 on (weights after step 1)" in differ.what and "0.5 and 0.25" in differ.what
    assert differ.where.line == 4 and differ.severity is Severity.ERROR
    assert "1.5 at step 2" in disagrees.what


def test_weights_that_never_moved_decide_unless_the_step_says_that_they_cannot_be_seen(
    tmp_path: Path,
) -> None:
    lines = [transfer(0, n, "c", 0.0) for n in (1, 2)]
    assert judged(tmp_path, lines, [1.0, 1.0])["still"].severity is Severity.ERROR
    assert judged(tmp_path, lines, [1.0, 1.0], moved=False)["still"].severity is Severity.WARNING
