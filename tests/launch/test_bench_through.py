"""The bench loop's smoke level gives the same report whoever starts it, but for what names the launcher."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer
from tests.launch.engines import require

_MOVES = re.compile(r"\d+(\.\d+)?(e-?\d+)?")


def plain(report: Any) -> Any:
    """The report without what differs between any two runs (times, places, values) and without launcher lines."""
    if isinstance(report, Mapping):
        return {
            key: plain(value)
            for key, value in report.items()
            if key not in ("launch", "launcher", "timeline", "plots", "commands")
        }
    if isinstance(report, list):
        return [plain(value) for value in report]
    return _MOVES.sub("N", report) if isinstance(report, str) else type(report).__name__


@pytest.mark.real
def test_slurm_gives_the_report_of_a_local_run(proveout: Callable[..., Answer], tmp_path: Path) -> None:
    require("slurm")
    answers = {}
    for scheduler in ("local", "slurm"):
        state = tmp_path / scheduler
        answer = proveout(
            "run", "--level", "0", "--scheduler", scheduler, "--state-dir", str(state), "--json"
        )
        assert answer.status == 0, answer.err
        name = json.loads(answer.out)["run"]["id"]
        answers[scheduler] = json.loads(answer.out.replace(str(state), "<state>").replace(name, "<run>"))
    exits = {name: answer["steps"][0]["attempts"][0]["exit"] for name, answer in answers.items()}
    assert exits["local"]["launcher"] == "local+process"
    assert exits["slurm"]["launcher"] == "slurm+process"
    assert answers["slurm"]["steps"][0]["attempts"][0]["launch"]["scheduler"] == "slurm"
    assert plain(answers["local"]) == plain(answers["slurm"])
