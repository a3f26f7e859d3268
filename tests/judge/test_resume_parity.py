"""A resume is shown by parity and by proof, never by equal numbers alone."""

import msgspec
import pytest

from proveout.domain.step import Criterion
from proveout.domain.verdict import Verdict
from proveout.judge import judge
from proveout.judge.resume import signs

THROUGH = {
    "train/loss": {1: 0.5, 2: 0.4, 3: 0.35, 4: 0.3},
    "train/grad_norm": {1: 1.0, 2: 0.9, 3: 0.8, 4: 0.7},
    "train/lr": dict.fromkeys((1, 2, 3, 4), 1e-3),
}
PROOF = "worker: successfully loaded checkpoint from /ck/step_2/policy/weights [ t 0/1 ] at iteration 0\n"


def part(first, last, **changed):
    tables = {tag: {s: v for s, v in points.items() if first <= s <= last} for tag, points in THROUGH.items()}
    for name, points in changed.items():
        tables[f"train/{name}"] = tables[f"train/{name}"] | points
    return tables


@pytest.fixture
def resumed(attempts):
    def build(metrics=None, *, log=PROOF, loop="nemo-rl", half=None, through=THROUGH, **params):
        baseline = attempts("through")(through, planned=4, loop=loop)
        first = attempts("saved")(half or part(1, 2), planned=2, loop=loop)
        first.step = msgspec.structs.replace(first.step, id="saved")
        asked = {"baseline": "through", "saved": "saved"} | params
        evidence = attempts("resumed")(
            metrics or part(3, 4),
            planned=4,
            log=log,
            loop=loop,
            criteria=(Criterion(kind="resume_parity", params=asked),),
        )
        evidence.related = {"through": baseline, "saved": first}
        return judge(evidence)

    return build


def found(judgement):
    return sorted({f.id.removeprefix("judge.resume_parity.") for f in judgement.findings})


def test_a_resume_that_goes_on_passes_with_proof(resumed):
    judgement = resumed()
    assert judgement.verdict is Verdict.PASS
    held = [cite.what for cite in judgement.results[-1].held]
    assert "policy weights loaded from the saved step" in held
    assert "the first step is 3, next to the saved step 2" in held


def test_a_run_that_starts_over_fails_though_its_numbers_are_equal(resumed):
    assert found(resumed(part(1, 4), log="nothing\n")) == ["no-proof", "started-over"]


def test_the_same_numbers_without_a_log_line_are_no_proof(resumed):
    assert found(resumed(log="all well\n")) == ["no-proof"]


def test_a_resume_from_another_step_fails(resumed):
    assert found(resumed(log=PROOF.replace("step_2", "step_1"))) == ["other-step"]


def test_a_conversion_that_is_loaded_is_not_a_resume(resumed):
    line = "successfully loaded checkpoint from /hf/nemo_rl/model__tiny [ t 0/1 ] at iteration 0\n"
    assert found(resumed(log=line)) == ["no-proof"]


def test_a_skipped_step_fails(resumed):
    assert "gap" in found(resumed(part(4, 4)))


def test_a_lost_optimizer_shows_at_the_second_step(resumed):
    judgement = resumed(part(3, 4, loss={4: 0.004}))
    assert found(judgement) == ["differs"]
    finding = judgement.findings[0]
    assert (finding.where.metric, finding.where.step) == ("train/loss", 4)
    assert "step 4: 0.004 against 0.3" in finding.evidence[0].text


def test_one_compared_step_cannot_show_the_optimizer(resumed):
    through = {tag: {s: v for s, v in points.items() if s <= 3} for tag, points in THROUGH.items()}
    judgement = resumed(part(3, 3) | {"train/loss": {3: 0.35}}, through=through)
    assert "one-step" in found(judgement)


def test_within_tolerance_is_near_enough_and_learning_rate_is_exact(resumed):
    assert found(resumed(part(3, 4, loss={4: 0.301}))) == []
    assert found(resumed(part(3, 4, lr={4: 1.01e-3}))) == ["differs"]


def test_parity_on_zero_gradients_shows_nothing(resumed):
    zero = {"train/grad_norm": dict.fromkeys((1, 2, 3, 4), 0.0)}
    judgement = resumed(part(3, 4) | {"train/grad_norm": {3: 0.0, 4: 0.0}}, through=THROUGH | zero)
    assert "zero-gradient" in found(judgement)


def test_a_loop_that_does_not_repeat_itself_cannot_be_judged(resumed):
    assert found(resumed(half=part(1, 2, loss={2: 0.9}))) == ["not-repeatable"]


def test_a_series_that_is_asked_for_must_be_there(resumed):
    assert found(resumed(series={"train/critic/loss": {"rtol": 0.1}})) == ["missing"]


def test_nan_is_never_parity(resumed):
    nan = {"train/loss": THROUGH["train/loss"] | {4: float("nan")}}
    assert "differs" in found(resumed(part(3, 4, loss={4: float("nan")}), through=THROUGH | nan))


@pytest.mark.parametrize("params", [{"baseline": "other"}, {"saved": "other"}])
def test_a_step_without_evidence_is_an_error(resumed, params):
    judgement = resumed(**params)
    assert judgement.verdict is Verdict.FAIL
    assert found(judgement) == ["params"]


def test_verl_says_when_it_started_over(resumed):
    points = {"actor/pg_loss": {3: 0.1, 4: 0.2}, "actor/grad_norm": {3: 1.0, 4: 1.1}}
    through = {tag: {1: 0.3, 2: 0.4} | values for tag, values in points.items()}
    saved = {tag: {1: 0.3, 2: 0.4} for tag in points}
    log = "Resuming from /ck/global_step_2, setting global step to 2\nLoaded optimizer checkpoint from /ck\n"
    assert found(resumed(points, log=log, loop="verl", through=through, half=saved)) == []
    assert found(
        resumed(points, log="Training from scratch\n", loop="verl", through=through, half=saved)
    ) == ["no-proof", "started-over"]


def test_every_loop_has_series_to_compare():
    assert all(known.series for known in signs().values())


def test_without_an_uninterrupted_run_the_claim_is_limited(resumed):
    judgement = resumed(baseline="")
    assert judgement.verdict is Verdict.PASS
    assert found(judgement) == ["uncompared"]


def test_without_an_uninterrupted_run_a_loop_that_prints_nothing_shows_nothing(resumed):
    assert "no-proof" in found(resumed(baseline="", loop="trl", log="x\n"))
