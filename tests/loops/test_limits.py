"""Limitations come from the configuration that ran, not from how the command looked."""

from __future__ import annotations

import pytest

from proveout import loops
from proveout.domain.loop import LoopContext
from proveout.loops.bench.backends import limitations_of
from proveout.loops.limits import limitations, table


@pytest.mark.parametrize(
    ("loop", "config", "words"),
    [
        ("nemo-rl", {"policy.generation.vllm_cfg.enforce_eager": True}, ["CUDA graphs were not exercised"]),
        ("nemo-rl", {"policy.generation.vllm_cfg.enforce_eager": False}, []),
        ("nemo-rl", {"policy.generation.mcore_generation_config.cuda_graph_impl": "none",
                     "policy.generation.backend": "vllm"}, []),
        ("nemo-rl", {"policy.generation.mcore_generation_config.cuda_graph_impl": "none",
                     "policy.generation.backend": "megatron"}, ["optimisation-reduced pass"]),
        ("verl", {"reward.reward_model.enable": False}, ["reward model was off"]),
        ("verl", {"reward.reward_model.enable": 0}, []),
        ("verl", {}, []),
        ("bench", {"reward.reward_model.enable": False}, []),
    ],
)  # fmt: skip
def test_a_value_that_ran_limits_the_claim(loop: str, config: dict[str, object], words: list[str]) -> None:
    found = limitations(loop, config)
    assert len(found) == len(words) and all(word in text for word, text in zip(words, found, strict=True))


def test_every_loop_of_the_table_is_one() -> None:
    assert table().keys() <= loops.LOOPS.keys()


def test_a_bench_run_on_a_gpu_does_not_say_that_it_was_on_the_cpu() -> None:
    said = {
        device: limitations_of(LoopContext(python="python", overrides=(f"runtime.device={device}",)))[1]
        for device in ("cpu", "cuda")
    }
    assert "CPU only" in said["cpu"]
    assert "CPU" not in said["cuda"]
    assert "GPUs of one machine" in said["cuda"]
