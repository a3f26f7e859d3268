"""Backend megatron on the real wheels: layouts, families, resume, and a Bridge whose mapping was changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bench.runs import Finished
from tests.conftest import Answer
from tests.stack import python_of

from proveout.loops.bench.table import HF

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.stack("bridge-cpu"), pytest.mark.real]
SIZE = ("max_steps=2", "tiny.vocab_multiple=4", "rollout.max_new_tokens=8")
COMPARED = ("train/loss", "train/grad_norm", "train/weight_delta", "train/reward", "train/trainable_params")


def run(folder: Path, *words: str) -> Finished:
    done = subprocess.run(
        [
            python_of("bridge-cpu"),
            "-m",
            "proveout_bench",
            "grpo",
            f"output_dir={folder}",
            "backend=megatron",
            *words,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Finished(done.returncode, done.stdout, done.stderr, folder)


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run(tmp_path_factory.mktemp("one") / "run", *SIZE)


@pytest.mark.parametrize(
    "layout",
    [
        ("megatron.tp=2", "megatron.sequence_parallel=true"),
        ("megatron.tp=2", "megatron.pp=2", "megatron.microbatches=2"),
        ("megatron.dp=2",),
    ],
)
def test_every_layout_trains_as_one_rank_does(
    layout: tuple[str, ...], one_rank: Finished, tmp_path: Path
) -> None:
    series, alone = run(tmp_path / "run", *SIZE, *layout).series(), one_rank.series()
    for name in COMPARED:
        assert series[name] == pytest.approx(alone[name], rel=1e-4, abs=1e-6), name
    assert series["parity/load_max_logit_diff"][0] < 1e-5
    assert series["parity/load_weights_differing"][0] == 0


@pytest.mark.parametrize("words", [(), ("megatron.tp=2", "lora.rank=4", "lr=0.005")])
def test_a_resumed_run_goes_on_as_the_one_that_never_stopped(words: tuple[str, ...], tmp_path: Path) -> None:
    saves = ("checkpoint.every=1", f"checkpoint.dir={tmp_path}/saved")
    whole = run(tmp_path / "whole", *SIZE, *words).series()
    run(tmp_path / "first", *SIZE, *words, *saves, "stop_after_step=1")
    resumed = run(tmp_path / "second", *SIZE, *words, f"resume={tmp_path}/saved").series()
    for name in COMPARED:
        assert resumed[name][2] == whole[name][2], name


def test_experts_are_spread_and_the_export_is_what_was_trained(tmp_path: Path) -> None:
    words = ("tiny.experts=4", "megatron.dp=2", "megatron.ep=2", f"export={tmp_path}/export")
    series = run(tmp_path / "run", *SIZE, *words).series()
    assert series["parity/load_max_logit_diff"][0] < 1e-5
    assert series["parity/export_max_logit_diff"][2] < 1e-5
    assert max(series["train/token_mult_prob_error"].values()) < 1.0001


def _copy_of_the_bridge(folder: Path) -> Path:
    asked = (
        "import importlib.util as u; print(next(iter(u.find_spec('megatron').submodule_search_locations)))"
    )
    found = subprocess.run(
        [python_of("bridge-cpu"), "-c", asked], capture_output=True, text=True, check=True
    ).stdout.strip()
    shutil.copytree(Path(found) / "bridge", folder / "src" / "megatron" / "bridge")
    return folder / "src" / "megatron" / "bridge" / "models" / "qwen" / "qwen2_bridge.py"


@pytest.mark.parametrize("broken", [True, False])
def test_one_changed_mapping_line_of_a_bridge_fails_and_is_named(
    broken: bool, proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    """Gate and up projection change places at import, and back at export: every exported weight is right."""
    mapping = _copy_of_the_bridge(tmp_path / "copy")
    text = mapping.read_text()
    gate, up = "model.layers.*.mlp.gate_proj.weight", "model.layers.*.mlp.up_proj.weight"
    swapped = text.replace(f'gate="{gate}"', f'gate="{up}"').replace(f'up="{up}"', f'up="{gate}"')
    assert swapped != text
    if broken:
        mapping.write_text(swapped)
    answer = proveout(
        "run", "--backend", "megatron", "--bridge", str(tmp_path / "copy"), "--level", "0", "--json"
    )
    told = json.dumps(answer.json)
    if not broken:
        assert answer.status == 0, told
        assert f"megatron.bridge imported from {tmp_path}/copy/src" in told
        return
    assert answer.status == 1
    found = [f for step in answer.json["steps"] for a in step["attempts"] for f in a["findings"]]
    parity = [f["what"] for f in found if f["id"] == "judge.load_parity.load-differs"]
    assert parity
    assert "model.layers.0.mlp.gate_proj.weight" in parity[0]


def test_the_report_says_what_the_platform_leaves_out(proveout: Callable[..., Answer]) -> None:
    answer = proveout("run", "--backend", "megatron", "--level", "0", "--json")
    assert answer.status == 0, answer.out[-3000:]
    said = json.dumps(answer.json["limitations"])
    assert "gloo instead of NCCL" in said
    assert f"backend {HF}" not in said
