"""``proveout functional SCRIPT`` runs that script, whatever a level calls its own variants."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Answer
from tests.plan.conftest import BRIDGE, NEMO, SMALL, committed, script

DTENSOR = script("cluster.gpus_per_node=1 sft.max_num_steps=2", entry="run_sft.py", config="")
SFT = {"sft.sh": DTENSOR, "sft_megatron.sh": script(SMALL), "grpo_megatron_generation.sh": script(SMALL)}


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    for name in ("BRIDGE_REPO", "MCORE_REPO", "NEMO_RL_REPO", "VERL_REPO"):
        monkeypatch.delenv(name, raising=False)
    base = {**NEMO, **{f"tests/functional/{name}": text for name, text in SFT.items()}}
    base["examples/configs/grpo_base.yaml"] += "sft: {max_num_steps: 60}\n"
    nemo = committed(tmp_path / "nemo", base)
    return str(nemo), str(committed(tmp_path / "bridge", BRIDGE))


def planned(answer: Answer) -> list[tuple[str, str, str]]:
    assert answer.status == 0, answer.err
    return [
        (step["id"], " ".join(step["command"]["argv"]), step.get("skip_reason", ""))
        for step in json.loads(answer.out)["steps"]
    ]


@pytest.mark.parametrize("name", ["sft", "sft.sh", "tests/functional/sft.sh"])
def test_a_script_is_run_by_its_name_not_the_variant_of_that_name(
    proveout: Callable[..., Answer], trees: tuple[str, str], name: str
) -> None:
    answer = proveout("functional", name, "sft.max_num_steps=3", "--nemo-rl", trees[0], "--dry-run", "--json")
    command = "uv run bash tests/functional/sft.sh sft.max_num_steps=3"
    assert planned(answer) == [("nemo-rl-L0-sft.sh", command, "")]
    assert any("nothing is said of the Bridge" in text for text in json.loads(answer.out)["limitations"])


def test_a_script_without_megatron_shows_nothing_of_a_bridge_under_test(
    proveout: Callable[..., Answer], trees: tuple[str, str]
) -> None:
    nemo, bridge = trees
    answer = proveout("functional", "sft.sh", "--nemo-rl", nemo, "--bridge", bridge, "--dry-run", "--json")
    ((_, _, reason),) = planned(answer)
    assert "runs its policy on DTensor, so it says nothing of the Bridge" in reason


def test_a_script_of_a_level_counts_for_that_level(
    proveout: Callable[..., Answer], trees: tuple[str, str]
) -> None:
    answer = proveout("functional", "grpo_megatron_generation", "--nemo-rl", trees[0], "--dry-run", "--json")
    assert planned(answer)[0][0] == "nemo-rl-L3-grpo_megatron_generation.sh"
