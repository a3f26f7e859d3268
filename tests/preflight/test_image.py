"""What a container image's name tells: whether it is pinned, and which rollout engine it is made for."""

from __future__ import annotations

import pytest

from proveout.domain.preflight import PreflightContext
from proveout.domain.step import Command, Coverage, Step
from proveout.preflight.checks import image


def findings(name: str, engine: str | None = None, loop: str = "verl") -> list[str]:
    step = Step(
        id="s",
        coverage=Coverage(loop=loop, level=0),
        deliverable="d",
        claim="c",
        command=Command(argv=("bash",), env={"ENGINE": engine} if engine else {}),
    )
    context = PreflightContext(run_dir="/nowhere", loops=(loop,), steps=(step,), image=name)
    return [finding.id for finding in image.run(context)]


@pytest.mark.parametrize("name", ["verlai/verl", "verlai/verl:latest", "host:5000/verl"])
def test_a_name_that_may_change_its_meaning_is_warned_of(name: str) -> None:
    assert "preflight.image.unpinned" in findings(name)


@pytest.mark.parametrize(
    "name", ["verlai/verl:vllm011", "verlai/verl@sha256:ab", "host:5000/verl:1", "/img/verl.sqsh"]
)
def test_an_exact_name_is_not(name: str) -> None:
    assert "preflight.image.unpinned" not in findings(name)


@pytest.mark.parametrize(
    ("name", "engine", "warned"),
    [
        ("verlai/verl:sgl055.latest", None, True),
        ("verlai/verl:app-verl0.6-sglang0.5", "vllm", True),
        ("verlai/verl:vllm011.latest", None, False),
        ("verlai/verl:vllm011.latest", "sglang", True),
        ("verlai/verl:app-vllm0.9-sglang0.5", "sglang", False),
        ("registry.example/verl:2026.1", "vllm", False),
        ("verlai/verl:sgl055.latest", "hf", False),
    ],
)
def test_a_tag_for_another_rollout_engine_is_warned_of(name: str, engine: str | None, warned: bool) -> None:
    assert ("preflight.image.engine" in findings(name, engine)) is warned


def test_the_rollout_engine_is_asked_of_verl_alone() -> None:
    assert findings("x/nemo:sglang-1", "vllm", loop="nemo-rl") == []
