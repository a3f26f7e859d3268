"""The stand-in trees of the planner's tests, with every script that the level tables name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plan.conftest import BRIDGE, NEMO, SMALL, VERL, WRAPPER, script, write

from proveout.loops import nemo_rl, verl
from proveout.loops.nemo_rl.variants import table as nemo_table
from proveout.loops.verl.variants import table as verl_table


@pytest.fixture
def full_trees(tmp_path: Path) -> dict[str, str]:
    """Role -> a tree in which no script of any variant is missing."""
    nemo_rl._tree.cache_clear()
    verl._tree.cache_clear()
    scripts = {f"tests/functional/{v.script}.sh": script(SMALL) for v in nemo_table().variants if v.script}
    recipes = {
        "examples/configs/recipes/llm/" + name: "defaults: ../../grpo_megatron.yaml\ncluster: {gpus_per_node: 8}\n"
        "policy: {megatron_cfg: {expert_model_parallel_size: 2, pipeline_model_parallel_size: 2}}\n"
        for name in (
            "grpo-a-1n8g-megatron-tp2pp2cp2.yaml", "grpo-b-1n8g-megatron-fp8.yaml", "grpo-nano-1n8g-megatron.yaml")
    }  # fmt: skip
    examples = {v.script: WRAPPER for v in verl_table().variants if v.script}
    dummy = {v.dummy_config: "{}" for v in verl_table().variants if v.dummy_config}
    return {
        "bridge": str(write(tmp_path / "bridge", BRIDGE)),
        "nemo-rl": str(write(tmp_path / "nemo", {**scripts, **recipes, **NEMO})),
        "verl": str(write(tmp_path / "verl", {**examples, **dummy, **VERL})),
    }
