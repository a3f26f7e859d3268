"""Megatron generation that stops on an illegal memory access is run once more without CUDA graphs, by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer, call
from tests.loops import standins

pytestmark = pytest.mark.real
GRAPHS_OFF = "policy.generation.mcore_generation_config.cuda_graph_impl=none"


@pytest.fixture
def level_3(stand_ins: dict[str, str], recording: Path, tmp_path: Path) -> Callable[..., Answer]:
    def run(*faults: str) -> Answer:
        env = {**standins.environment(tmp_path / "bin", recording, *faults), "TORCH_CUDA_ARCH_LIST": "9.0"}
        words = ("--nemo-rl", stand_ins["nemo-rl"], "--bridge", stand_ins["bridge"], "--level", "3", "--json")
        return call("run", *words, cwd=tmp_path, env=env)

    return run


def notice(answer: Answer) -> Any:
    return next(f for f in json.loads(answer.out)["findings"] if f["id"].startswith("flow.no-graph."))


def test_a_pass_without_graphs_is_a_limitation_and_the_failure_stays(
    level_3: Callable[..., Answer], tmp_path: Path
) -> None:
    answer = level_3("illegal-memory")
    report = json.loads(answer.out)
    assert answer.status == 1 and report["result"] == "Fail"
    (limit,) = (text for text in report["limitations"] if text.startswith("nemo-rl-L3-default: "))
    assert (
        "optimisation-reduced pass" in limit and "stays a failure of Megatron generation with CUDA" in limit
    )
    found = notice(answer)
    assert found["id"] == "flow.no-graph.passes"
    with_graphs, without = (cited["where"]["file"] for cited in found["evidence"])
    run = next((tmp_path / ".proveout/runs").glob("2*"))
    assert "illegal memory access" in (run / with_graphs).read_text()
    assert "stopping training early" in (run / without).read_text()
    assert GRAPHS_OFF in (run / without).with_name("command.sh").read_text()
    again = call("resume", "--json", cwd=tmp_path, env=standins.environment(tmp_path / "bin", run))
    assert len(list((run / "no-graph").iterdir())) == 1 and again.status == 1


def test_a_failure_that_needs_no_graphs_is_told_so(level_3: Callable[..., Answer]) -> None:
    answer = level_3("illegal-memory", "illegal-anyway")
    assert answer.status == 1
    assert "does not pass either: RuntimeError: CUDA error: an illegal memory" in notice(answer)["what"]
    assert not any("optimisation-reduced" in text for text in json.loads(answer.out)["limitations"])


def test_another_failure_of_megatron_generation_is_not_run_again(
    level_3: Callable[..., Answer], tmp_path: Path
) -> None:
    assert level_3("refit-failed").status == 1
    assert not list((tmp_path / ".proveout/runs").glob("*/no-graph"))
