"""Load parity decides on the logits alone, names the weight that differs, and never passes for want of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from proveout.domain.evidence import Evidence
from proveout.domain.finding import Boundary, Severity
from proveout.domain.step import Coverage
from proveout.judge.criteria.checks import checks
from proveout.judge.criteria.load_parity import load_parity
from proveout.judge.functional import catches

Attempt = Callable[..., Evidence]
NAN = float("nan")


def parity(load: float, scale: float = 2.0, export: float | None = None) -> dict[str, dict[int, float]]:
    found = {"parity/load_max_logit_diff": {0: load}, "parity/load_logit_scale": {0: scale}}
    if export is not None:
        found |= {"parity/export_max_logit_diff": {3: export}, "parity/export_logit_scale": {3: scale}}
    return found


@pytest.mark.parametrize(("difference", "held"), [(0.0, True), (2.4e-7, True), (2.1e-4, False), (NAN, False)])
def test_the_limit_is_a_share_of_the_largest_logit(attempt: Attempt, difference: float, held: bool) -> None:
    said = load_parity(attempt(parity(difference)), {})
    assert (not said.findings, bool(said.held)) == (held, held)
    assert all(f.boundary is Boundary.PROVIDER and f.severity is Severity.ERROR for f in said.findings)


def test_the_first_weight_that_differs_is_named_else_the_configuration(attempt: Attempt) -> None:
    log = "Parity at load: weight model.layers.0.self_attn.q_proj.bias: differs by 0.3 at most\n"
    mapped = load_parity(attempt(parity(0.5), log=log), {}).findings[0]
    assert "first weight that differs: model.layers.0.self_attn.q_proj.bias" in mapped.what
    assert mapped.evidence[1].where.line == 1
    assert "look at the configuration" in load_parity(attempt(parity(0.5)), {}).findings[0].what


def test_what_was_not_compared_is_not_held(attempt: Attempt) -> None:
    assert [f.id for f in load_parity(attempt(), {}).findings] == ["judge.load_parity.missing"]
    assert not load_parity(attempt(parity(0.0)), {}).findings
    assert load_parity(attempt(parity(0.0)), {"export": True}).findings
    wrong = load_parity(attempt(parity(0.0, export=0.1)), {}).findings
    assert [f.id for f in wrong] == ["judge.load_parity.export-differs"]


def test_a_check_names_its_boundary_but_not_for_a_series_that_is_not_there(attempt: Attempt) -> None:
    failed, absent = (
        checks(attempt(), {"expressions": [text], "boundary": "generation"}).findings[0].boundary
        for text in ('max(data["train/loss"]) < 0.1', 'max(data["train/lost"]) < 0.1')
    )
    assert (failed, absent) == (Boundary.GENERATION, Boundary.INCOMPLETE)


SOUND = {
    "train/token_mult_prob_error": {1: 1.0, 2: 1.0, 3: 1.0},
    "train/probs_ratio_clamped_min": {1: 0.9, 2: 0.9, 3: 0.9},
    "train/probs_ratio_clamped_max": {1: 1.1, 2: 1.1, 3: 1.1},
}
CASES: list[tuple[dict[str, Any], int, bool]] = [
    ({}, 0, False),
    ({}, 1, True),
    ({"train/token_mult_prob_error": {1: 1.0, 2: 1.2, 3: 1.0}}, 0, True),
    ({"train/token_mult_prob_error": {1: 1.0, 2: NAN, 3: 1.0}}, 0, False),
    ({"train/token_mult_prob_error": {1: NAN, 2: 1.0, 3: 1.0}}, 0, True),
    ({"train/token_mult_prob_error": {1: 1.0}}, 0, False),
    ({"train/token_mult_prob_error": {}}, 0, True),
]


@pytest.mark.parametrize(("other", "code", "caught"), CASES)
def test_functional_checks_have_the_semantics_of_their_own_tool(
    attempt: Attempt, other: dict[str, Any], code: int, caught: bool
) -> None:
    assert catches(attempt({**SOUND, **other}, code=code)) is caught


def test_a_resume_that_started_over_equals_the_diamond(attempt: Attempt) -> None:
    numbers = {
        tag: {2: 0.5, 3: 0.4}
        for tag in (
            "train/lr",
            "train/global_valid_seqs",
            "train/global_valid_toks",
            "train/loss",
            "train/grad_norm",
        )
    }
    through = attempt({tag: {1: 0.6, **points} for tag, points in numbers.items()})
    resumed = attempt(numbers, related={"bench-L1-lora": through})
    step = msgspec.structs.replace(
        resumed.step, coverage=Coverage(loop="bench", level=1, variant="lora-resume")
    )
    assert catches(msgspec.structs.replace(resumed, step=step)) is False
    drifted = attempt({**numbers, "train/loss": {2: 0.5, 3: 0.5}}, related={"bench-L1-lora": through})
    assert catches(msgspec.structs.replace(drifted, step=step)) is True
