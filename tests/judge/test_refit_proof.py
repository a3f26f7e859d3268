"""Agreement of generation and policy counts only with the first weights right and later ones moved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.judge.conftest import Attempt

from proveout.domain.finding import Boundary
from proveout.judge.criteria.refit_proof import refit_proof

PROBS = "training/rollout_probs_diff_max"
PARAMS = {"agreement": [{"tag": PROBS, "most": 0.001}]}


def transfer(number: int, **changes: Any) -> dict[str, Any]:
    moved = 0.0 if number == 1 else 0.5
    return {
        "worker": "replica 0",
        "transfer": number,
        "version": number - 1,
        "received": 26,
        "missing": [],
        "extra": [],
        "wrong_shape": [],
        "checksum": f"{number:016x}",
        "change": moved,
        "largest_change": moved / 10,
        "from_original": moved,
        "largest_from_original": moved / 10,
        **changes,
    }


def judged(
    directory: Path, transfers: list[Any], probs: dict[int, float] | None = None, **params: Any
) -> Any:
    directory.mkdir(exist_ok=True)
    lines = [item if isinstance(item, str) else json.dumps(item) for item in transfers]
    (directory / "refit.jsonl").write_text("".join(f"{line}\n" for line in lines))
    series = {PROBS: probs if probs is not None else {1: 1e-6, 2: 2e-6}, "actor/loss": {1: 0.1, 2: 0.2}}
    return refit_proof(Attempt(directory)(series, loop="verl"), PARAMS | params)


def ids(result: Any) -> list[str]:
    return [finding.id.removeprefix("judge.refit_proof.") for finding in result.findings]


def test_right_weights_that_moved_and_agree_hold(tmp_path: Path) -> None:
    result = judged(tmp_path, [transfer(1), transfer(2), transfer(3)])
    assert ids(result) == []
    said = [citation.what for citation in result.held]
    assert "the first transfer brought the weights of the original checkpoint exactly" in said
    assert "transfer 2 moved the weights by 0.5" in said
    assert f"{PROBS} is 2e-06 with weights that had moved" in said


def test_a_wrong_import_is_seen_although_generation_agrees(tmp_path: Path) -> None:
    first = transfer(1, from_original=3.0, largest_from_original=0.25)
    result = judged(tmp_path, [first, transfer(2), transfer(3)])
    assert ids(result) == ["import"]
    assert result.findings[0].boundary is Boundary.PROVIDER
    assert "0.25 at most" in result.findings[0].what


def test_agreement_of_weights_that_never_moved_is_no_evidence(tmp_path: Path) -> None:
    still = [
        transfer(number, change=0.0, from_original=0.0, largest_from_original=0.0) for number in (1, 2, 3)
    ]
    assert ids(judged(tmp_path, still)) == ["still"]


def test_only_steps_after_the_move_count(tmp_path: Path) -> None:
    late = [transfer(1), transfer(2, change=0.0), transfer(3)]
    assert ids(judged(tmp_path, late, {1: 1e-6, 2: 1e-6})) == ["unmeasured"]
    assert ids(judged(tmp_path, late, {1: 1e-6, 2: 1e-6, 3: 1e-6})) == []


def test_stale_weights_in_generation_are_seen(tmp_path: Path) -> None:
    result = judged(tmp_path, [transfer(1), transfer(2), transfer(3)], {1: 1e-6, 2: 0.4})
    assert ids(result) == ["disagrees"]
    assert "is 0.4 at step 2, and at most 0.001 is right" in result.findings[0].what


def test_a_policy_that_computes_otherwise_from_the_start_is_the_providers(tmp_path: Path) -> None:
    result = judged(tmp_path, [transfer(1), transfer(2), transfer(3)], {1: 0.7, 2: 0.7})
    assert ids(result) == ["policy"]
    assert result.findings[0].boundary is Boundary.PROVIDER
    assert f"{PROBS} is 0.7 at step 1" in result.findings[0].what


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"missing": ["model.norm.weight"]}, "names"),
        ({"extra": ["lora.A"]}, "names"),
        ({"wrong_shape": ["model.embed"]}, "names"),
    ],
)
def test_names_that_do_not_fit_are_the_providers(tmp_path: Path, wrong: dict[str, Any], found: str) -> None:
    result = judged(tmp_path, [transfer(1), transfer(2, **wrong), transfer(3)])
    assert ids(result) == [found]
    assert result.findings[0].where.line == 2
    assert result.findings[0].boundary is Boundary.PROVIDER


def test_weights_that_are_not_finite_and_lines_that_are_no_record_are_errors(tmp_path: Path) -> None:
    nan = json.dumps(transfer(2, change=float("nan"), from_original=float("inf")))
    assert "NaN" in nan
    assert "not-finite" in ids(judged(tmp_path, [transfer(1), nan, transfer(3)]))
    assert "unreadable" in ids(judged(tmp_path, [transfer(1), '{"worker": 3', transfer(3)]))


def test_no_record_is_an_error_and_so_is_one_that_begins_late(tmp_path: Path) -> None:
    assert ids(judged(tmp_path, [])) == ["none"]
    assert ids(judged(tmp_path, [transfer(2), transfer(3), transfer(4)], {2: 1e-6, 3: 1e-6})) == ["late"]
    resumed = judged(tmp_path, [transfer(3), transfer(4)], {3: 1e-6, 4: 1e-6}, fresh=False)
    assert ids(resumed) == []


def test_every_worker_must_prove_its_own_weights(tmp_path: Path) -> None:
    other = [transfer(1, worker="replica 1"), transfer(2, worker="replica 1", change=0.0)]
    assert ids(judged(tmp_path, [transfer(1), transfer(2), *other])) == ["still"]
