"""Logs and event files of real runs of verl and NeMo-RL: what passed passes, what was broken fails for its reason."""

import gzip
import shutil
from pathlib import Path

import pytest

from proveout.capture.metrics import read_any
from proveout.domain.evidence import End, Evidence, ExitRecord
from proveout.domain.finding import Severity
from proveout.domain.step import Command, Coverage, Criterion, Step
from proveout.domain.verdict import Verdict
from proveout.judge import judge

DATA = Path(__file__).parent / "data"
FUNCTIONAL = ('max(data["train/token_mult_prob_error"]) < 1.05',)


@pytest.fixture
def real(tmp_path):
    def build(log, loop, planned, events=None, criteria=(), related=None):
        directory = tmp_path / log
        directory.mkdir()
        (directory / "run.log").write_bytes(gzip.decompress((DATA / f"{log}.log.gz").read_bytes()))
        source = directory / "run.log"
        if events is not None:
            source = directory / "events.out.tfevents.1.real.1.0"
            shutil.copyfile(DATA / f"{events}.tfevents", source)
        table, findings = read_any(source)
        step = Step(
            id=log,
            coverage=Coverage(loop=loop, level=0),
            deliverable="a real run",
            claim="it ran",
            command=Command(argv=("run",)),
            planned_steps=planned,
            criteria=tuple(Criterion(kind=kind, params=params) for kind, params in criteria),
        )
        return Evidence(
            step=step,
            attempt=1,
            attempt_dir=str(directory),
            exit=ExitRecord(end=End.EXITED, code=0, started=1.0),
            log="run.log",
            metrics=table,
            findings=findings,
            related=related or {},
        )

    return build


def errors(judgement):
    return [finding for finding in judgement.findings if finding.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("log", "planned"),
    [
        ("verl-grpo-megatron-h200-pass", 2),
        ("verl-grpo-megatron-lora-save-pass", 2),
        ("verl-grpo-megatron-lora-resume-pass", 3),
    ],
)
def test_verl_runs_that_passed_pass(real, log, planned):
    judgement = judge(real(log, "verl", planned))
    assert errors(judgement) == []
    assert judgement.verdict is Verdict.PASS


def test_a_verl_run_that_finishes_on_nan_fails_naming_grad_norm_and_step_2(real):
    judgement = judge(real("verl-nan-from-step-2-but-finishes", "verl", 4))
    assert judgement.verdict is Verdict.FAIL
    first = errors(judgement)[0]
    assert (first.where.metric, first.where.step) == ("actor/grad_norm", 2)
    assert "steps 2, 3, 4" in first.what


def test_one_step_more_than_was_run_is_not_complete(real):
    judgement = judge(real("verl-grpo-megatron-h200-pass", "verl", 3))
    assert {finding.id for finding in errors(judgement)} == {"judge.completion.short"}


def test_verl_resumed_where_it_was_saved(real):
    saved = real("verl-grpo-megatron-lora-save-pass", "verl", 2)
    params = {"baseline": "saved", "resumed_after": 2, "series": {"actor/lr": {"rtol": 1e-5}}}
    resumed = real(
        "verl-grpo-megatron-lora-resume-pass",
        "verl",
        3,
        criteria=(("resume_parity", params),),
        related={"saved": saved},
    )
    (result,) = [each for each in judge(resumed).results if each.kind == "resume_parity"]
    held = [citation.what for citation in result.held]
    assert "verl resumed from the saved step" in held
    assert "optimizer state loaded" in held


def test_nemo_rl_resume_reproduces_the_run_that_went_through(real):
    checks = ("checks", {"expressions": FUNCTIONAL})
    through = real(
        "nemo-rl-grpo-save-pass", "nemo-rl", 4, "nemo-rl-grpo-save", (checks, ("weights_moved", {}))
    )
    assert judge(through).verdict is Verdict.PASS
    parity = ("resume_parity", {"baseline": "through", "resumed_after": 2})
    resumed = real(
        "nemo-rl-grpo-resume-pass",
        "nemo-rl",
        4,
        "nemo-rl-grpo-resume",
        (parity, ("refit_timing", {})),
        {"through": through},
    )
    judgement = judge(resumed)
    assert errors(judgement) == []
    assert judgement.verdict is Verdict.PASS


def test_the_uninterrupted_run_in_place_of_the_resumed_one_is_no_resume(real):
    through = real("nemo-rl-grpo-save-pass", "nemo-rl", 4, "nemo-rl-grpo-save")
    parity = ("resume_parity", {"baseline": "through", "resumed_after": 2})
    again = real(
        "nemo-rl-grpo-resume-pass", "nemo-rl", 4, "nemo-rl-grpo-save", (parity,), {"through": through}
    )
    assert {f.id for f in errors(judge(again))} == {"judge.resume_parity.started-over"}


def test_stale_weights_in_generation_fail(real):
    criteria = (("checks", {"expressions": FUNCTIONAL}), ("weights_moved", {}))
    stale = real("nemo-rl-grpo-save-pass", "nemo-rl", 3, "nemo-rl-stale-weights-dp2", criteria)
    judgement = judge(stale)
    assert [f.id for f in errors(judgement)] == ["judge.checks.failed"]
    assert errors(judgement)[0].where.step == 2
