"""The fault catalogue: whole, consistent with the injectors, and its faults really caught in real runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest
from tests.conftest import Answer

from proveout.domain.loop import LoopContext
from proveout.flow.faulting import steps_of
from proveout.flow.warm import bench_context
from proveout.loops.bench.backends import python_of
from proveout.loops.bench.faults import catalogue
from proveout_bench.config.resolve import resolve
from proveout_bench.faults.names import NAMES

GROUPS = (
    "mapping config lora refit logprobs advantage loss optimizer checkpoint numerics environment reporting"
    " reward vision"
)
REPRESENTATIVE = {
    "mapping-missing-bias": "provider",
    "config-norm-epsilon": "provider",
    "refit-stale": "generation",
    "refit-old-version": "generation",
    "logprobs-temperature": "trainer",
    "loss-mask-ignored": "trainer",
    "optimizer-not-reduced": "trainer",
    "report-nan-once": "numerics",
    "report-stops-early": "incomplete",
}


def test_at_least_forty_faults_over_all_groups_each_with_a_source() -> None:
    faults = catalogue()
    assert len(faults) >= 40
    assert len({fault.id for fault in faults}) == len(faults)
    assert {fault.group for fault in faults} == set(GROUPS.split())
    assert all(fault.source and fault.boundary and fault.seam for fault in faults)


def test_every_injector_has_a_fault_and_every_fault_an_injector() -> None:
    words = {word for fault in catalogue() for word in fault.words}
    named = {word.removeprefix("fault.inject=") for word in words if word.startswith("fault.inject=")}
    assert named == set(NAMES)


@pytest.mark.parametrize("fault", catalogue(), ids=lambda fault: fault.id)
def test_the_fault_goes_into_the_step_that_carries_it_and_no_other(fault) -> None:  # type: ignore[no-untyped-def]
    steps = steps_of(fault, LoopContext(python="python", options={"backend": "hf"}))
    carrying = [
        step
        for step in steps
        if set(fault.words) <= set(step.command.argv) and fault.env.items() <= step.command.env.items()
    ]
    assert [step.coverage.variant for step in carrying] == [
        "lora-save" if fault.stage == "save" else fault.step
    ]
    for step in steps:
        assert set(fault.extra) <= set(step.command.argv)
        words = [word for word in step.command.argv[4:] if not word.startswith(("resume=", "model={"))]
        resolve(words, step.command.argv[3])


@pytest.mark.real
def test_faults_are_caught_with_their_boundary_and_a_harmless_one_is_named(
    proveout: Callable[..., Answer],
) -> None:
    only = ",".join([*REPRESENTATIVE, "refit-lost-weights"])
    answer = proveout("faults", "run", "--only", only, "--json")
    told = json.loads(answer.out)
    found = {row["fault"]: row for row in told["faults"]}
    assert {name: found[name]["boundary"] for name in REPRESENTATIVE} == REPRESENTATIVE
    assert all(found[name]["caught"] and found[name]["right"] for name in REPRESENTATIVE)
    assert (found["refit-lost-weights"]["verdict"], found["refit-lost-weights"]["caught"]) == ("Pass", False)
    assert not found["report-nan-once"]["functional_checks_catch"]
    assert found["refit-stale"]["functional_checks_catch"]
    assert (answer.status, told["caught"], told["visible"]) == (0, len(REPRESENTATIVE), len(REPRESENTATIVE))


def test_an_unknown_fault_is_named_with_the_nearest(proveout: Callable[..., Answer]) -> None:
    answer = proveout("faults", "run", "--only", "refit-stal")
    assert answer.status == 2
    assert "refit-stale" in answer.err


def test_an_interpreter_that_is_named_is_taken_even_where_it_is_the_present_one() -> None:
    assert python_of(bench_context("megatron", sys.executable)) == sys.executable
    assert "python" not in bench_context("megatron", None).options
