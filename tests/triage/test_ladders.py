"""Ladders are data that holds together: right rungs for a failure, each an honest change of the command alone."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proveout import loops
from proveout.domain.errors import UsageError
from proveout.domain.finding import Boundary
from proveout.domain.step import Artifact, Command, Coverage, Criterion, Source, Step
from proveout.triage.catalog import load as load_rules
from proveout.triage.ladders import Change, Failure, load, read
from proveout.triage.rungs import apply, distinct, effect, key_of

TABLE = Path(__file__).parents[2] / "docs" / "triage.md"
RUNGS = load().rungs
CHANGES = [(rung.id, loop, change) for rung in RUNGS.values() for loop, change in rung.loops.items()]
CHECKS = Criterion(kind="checks", params={"expressions": ['max(data["train/token_mult_prob_error"]) < 1.05']})


def a_step(
    *words: str, env: dict[str, str] | None = None, criteria: tuple[Criterion, ...] = (CHECKS,)
) -> Step:
    return Step(
        id="loop-L0-x",
        coverage=Coverage(loop="nemo-rl", level=0),
        deliverable="smoke",
        claim="updates completed",
        command=Command(argv=("bash", "run.sh", *words), env=env or {}),
        artifacts=(
            Artifact(path="tensorboard/events", what="events"),
            Artifact(path="{attempt_dir}/checkpoints/global_step_1/actor", what="saved actor"),
        ),
        config=Source(format="nemo-rl-console", path="run.log"),
        criteria=criteria,
    )


def climb(loop: str, boundary: Boundary, subkind: str = "", stage: str = "", *findings: str) -> list[str]:
    failure = Failure(loop=loop, boundary=boundary, subkind=subkind, stage=stage, findings=findings)
    return [rung.id for rung in load().climb(failure)]


def test_every_rung_stands_in_a_ladder_and_says_what_it_proves_and_what_not() -> None:
    used = {name for ladder in load().ladders for name in ladder.rungs}
    assert used == RUNGS.keys()
    for rung in RUNGS.values():
        assert rung.proves and rung.does_not_prove and rung.proves != rung.does_not_prove
        assert rung.loops.keys() <= loops.LOOPS.keys()


def test_every_change_changes_something() -> None:
    for name, loop, change in CHANGES:
        assert change.words or change.env or change.unset or change.halve or change.multiply, (name, loop)


@pytest.mark.parametrize(
    "change",
    [
        "{env: {NRL_IGNORE_TP_ACCURACY_CHECK: '1'}}",
        "{unset: [NRL_IGNORE_TP_ACCURACY_CHECK]}",
        "{words: [grpo.seq_logprob_error_threshold=2]}",
        "{words: [loss_fn.sequence_mask=true]}",
        "{words: [loss_fn.use_importance_sampling_correction=true]}",
        "{words: [algorithm.rollout_correction.rollout_is=token]}",
        "{words: [fault.nan_loss_at_step=0]}",
        "{halve: {metric.tolerance: 1}}",
        "{words: [a=1], without: [checks]}",
        "{words: [a=1], without: [finite]}",
        "{words: [a=1], without: [completion]}",
        "{words: [a=1], without_artifacts: ['*']}",
    ],
)
def test_a_rung_that_relaxes_is_refused(tmp_path: Path, change: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"rungs: [{{id: mine, title: t, proves: p, does_not_prove: d, loops: {{bench: {change}}}}}]\n"
    )
    with pytest.raises(UsageError, match="rung 'mine'"):
        read([file])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rungs: [", "not readable as ladders"),
        ("rungs: [{id: a}]", "not readable as ladders"),
        ("ladders: [{id: x, boundaries: [hang], rungs: [nothing]}]", "rungs that are none: nothing"),
        ("ladders: [{id: x, boundaries: [weather], rungs: []}]", "not readable as ladders"),
    ],
)
def test_a_wrong_ladder_file_is_a_clear_error(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=says):
        read([file])


@pytest.mark.parametrize(
    ("found", "first"),
    [
        (climb("nemo-rl", Boundary.TRAINER, "checkpoint-save", "checkpoint"), ["checkpoint-off"]),
        (climb("verl", Boundary.PROVIDER, "checkpoint-load", "resume"), ["fresh-start", "checkpoint-off"]),
        (climb("bench", Boundary.NONE, "", "", "judge.resume_parity.differs"), ["fresh-start"]),
        (climb("nemo-rl", Boundary.PROVIDER, "peft"), ["lora-alone", "lora-off"]),
        (
            climb("nemo-rl", Boundary.GENERATION, "illegal-memory-access"),
            ["cuda-graphs-off", "enforce-eager"],
        ),
        (
            climb("nemo-rl", Boundary.GENERATION, "weight-transfer", "refit"),
            ["delta-verified", "dense-refit", "plain-nccl", "gloo-copy", "colocated", "megatron-generation"],
        ),
        (climb("nemo-rl", Boundary.ENVIRONMENT, "model-download"), ["offline-snapshot"]),
        (climb("nemo-rl", Boundary.TRAINER, "config"), ["two-tensor-ranks", "one-tensor-rank"]),
    ],
)
def test_the_ladder_of_a_failure_begins_with_the_documents_own_re_runs(
    found: list[str], first: list[str]
) -> None:
    assert found[: len(first)] == first
    assert len(found) == len(set(found))


def test_logprobs_apart_are_isolated_in_the_documents_order() -> None:
    found = climb("nemo-rl", Boundary.NUMERICS, "logprob-mismatch")
    order = ["sequence-parallel-off", "rope-fusion-off", "shorter-sequences", "vllm-generation"]
    assert [name for name in found if name in order] == order


def test_verl_rollout_failures_are_tried_without_graphs() -> None:
    assert climb("verl", Boundary.GENERATION, "engine-start", "engine_start")[0] == "enforce-eager"


def test_an_environment_failure_never_climbs_the_model() -> None:
    assert climb("verl", Boundary.ENVIRONMENT, "disk-full") == ["offline-snapshot"]


def test_a_changed_word_replaces_the_earlier_one_of_its_key() -> None:
    change = RUNGS["sequence-parallel-off"].loops["nemo-rl"]
    step = a_step("++policy.megatron_cfg.sequence_parallel=true", "grpo.max_num_steps=2")
    applied = apply(change, step, {"policy.megatron_cfg.sequence_parallel": True})
    assert applied.step is not None
    assert applied.step.command.argv == (
        "bash",
        "run.sh",
        "grpo.max_num_steps=2",
        "policy.megatron_cfg.sequence_parallel=false",
    )
    assert effect(applied.values, {"policy.megatron_cfg.sequence_parallel": False}) == ""
    assert "is True" in effect(applied.values, {"policy.megatron_cfg.sequence_parallel": True})
    assert "not in" in effect(applied.values, {})
    assert "no resolved configuration" in effect(applied.values, None)


def test_a_rung_that_changes_nothing_is_skipped_with_its_reason() -> None:
    off = RUNGS["checkpoint-off"].loops["verl"]
    assert "already" in apply(off, a_step(env={"SAVE_FREQ": "-1"}), {"trainer.save_freq": -1}).reason
    assert apply(off, a_step(env={"SAVE_FREQ": "1"}), {"trainer.save_freq": 1}).step is not None
    assert apply(off, a_step(env={"SAVE_FREQ": "1"}), None).step is not None
    offline = RUNGS["offline-snapshot"].loops["bench"]
    assert "already" in apply(offline, a_step(env=dict(offline.env)), {}).reason
    graphs = RUNGS["cuda-graphs-off"].loops["nemo-rl"]
    assert "vllm" in apply(graphs, a_step(), {"policy.generation.backend": "vllm"}).reason
    alone = RUNGS["lora-alone"].loops["verl"]
    assert "nothing to change" in apply(alone, a_step(), {"actor_rollout_ref.model.lora.rank": 0}).reason


@pytest.mark.parametrize(
    ("rung", "loop", "finding"),
    [
        ("fresh-start", "bench", "judge.resume_parity.differs"),
        ("checkpoint-off", "bench", "judge.artifacts.missing"),
        ("lora-off", "nemo-rl", "judge.trainable.none"),
        ("lora-off", "nemo-rl", "judge.backend.differs"),
    ],
)
def test_a_rung_that_would_leave_what_failed_unjudged_is_skipped(rung: str, loop: str, finding: str) -> None:
    expected = {"policy.megatron_cfg.peft.enabled": True}
    step = a_step(criteria=(CHECKS, Criterion(kind="backend", params={"expected": expected})))
    change = RUNGS[rung].loops[loop]
    assert "not be judged" in apply(change, step, None, (finding,)).reason
    assert apply(change, step, None, (finding, "judge.exit.status")).step is not None
    assert apply(change, step, None, ("judge.checks.failed",)).step is not None


def test_a_failing_check_of_logprobs_finds_their_ladder_although_no_log_line_tells_it() -> None:
    failure = Failure(loop="bench", boundary=Boundary.UNKNOWN, metrics=("train/token_mult_prob_error",))
    assert [ladder.id for ladder in load().fitting(failure)] == ["logprobs-apart", "any"]
    other = Failure(loop="bench", boundary=Boundary.UNKNOWN, metrics=("train/reward",))
    assert [ladder.id for ladder in load().fitting(other)] == ["any"]


@given(length=st.integers(1, 100_000), smallest=st.integers(1, 500))
def test_halving_never_goes_below_the_smallest_length(length: int, smallest: int) -> None:
    applied = apply(Change(halve={"len": smallest}), a_step("len=9"), {"len": length})
    if applied.step is None:
        assert length // 2 < smallest and "cannot be halved" in applied.reason
    else:
        assert applied.step.command.argv[2:] == (f"len={length // 2}",)
        assert smallest <= length // 2 < length


def test_a_rung_that_runs_what_an_earlier_one_ran_is_skipped() -> None:
    config = {
        "policy.generation.refit_transport": "vllm_zmq_sparse",
        "policy.generation.colocated.enabled": False,
    }
    names = ("dense-refit", "plain-nccl", "colocated")
    rungs = [(RUNGS[name], apply(RUNGS[name].loops["nemo-rl"], a_step(), config)) for name in names]
    assert [applied.reason for _, applied in distinct(rungs)] == ["", "it is what dense-refit runs", ""]


def test_tensor_parallelism_is_only_ever_lowered() -> None:
    for loop, key in (
        ("nemo-rl", "policy.megatron_cfg.tensor_model_parallel_size"),
        ("verl", "actor_rollout_ref.actor.megatron.tensor_model_parallel_size"),
    ):
        two = RUNGS["two-tensor-ranks"].loops[loop]
        assert [apply(two, a_step(), {key: size}).step is not None for size in (1, 2, 4)] == [
            False,
            False,
            True,
        ]


def test_a_step_that_does_not_train_gets_no_override_words() -> None:
    tests = msgspec.structs.replace(a_step(), config=None)
    assert "no training run" in apply(RUNGS["lora-off"].loops["nemo-rl"], tests, None).reason
    assert "no training run" in apply(RUNGS["shorter-sequences"].loops["nemo-rl"], tests, None).reason
    assert apply(RUNGS["offline-snapshot"].loops["nemo-rl"], tests, None).step is not None


def test_a_length_that_nobody_knows_is_not_halved() -> None:
    assert "not known" in apply(Change(halve={"len": 1}), a_step("len=9"), None).reason


@given(
    st.sampled_from(CHANGES),
    st.lists(
        st.sampled_from(["a=1", "b.c=x y", "--flag", "trainer.save_freq=1", "lora.rank=4", "=", "+d=2"])
    ),
)
def test_no_rung_weakens_a_criterion_or_loses_a_word(case: tuple[str, str, Change], words: list[str]) -> None:
    _, _, change = case
    kinds = ("completion", "finite", "log", "provenance", "weights_moved", "learning_signal", "trainable")
    criteria = (CHECKS, *(Criterion(kind=kind) for kind in kinds))
    known = {
        **dict.fromkeys(change.halve, 4096),
        **{key: 3 for keys in change.multiply.values() for key in keys},
    }
    step = a_step(*words, criteria=criteria)
    applied = apply(change, step, {**known, **change.needs})
    if applied.step is None:
        assert applied.reason
        return
    after = applied.step
    assert [item for item in after.criteria if item.kind != "trainable"] == list(criteria[:-1])
    assert (after.planned_steps, after.metrics, after.needs) == (step.planned_steps, step.metrics, step.needs)
    assert step.artifacts[0] in after.artifacts
    kept = [word for word in step.command.argv if "=" not in word or key_of(word) not in applied.values]
    assert list(after.command.argv[: len(kept)]) == kept
    assert {
        key_of(word): word.partition("=")[2] for word in after.command.argv[len(kept) :]
    } == applied.values


def test_the_backend_criterion_expects_the_change_and_all_else_as_before() -> None:
    expected = {"policy.megatron_cfg.enabled": True, "policy.megatron_cfg.peft.enabled": True}
    step = a_step(criteria=(CHECKS, Criterion(kind="backend", params={"expected": expected})))
    applied = apply(RUNGS["lora-off"].loops["nemo-rl"], step, None)
    assert applied.step is not None
    assert applied.step.criteria == (
        CHECKS,
        Criterion(
            kind="backend", params={"expected": {**expected, "policy.megatron_cfg.peft.enabled": "false"}}
        ),
    )


def rows() -> list[tuple[str, str]]:
    """Sentence and place of every row of the two documents' tables."""
    found = re.findall(
        r"^\| (.+?) \| (.+?) \|$", TABLE.read_text().partition("## Isolation")[0], re.MULTILINE
    )
    return [(sentence, place) for sentence, place in found if "document" not in sentence]


def test_every_sentence_of_the_two_documents_has_a_rule_or_a_rung_that_exists() -> None:
    known = load_rules().by_id.keys() | RUNGS.keys()
    families = {"environment", "generation", "noise"}
    assert len(rows()) >= 22
    for sentence, place in rows():
        named = set(re.findall(r"`([a-z][a-z_0-9-]+)[`*]", place))
        assert named & known or any(f"`{family}" in place for family in families), sentence
    rungs = {name for _, place in rows() for name in re.findall(r"`([a-z0-9-]+)`", _after_rungs(place))}
    assert rungs <= RUNGS.keys(), rungs - RUNGS.keys()
    assert len(rungs) >= 14


def _after_rungs(place: str) -> str:
    _, found, after = place.partition("rung")
    return after if found else ""
