"""Every criterion on real runs of the built-in loop: a sound one passes it, a really broken one fails it."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proveout.capture.artifacts import look
from proveout.capture.config import read_config
from proveout.capture.metrics import read_metrics
from proveout.domain.evidence import End, Evidence, ExitRecord
from proveout.domain.finding import Severity
from proveout.domain.step import Artifact, Command, Coverage, Criterion, MetricSource, Source, Step
from proveout.domain.verdict import Verdict
from proveout.judge import judge

pytestmark = pytest.mark.real
PLANNED = 24
LEARNS = (Criterion(kind="weights_moved"), Criterion(kind="learning_signal", params={"peft": True}))
CHECKS = Criterion(
    kind="checks",
    params={
        "expressions": [
            'max(data["train/token_mult_prob_error"]) < 1.0001',
            'min(data["train/probs_ratio_clamped_min"]) > 0.79',
        ]
    },
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The directory of all runs, and the time when they began."""
    directory = tmp_path_factory.mktemp("runs")
    started = time.time()
    driver = Path(__file__).with_name("bench_runs.py")
    done = subprocess.run(
        [sys.executable, str(driver), str(directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return directory, started


@pytest.fixture
def judged(runs):
    def build(name, *criteria, started=None, related=None, artifacts=()):
        directory, begun = runs[0] / name, runs[1] if started is None else started
        sources = (MetricSource(format="tensorboard", path="tensorboard"),)
        table, findings = read_metrics(sources, directory, not_before=begun)
        config, more = read_config(Source(format="json", path="config.json"), directory)
        step = Step(
            id=name,
            coverage=Coverage(loop="bench", level=6),
            deliverable="a GRPO run",
            claim="learning signal passed",
            command=Command(argv=("python", "-m", "proveout_bench")),
            planned_steps=PLANNED,
            artifacts=artifacts,
            criteria=criteria,
        )
        evidence = Evidence(
            step=step,
            attempt=1,
            attempt_dir=str(directory),
            exit=ExitRecord(end=End.EXITED, code=0, started=begun),
            log="run.log",
            metrics=table,
            config=config,
            artifacts=look(artifacts, directory),
            findings=(*findings, *more),
            related=related or {},
        )
        return judge(evidence), evidence

    return build


def errors(judgement):
    return {f.id.removeprefix("judge.") for f in judgement.findings if f.severity is Severity.ERROR}


def test_a_sound_run_passes_every_criterion(judged):
    events = Artifact(path="tensorboard/events*", what="event files", min_bytes=1000)
    _, again = judged("again")
    judgement, _ = judged(
        "sound",
        CHECKS,
        *LEARNS,
        Criterion(kind="backend", params={"expected": {"backend": "hf"}}),
        Criterion(kind="refit_timing", params={"max_share": 0.5}),
        Criterion(kind="baseline", params={"related": "again"}),
        artifacts=(events,),
        related={"again": again},
    )
    assert errors(judgement) == set()
    assert judgement.verdict is Verdict.PASS
    assert all(result.held for result in judgement.results if result.kind != "evidence")
    assert [f.id for f in judgement.findings if f.severity is Severity.WARNING] == [
        "judge.checks.cannot-fail"
    ]


@pytest.mark.parametrize(
    ("name", "criteria", "expected"),
    [
        (
            "rate-0",
            LEARNS,
            {"weights_moved.still", "learning_signal.no-learning-rate", "learning_signal.trend"},
        ),
        ("frozen", LEARNS, {"weights_moved.still", "learning_signal.trend"}),
        ("constant-reward", LEARNS, {"learning_signal.constant-reward", "learning_signal.degenerate-groups"}),
        ("late-nan", (), {"finite.non-finite"}),
        ("late-nan", (CHECKS, *LEARNS), {"finite.non-finite"}),
        ("early-end", (), {"completion.short"}),
        (
            "rate-0",
            (Criterion(kind="backend", params={"expected": {"backend": "megatron"}}),),
            {"backend.differs"},
        ),
        ("sound", (Criterion(kind="refit_timing", params={"max_share": 1e-9}),), {"refit_timing.share"}),
        (
            "sound",
            (Criterion(kind="checks", params={"expressions": ['max(data["train/reward"]) > 0.999']}),),
            {"checks.failed"},
        ),
    ],
)
def test_a_broken_run_fails_for_its_reason(judged, name, criteria, expected):
    judgement, _ = judged(name, *criteria)
    assert expected <= errors(judgement)
    assert judgement.verdict is Verdict.FAIL


def test_a_nan_late_in_the_run_is_named_with_its_step(judged):
    judgement, _ = judged("late-nan")
    places = {(f.where.metric, f.where.step) for f in judgement.findings if f.id == "judge.finite.non-finite"}
    assert ("train/loss", 20) in places


def test_metrics_and_artifacts_of_an_earlier_attempt_fail(judged):
    events = Artifact(path="tensorboard/events*", what="event files")
    judgement, _ = judged("sound", started=time.time() + 5, artifacts=(events,))
    assert {"completion.no-metrics", "artifacts.stale"} <= errors(judgement)


def test_a_run_that_starts_over_is_no_resume_though_it_equals_its_baseline(judged):
    _, through = judged("sound")
    parity = Criterion(kind="resume_parity", params={"baseline": "sound", "resumed_after": 12})
    judgement, _ = judged("again", parity, related={"sound": through})
    assert errors(judgement) == {"resume_parity.started-over", "resume_parity.no-proof"}


def test_a_run_at_another_rate_is_not_the_baseline(judged):
    _, other = judged("rate-0")
    judgement, _ = judged("sound", Criterion(kind="baseline", params={"related": "o"}), related={"o": other})
    assert errors(judgement) == {"baseline.differs"}


def test_the_command_line_checks_and_compares_real_event_files(runs, proveout):
    directory, _ = runs
    same = proveout("compare", str(directory / "sound"), str(directory / "again"))
    assert same.status == 0, same.out
    differ = proveout("compare", str(directory / "sound"), str(directory / "rate-0"), "--json")
    assert differ.status == 1
    assert not json.loads(differ.out)["ok"]
    assert proveout("check", str(directory / "sound"), 'last(data["train/reward"]) > 0.3').status == 0
    nan = proveout("check", str(directory / "late-nan"), 'max(data["train/loss"]) < 1e6')
    assert nan.status == 1
    assert "train/loss is not finite at step" in nan.out


def test_a_finished_run_is_judged_again_from_its_evidence(proveout, tmp_path):
    first = proveout("run", "--level", "0", "tiny.hidden_size=64", "rollout.max_new_tokens=8")
    assert first.status == 0, first.out + first.err
    again = proveout("judge", "--json")
    assert again.status == 0, again.out
    document = json.loads(again.out)
    assert document["result"] == "Pass"
    assert document["steps"][0]["stored"] == "Pass"
    (attempt,) = (tmp_path / ".proveout" / "runs").glob("*/attempts/*")
    shutil.rmtree(attempt / "tensorboard")
    spoiled = proveout("judge")
    assert spoiled.status == 1
    assert "Fail (stored: Pass)" in spoiled.out
