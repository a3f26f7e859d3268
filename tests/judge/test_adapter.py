"""Which modules an adapter is on: from the worker's own line, with what a tied output layer means."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.judge.conftest import Attempt

from proveout.domain.finding import Severity
from proveout.judge.criteria.adapter import adapter

PREFIX = "\x1b[36m(MegatronPolicyWorker[rank=0] pid=1)\x1b[0m "


def found(folder: Path, *lines: str) -> list[tuple[str, Severity]]:
    folder.mkdir(exist_ok=True)
    evidence = Attempt(folder)({"train/loss": {1: 0.1}}, loop="nemo-rl")
    (folder / evidence.log).write_text("".join(f"{line}\n" for line in lines))
    return [(f.id.removeprefix("judge.adapter."), f.severity) for f in adapter(evidence, {}).findings]


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        ('{"modules": ["linear_fc1", "output_layer"], "tied": true}', [("tied-output", Severity.WARNING)]),
        ('{"modules": ["linear_fc1", "output_layer"], "tied": false}', []),
        ('{"modules": ["linear_fc1"], "tied": true}', []),
        ("no object", [("unsaid", Severity.ERROR)]),
        ('{"modules": "x"}', [("unsaid", Severity.ERROR)]),
    ],
)
def test_the_line_decides(tmp_path: Path, said: str, ids: list[tuple[str, Severity]]) -> None:
    assert found(tmp_path / "a", "starting", f"{PREFIX}[adapter] {said}") == ids


def test_silence_is_an_error(tmp_path: Path) -> None:
    assert found(tmp_path / "a", "starting") == [("unsaid", Severity.ERROR)]
