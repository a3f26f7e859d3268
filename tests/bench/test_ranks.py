"""Ranks of backend hf: who meets whom when, and what tensor parallel ranks compute together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bench.runs import SMALL, grpo

from proveout_bench import ranks, registry
from proveout_bench.algorithms import rollout
from proveout_bench.backends import group
from proveout_bench.config.resolve import resolve
from proveout_bench.config.schema import Runtime
from proveout_bench.errors import ConfigError, EnvironmentFaultError
from proveout_bench.generation.inprocess import build
from proveout_bench.timing import Phases

ORDER: list[str] = []


def fork(*given: Any) -> Any:
    ORDER.append("fork")
    return build(*given)


def meet(runtime: Runtime) -> None:
    ORDER.append("meet")


def test_generation_is_forked_before_ranks_meet_as_meeting_on_gpus_makes_them_unusable_in_a_fork(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ORDER.clear()
    monkeypatch.setitem(registry.ENGINES, "process", f"{__name__}:fork")
    monkeypatch.setitem(registry.MEETINGS, "hf", f"{__name__}:meet")
    config = resolve([*SMALL, "loss.minibatch_size=4", "rollout.engine=process", f"output_dir={tmp_path}"])
    rollout.build_actors(config, Phases())
    assert ORDER == ["fork", "meet"]


@pytest.mark.parametrize(("gpus", "transport"), [(0, "gloo"), (1, "gloo"), (2, "nccl"), (8, "nccl")])
def test_ranks_that_share_a_gpu_do_not_take_nccl(
    monkeypatch: pytest.MonkeyPatch, gpus: int, transport: str
) -> None:
    monkeypatch.setenv(ranks.WORLD, "2")
    assert group.transport(gpus, sharded=False) == transport


def test_sharded_ranks_on_gpus_need_one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ranks.WORLD, "2")
    assert [group.transport(gpus, sharded=True) for gpus in (0, 2)] == ["gloo", "nccl"]
    with pytest.raises(
        EnvironmentFaultError, match=r"2 processes, each with a GPU of its own, and GPUs here: 1"
    ):
        group.transport(1, sharded=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["runtime.tp=2", "runtime.ranks=2"], "one of the two"),
        (["runtime.tp=2", "lora.rank=4"], "all weights"),
        (["runtime.tp=2", "tiny.experts=4"], "experts"),
        (["runtime.tp=4"], "must divide tiny.kv_heads=2"),
        (["runtime.tp=2", "backend=megatron"], "keys of its own"),
    ],
)
def test_layouts_that_do_not_run_are_refused(words: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        resolve([*words, f"output_dir={tmp_path / 'out'}"])


@pytest.mark.real
def test_two_tensor_parallel_ranks_train_save_and_export_as_one_process_does(tmp_path: Path) -> None:
    words = (*SMALL, "loss.minibatch_size=4", "checkpoint.every=2")
    one = grpo(tmp_path / "one", *words, f"export={tmp_path / 'one' / 'export'}")
    two = grpo(tmp_path / "two", *words, f"export={tmp_path / 'two' / 'export'}", "runtime.tp=2")
    assert (one.status, two.status) == (0, 0), two.err
    alone, together = one.series(), two.series()
    for tag in ("train/loss", "train/grad_norm", "train/weight_delta", "train/reward", "train/kl_penalty"):
        assert together[tag] == pytest.approx(alone[tag], rel=1e-3, abs=1e-6), tag
    assert together["parity/load_max_logit_diff"][0] < 1e-5
    assert together["parity/load_weights_differing"][0] == 0
    assert together["export/logprob_error"][2] < 1e-5
    assert max(together["train/ranks_differing"].values()) == 0
    for part in ("policy", "optimizer"):
        theirs, ours = (
            torch.load(tmp_path / name / "checkpoints" / "step_2" / f"{part}.pt", weights_only=True)
            for name in ("one", "two")
        )
        left, right = _tensors(theirs), _tensors(ours)
        assert sorted(map(tuple, (one.shape for one in left))) == sorted(
            map(tuple, (one.shape for one in right))
        )
    resumed = grpo(
        *(tmp_path / "on", *words, "max_steps=3", "runtime.tp=2"),
        f"resume={tmp_path / 'two' / 'checkpoints'}",
    )
    whole = grpo(tmp_path / "whole", *words, "max_steps=3", "runtime.tp=2")
    assert (resumed.status, whole.status) == (0, 0), resumed.err
    for tag in ("train/loss", "train/grad_norm", "train/weight_delta"):
        assert resumed.series()[tag][3] == pytest.approx(whole.series()[tag][3], rel=1e-4), tag


def _tensors(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [one for part in inner for one in _tensors(part)]


def test_what_a_library_started_beside_a_fork_ends_with_it() -> None:
    program = (
        "import multiprocessing, os, sys\n"
        "from proveout_bench import ranks\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    manager = multiprocessing.Manager()\n"
        "    print(manager._process.pid, flush=True)\n"
        "    ranks.leave(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    manager, status = map(int, said.split())
    assert status == 3
    with pytest.raises(ProcessLookupError):
        os.kill(manager, 0)
