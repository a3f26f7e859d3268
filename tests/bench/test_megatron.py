"""Backend megatron without Megatron: what it refuses, how it aligns a batch, what its levels are."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Answer
from torch import Tensor

from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Step
from proveout.judge.registry import CRITERIA
from proveout.loops.bench import LOOP, backends
from proveout.loops.bench.faults import catalogue
from proveout.loops.bench.table import overlay, table
from proveout_bench import ranks
from proveout_bench.backends.megatron.align import align
from proveout_bench.backends.megatron.launch import take_device
from proveout_bench.backends.megatron.meeting import import_megatron
from proveout_bench.backends.megatron.weights import Delivery, fused
from proveout_bench.batch import Batch, pad_left
from proveout_bench.config.resolve import resolve
from proveout_bench.errors import ConfigError, EnvironmentFaultError

MEGATRON = ("backend=megatron",)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("megatron.cp=2",), "needs Transformer Engine's attention"),
        (("megatron.distributed_optimizer=true", "checkpoint.every=1"), "resumes silently wrong"),
        (("megatron.tp=2",), "must divide tiny.vocab_multiple=1"),
        (("megatron.ep=2",), "must divide megatron.dp=1"),
        (("megatron.sequence_parallel=true",), "needs megatron.tp of 2"),
        (("lora.rank=2", "lora.targets=q_proj,head"), "head is none of q_proj"),
    ],
)
def test_what_runs_silently_wrong_or_not_at_all_is_refused_with_the_reason(
    words: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=reason):
        resolve([*MEGATRON, f"output_dir={tmp_path}", *words])
    resolve(["backend=hf", f"output_dir={tmp_path}", *words])


@pytest.mark.parametrize(
    ("family", "vocabulary", "reason"),
    [
        ("gemma2", 64, "drop Gemma 2's norms"),
        ("mamba", 64, "not on the list"),
        ("qwen2", 63, "must divide the vocabulary"),
        ("qwen2", 64, ""),
        ("qwen3_moe", 64, ""),
    ],
)
def test_families_are_on_an_allow_list(family: str, vocabulary: int, reason: str, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": family, "vocab_size": vocabulary}))
    for name in ("model.safetensors", "tokenizer.json"):
        (model / name).touch()
    words = [*MEGATRON, f"output_dir={tmp_path}/out", f"model={model}", "megatron.tp=2"]
    if reason:
        with pytest.raises(ConfigError, match=reason):
            resolve(words)
    else:
        resolve(words)


@given(
    prompts=st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=5), min_size=1, max_size=4),
    steps=st.integers(1, 4),
    multiple=st.sampled_from([1, 2, 4]),
)
def test_alignment_puts_real_tokens_first_and_finds_each_response(
    prompts: list[list[int]], steps: int, multiple: int
) -> None:
    ids, mask = pad_left(prompts, 0)
    responses = torch.arange(10, 10 + len(prompts) * steps).view(len(prompts), steps)
    ones = torch.ones(len(prompts), steps)
    found = align(Batch(torch.cat([ids, responses], 1), mask, ones, ones), multiple)
    assert found.ids.shape[1] % multiple == 0
    for row, prompt in enumerate(prompts):
        real = [*prompt, *responses[row].tolist()]
        assert found.ids[row, : len(real)].tolist() == real
        assert found.places[row].tolist() == [len(prompt) - 1 + step for step in range(steps)]
        assert found.tokens[row].tolist() == responses[row].tolist()


def test_experts_are_joined_in_their_order_as_transformers_holds_them() -> None:
    parts = {
        f"model.layers.0.mlp.experts.{number}.{name}.weight": torch.full(shape, float(number + shift))
        for number in (1, 0)
        for name, shape, shift in (
            ("gate_proj", (3, 2), 10),
            ("up_proj", (3, 2), 20),
            ("down_proj", (2, 3), 30),
        )
    }
    found = dict(fused({"model.norm.weight": torch.ones(2), **parts}.items()))
    assert list(found) == [
        "model.norm.weight",
        "model.layers.0.mlp.experts.gate_up_proj",
        "model.layers.0.mlp.experts.down_proj",
    ]
    gate_up = found["model.layers.0.mlp.experts.gate_up_proj"]
    assert gate_up.shape == (2, 6, 2)
    assert gate_up[:, 0, 0].tolist() == [10, 11]
    assert gate_up[:, 3, 0].tolist() == [20, 21]
    assert found["model.layers.0.mlp.experts.down_proj"][:, 0, 0].tolist() == [30, 31]


@pytest.mark.parametrize(("sent", "undelivered"), [(1.0, 0.0), (0.0, 4.0), (None, 4.0)])
def test_an_adapter_that_does_not_leave_shows(sent: float | None, undelivered: float) -> None:
    base = {"a.weight": torch.zeros(4, 4), "b.weight": torch.ones(2)}
    leaving: list[tuple[str, Tensor]] = [("b.weight", base["b.weight"])]
    if sent is not None:
        leaving.append(("a.weight", torch.full((4, 4), sent)))
    watch = Delivery(base)
    assert len(list(watch.watch(leaving, {"a.weight": torch.ones(4, 4)}))) == len(leaving)
    assert watch.measure()["lora/effect_norm"] == 4.0
    assert watch.measure()["lora/undelivered_norm"] == undelivered


def steps(level: int, variant: str = "all", **options: str) -> dict[str, Step]:
    request = LevelRequest(loop="bench", level=level, requested=True, reason="asked", variant=variant)
    context = LoopContext(
        python="python", options={"backend": "megatron", "python": "stack-python", **options}
    )
    return {step.coverage.variant: step for step in LOOP.steps(request, context)}


def test_every_row_of_the_backend_is_a_run_that_it_accepts_or_is_skipped_with_a_reason(tmp_path: Any) -> None:
    for level in LOOP.levels:
        for step in steps(level).values():
            assert {criterion.kind for criterion in step.criteria} <= CRITERIA.keys()
            assert "backend=megatron" in step.command.argv
            if not step.skip_reason:
                words = step.command.at(str(tmp_path)).argv[4:]
                resolve([word for word in words if not word.startswith("resume=")], step.command.argv[3])
                assert (
                    any(c.kind == "load_parity" for c in step.criteria)
                    or step.coverage.variant == "lora-save"
                )
    assert overlay("megatron").changes.keys() <= {row.id for row in table().steps}


def test_what_cannot_run_is_skipped_and_level_5_still_has_something_to_pass() -> None:
    assert "needs Transformer Engine" in steps(4)["cp2"].skip_reason
    skipped = {name for name, step in steps(5).items() if step.skip_reason}
    assert skipped == {"vlm", "gemma2"}
    assert {"moe", "qwen3", "llama", "mistral", "gemma"} <= steps(5, "default").keys()
    assert "megatron.ep=2" in steps(5)["moe"].command.argv


def test_reports_say_what_the_platform_leaves_out() -> None:
    said = " ".join(steps(0)["grpo"].limitations)
    assert "gloo instead of NCCL" in said
    assert "Transformer Engine" in said
    assert "backend hf" not in said


@pytest.mark.parametrize("there", [True, False])
def test_on_a_gpu_the_reports_say_whether_transformer_engine_is_there(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if there:
        (tmp_path / "transformer_engine.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    backends._has.cache_clear()
    context = LoopContext(
        python="python",
        options={"backend": "megatron", "python": sys.executable},
        overrides=("runtime.device=cuda",),
    )
    said = " ".join(backends.limitations_of(context))
    backends._has.cache_clear()
    assert ("Megatron's local layers ran" in said) is not there
    assert "gloo" not in said
    assert "CUDA_VISIBLE_DEVICES" not in backends.environment_of(context)


def test_each_rank_sees_one_gpu_and_too_few_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    monkeypatch.setenv(ranks.WORLD, "2")
    monkeypatch.setenv(ranks.RANK, "1")
    take_device("cpu")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,6"
    take_device("cuda")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "6"
    with pytest.raises(EnvironmentFaultError, match="GPUs here: 1"):
        take_device("cuda")


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "megatron", None)
    monkeypatch.setattr("proveout_cpu.megatron.apply", lambda **_: None)
    with pytest.raises(EnvironmentFaultError, match="make bridge") as raised:
        import_megatron()
    assert "proveout[bench]" not in str(raised.value)


def test_faults_that_this_backend_has_no_place_for_say_why() -> None:
    here = [fault.with_backend("megatron") for fault in catalogue()]
    assert all(fault.not_for or fault.boundary for fault in here)
    assert {fault.step for fault in here if not fault.not_for} <= {
        row.name for row in table("megatron").steps
    }


def test_a_bridge_under_test_runs_on_megatron_unless_another_backend_is_named() -> None:
    bridge = LoopContext(python="python", checkouts={"bridge": "/tree"})
    assert backends.backend_of(bridge) == "megatron"
    assert LOOP.levels_by_default(bridge) == tuple(range(7))
    named = LoopContext(python="python", checkouts={"bridge": "/tree"}, options={"backend": "hf"})
    assert backends.backend_of(named) == "hf"
    assert backends.backend_of(LoopContext(python="python")) == "hf"
    with pytest.raises(UsageError, match="did you mean 'megatron'"):
        backends.backend_of(LoopContext(python="python", options={"backend": "megatrom"}))


def test_the_tree_under_test_comes_first_and_must_be_what_the_ranks_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVEOUT_STACKS", str(tmp_path / "stacks"))
    (tmp_path / "src" / "megatron" / "bridge").mkdir(parents=True)
    context = LoopContext(python="python", checkouts={"bridge": str(tmp_path)})
    first, own = backends.environment_of(context)["PYTHONPATH"].split(":")
    assert first == f"{tmp_path}/src"
    assert sorted(found.name for found in Path(own).iterdir()) == ["proveout_bench", "proveout_cpu"]
    (wanted,) = [c for c in backends.criteria_of(context) if c.kind == "provenance"]
    assert wanted.params["expected"] == {"megatron.bridge": f"{tmp_path}/src"}


def test_without_its_environment_it_is_blocked_and_says_how_to_make_it(
    proveout: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVEOUT_STACKS", str(tmp_path / "none"))
    with pytest.raises(BlockedError, match="bridge-cpu is not installed"):
        backends.python_of(LoopContext(python="python", checkouts={"bridge": "/tree"}, options={}))
    answer = proveout("run", "--backend", "megatron", "--level", "0")
    assert answer.status == 3
    assert "make bridge" in answer.err
