"""Isolation ladders proved on the bench loop: faults that are really in the run, found by re-running it."""

from __future__ import annotations

import json
import multiprocessing
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.conftest import call
from tests.flow.forked import ForkedScheduler

from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding, Severity
from proveout.domain.isolation import Isolation, Outcome, Rerun
from proveout.domain.layout import AttemptLayout
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Plan, Step
from proveout.domain.verdict import Verdict
from proveout.flow import isolation_verify
from proveout.flow.execute import Policy, execute
from proveout.flow.isolate import Budget, _compared, isolate, isolations
from proveout.flow.isolation_case import Case, case_of, preview
from proveout.flow.prove import write_reports
from proveout.flow.reporting import build
from proveout.loops.bench import LOOP
from proveout.store.runs import Run, create

pytestmark = pytest.mark.real

TINY = (
    "tiny.hidden_size=16",
    "tiny.intermediate_size=32",
    "tiny.layers=1",
    "tiny.heads=2",
    "tiny.kv_heads=1",
    "rollout.prompts=2",
    "rollout.group_size=4",
    "rollout.max_new_tokens=8",
    "loss.minibatch_size=8",
    "max_steps=2",
)
PADDED = ("task.name=arithmetic", "task.max_operand=99")


class Quiet:
    """An observer that nobody looks at."""

    def __getattr__(self, name: str) -> Any:
        return lambda *told: None


@pytest.fixture(scope="module")
def bench() -> ForkedScheduler:
    return ForkedScheduler()


def run_of(root: Path, bench: ForkedScheduler, *words: str, level: int = 0) -> Run:
    """A run of one level of the bench loop with ``words``, to its end."""
    context = LoopContext(python=sys.executable, overrides=(*TINY, *words))
    steps = LOOP.steps(LevelRequest(loop="bench", level=level, requested=True, reason="test"), context)
    run = create(root, Plan(model="tiny", levels=(), steps=steps))
    execute(run, Policy(launch=bench), Quiet())
    return run


def climb(run: Run, bench: ForkedScheduler, **budget: float) -> tuple[Case, Isolation]:
    case = case_of(run)
    return case, isolate(run, case, bench, Budget(**budget), Quiet())


def reruns(result: Isolation) -> dict[str, Rerun]:
    """What was really run, by rung."""
    return {tried.rung: tried.rerun for tried in result.tried if tried.rerun is not Rerun.SKIPPED}


@pytest.mark.parametrize(
    ("rung", "words"),
    [
        ("checkpoint-off", ("checkpoint.every=1", "fault.saving_spoils=true")),
        ("lora-off", ("lora.rank=4", "lr=0.05", "fault.adapter_not_delivered=true")),
        ("shorter-sequences", ("fault.nan_beyond_tokens=5",)),
        ("one-thread", ("runtime.threads=2", "fault.threads_race=true")),
        ("one-prompt-length", (*PADDED, "fault.padding_ignored=true")),
        ("temperature-one", ("rollout.temperature=0.7", "fault.temperature_ignored=true")),
        ("one-update", ("loss.minibatch_size=4", "fault.nan_second_update=true")),
        ("reference-off", ("fault.reference_nan=true",)),
    ],
)
def test_the_ladder_ends_at_the_rung_that_takes_the_cause_away(
    tmp_path: Path, bench: ForkedScheduler, rung: str, words: tuple[str, ...]
) -> None:
    run = run_of(tmp_path, bench, *words)
    case, result = climb(run, bench)
    tried = reruns(result)
    assert result.outcome is Outcome.ISOLATED, (case.failure, result)
    assert (result.rung, tried.pop(rung)) == (rung, Rerun.FLIPPED)
    assert tried.pop("unchanged") is Rerun.SAME
    assert set(tried.values()) <= {Rerun.SAME, Rerun.OTHER}
    assert result.tried[-1].rung == rung
    assert result.proves and result.does_not_prove


def test_a_resume_that_spoils_the_weights_ends_at_the_fresh_start(
    tmp_path: Path, bench: ForkedScheduler
) -> None:
    saved = run_of(
        tmp_path, bench, "checkpoint.every=1", "max_steps=1", f"checkpoint.dir={tmp_path / 'kept'}"
    )
    assert saved.results()["bench-L0-grpo"][-1].last_step == 1
    run = run_of(tmp_path, bench, f"resume={tmp_path / 'kept'}", "fault.restoring_spoils=true")
    _, result = climb(run, bench)
    assert (result.outcome, result.rung) == (Outcome.ISOLATED, "fresh-start")


def checkpoint(run: Run) -> dict[str, bytes]:
    root = run.layout.attempts / "bench-L1-lora-checkpoints"
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_a_step_that_resumes_from_another_step_is_re_run_on_a_copy_of_its_checkpoint(
    tmp_path: Path, bench: ForkedScheduler
) -> None:
    run = run_of(tmp_path, bench, "max_steps=3", "fault.restoring_spoils=true", level=1)
    saved, case = checkpoint(run), case_of(run)
    assert (case.step.id, bool(saved)) == ("bench-L1-lora-resume", True)
    result = isolate(run, case, bench, Budget(), Quiet())
    assert (result.outcome, result.rung) == (Outcome.ISOLATED, "fresh-start")
    assert reruns(result)["unchanged"] is Rerun.SAME
    assert checkpoint(run) == saved


def test_a_fresh_start_is_no_answer_where_only_the_parity_of_the_resume_failed(
    tmp_path: Path, bench: ForkedScheduler
) -> None:
    run = run_of(tmp_path, bench, "max_steps=3", "fault.not_restored=optimizer", level=1)
    case = case_of(run, control=False)
    assert all(name.startswith("judge.resume_parity") for name in case.failure.findings), case.failure
    assert case.ladders[0] == "checkpoint-load"
    (fresh,) = [applied for rung, applied in case.rungs if rung.id == "fresh-start"]
    assert fresh.step is None and "not be judged" in fresh.reason


def test_a_fault_that_no_rung_takes_away_is_called_not_isolated(
    tmp_path: Path, bench: ForkedScheduler
) -> None:
    run = run_of(tmp_path, bench, "loss.minibatch_size=4", "fault.nan_loss_at_step=2")
    _, result = climb(run, bench)
    assert result.outcome is Outcome.NOT_ISOLATED
    assert (result.rung, result.proves) == ("", "")
    assert "not isolated" in result.summary
    assert {"shorter-sequences", "one-update", "reference-off"} <= reruns(result).keys()
    assert Rerun.FLIPPED not in reruns(result).values()


def test_a_failure_that_does_not_repeat_isolates_nothing(tmp_path: Path, bench: ForkedScheduler) -> None:
    kept = tmp_path / "kept"
    run = run_of(tmp_path, bench, f"resume={kept}", "checkpoint.every=1", "max_steps=3")
    assert run.results()["bench-L0-grpo"][-1].verdict is not Verdict.PASS
    run_of(tmp_path, bench, "checkpoint.every=1", "max_steps=1", f"checkpoint.dir={kept}")
    _, result = climb(run, bench)
    assert (result.outcome, result.rung) == (Outcome.NOT_REPEATABLE, "")
    assert list(reruns(result)) == ["unchanged"]


def test_the_budget_ends_the_ladder_and_says_so(tmp_path: Path, bench: ForkedScheduler) -> None:
    run = run_of(tmp_path, bench, "fault.reference_nan=true")
    before = len(bench.commands)
    _, result = climb(run, bench, runs=2)
    assert len(bench.commands) - before == 2
    assert (result.outcome, result.rung) == (Outcome.BUDGET_SPENT, "")
    _, result = climb(run, bench, minutes=0.0)
    assert len(bench.commands) - before == 2
    assert (result.outcome, result.tried) == (Outcome.BUDGET_SPENT, ())
    assert len(isolations(run)) == 2


def test_a_pass_that_does_not_show_the_change_is_no_flip(tmp_path: Path, bench: ForkedScheduler) -> None:
    run = run_of(tmp_path, bench, "fault.nan_beyond_tokens=5")
    case = case_of(run, control=False)
    (rung,) = [pair for pair in case.rungs if pair[0].id == "shorter-sequences"]
    elsewhere = msgspec.structs.replace(rung[1], values={"rollout.max_new_tokens": "3"})
    case = msgspec.structs.replace(case, rungs=((rung[0], elsewhere),))
    result = isolate(run, case, bench, Budget(), Quiet())
    (tried,) = result.tried
    assert (tried.rerun, tried.verdict) == (Rerun.NO_EFFECT, Verdict.PASS)
    assert "rollout.max_new_tokens is 4, not 3" in tried.reason
    assert (result.outcome, result.rung) == (Outcome.NOT_ISOLATED, "")


class Impatient(Quiet):
    """Presses Ctrl-C as soon as a re-run goes on."""

    def progress(self, *told: Any) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_stops_the_re_run_and_is_written_down(tmp_path: Path, bench: ForkedScheduler) -> None:
    run = run_of(tmp_path, bench, "fault.nan_beyond_tokens=5")
    result = isolate(run, case_of(run), bench, Budget(), Impatient())
    assert (result.outcome, result.rung) == (Outcome.INTERRUPTED, "")
    assert [(tried.rerun, tried.reason) for tried in result.tried][-1:] == [(Rerun.UNFINISHED, "interrupted")]
    assert not any(child.is_alive() for child in multiprocessing.active_children())
    assert isolations(run) == (result,)
    assert build(run).result is Verdict.FAIL


def test_re_runs_that_cannot_start_decide_nothing(tmp_path: Path, bench: ForkedScheduler) -> None:
    run = run_of(tmp_path, bench, "fault.nan_beyond_tokens=5")
    run.layout.reruns.write_text("in the way")
    _, result = climb(run, bench)
    assert result.outcome is Outcome.UNDECIDED
    assert set(reruns(result).values()) == {Rerun.UNFINISHED}
    assert "no attempt directory can be made" in result.tried[0].reason


class Strict:
    """The bench loop as one that runs from a checkout which knows no ``rollout.max_new_tokens``."""

    def verify(self, step: Step, context: LoopContext) -> tuple[Finding, ...]:
        halved = [word for word in step.command.argv if word == "rollout.max_new_tokens=4"]
        return tuple(
            Finding(id="loop.unread", severity=Severity.ERROR, what=f"{word} is not read") for word in halved
        )


def test_a_rung_that_the_loop_rejects_is_blocked_and_never_run(
    tmp_path: Path, bench: ForkedScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path, bench, "fault.nan_beyond_tokens=5")
    case = case_of(run)
    only = tuple(pair for pair in case.rungs if pair[0].id == "shorter-sequences")
    monkeypatch.setattr(isolation_verify, "loops", SimpleNamespace(get=lambda name: Strict()))
    result = isolate(run, msgspec.structs.replace(case, rungs=only), bench, Budget(), Quiet())
    assert result.outcome is Outcome.UNDECIDED
    (blocked,) = [tried for tried in result.tried if tried.rerun is Rerun.BLOCKED]
    assert (blocked.rung, blocked.reason, blocked.directory) == (
        "shorter-sequences",
        "rollout.max_new_tokens=4 is not read",
        "",
    )
    assert not run.layout.reruns.exists()


@pytest.mark.parametrize(
    ("verdict", "finding"),
    [(Verdict.BLOCKED, "triage.environment"), (Verdict.FAIL, "judge.provenance.foreign")],
)
def test_a_re_run_that_never_ran_the_loop_under_test_is_blocked(
    tmp_path: Path, bench: ForkedScheduler, verdict: Verdict, finding: str
) -> None:
    case = case_of(run_of(tmp_path, bench, "fault.nan_beyond_tokens=5"))
    _, applied = next(pair for pair in case.rungs if pair[0].id == "shorter-sequences")
    assert applied.step is not None
    found = Finding(id=finding, severity=Severity.ERROR, what="x", verdict=verdict)
    result = msgspec.structs.replace(case.attempt, verdict=verdict, findings=(found,))
    files = AttemptLayout(tmp_path / "none")
    assert _compared(case, msgspec.structs.replace(applied, values={}), applied.step, files, result) == (
        Rerun.BLOCKED,
        finding,
    )


def test_isolation_is_no_pass_and_no_attempt(tmp_path: Path, bench: ForkedScheduler) -> None:
    run = run_of(tmp_path, bench, "fault.nan_beyond_tokens=5")
    attempts, report = run.results(), build(run)
    _, result = climb(run, bench)
    assert result.outcome is Outcome.ISOLATED
    again = build(run)
    assert run.results() == attempts
    assert (again.result, again.steps, again.deliverables) == (
        report.result,
        report.steps,
        report.deliverables,
    )
    assert again.result is Verdict.FAIL
    (notice,) = [finding for finding in again.findings if finding.id.startswith("flow.isolation")]
    assert "sequences half as long" in notice.what and notice.decides is None
    for citation in notice.evidence:
        assert (run.layout.root / str(citation.where.file)).is_file()
    write_reports(run)
    assert (
        "isolation: bench-L0-grpo: passes with sequences half as long"
        in run.layout.report("html").read_text()
    )
    text = run.layout.report("txt").read_text()
    assert text.startswith("Result: Fail")
    assert "Isolation" in text and "stays Fail" in text
    assert isolations(run) == (result,)


def test_the_preview_names_the_exact_commands_and_starts_nothing(
    tmp_path: Path, bench: ForkedScheduler
) -> None:
    run = run_of(tmp_path, bench, "fault.nan_beyond_tokens=5")
    before = len(bench.commands)
    case = case_of(run)
    ladder = preview(run, case)
    assert len(bench.commands) == before
    assert {tried.rerun for tried in ladder} == {Rerun.PLANNED, Rerun.SKIPPED}
    result = isolate(run, case, bench, Budget(), Quiet())
    ran = {tried.rung: tried.command for tried in result.tried}
    assert {tried.rung: tried.command for tried in ladder if tried.rung in ran} == ran
    assert "rollout.max_new_tokens=4" in ran["shorter-sequences"]
    assert "rollout.max_new_tokens=8" not in ran["shorter-sequences"]


def test_a_run_that_passed_has_nothing_to_isolate(tmp_path: Path, bench: ForkedScheduler) -> None:
    run = run_of(tmp_path, bench)
    assert run.results()["bench-L0-grpo"][-1].verdict is Verdict.PASS
    with pytest.raises(UsageError, match="nothing to isolate"):
        case_of(run)
    with pytest.raises(UsageError, match="no step 'bench-L0-grp'"):
        case_of(run, "bench-L0-grp")


def test_the_command_isolates_a_run_and_keeps_its_verdict(tmp_path: Path, bench: ForkedScheduler) -> None:
    run = run_of(tmp_path / ".proveout" / "runs", bench, "fault.nan_beyond_tokens=5")
    dry = call("isolate", "--dry-run", cwd=tmp_path)
    assert dry.status == 0 and "shorter-sequences" in dry.out and not run.layout.isolation.exists()
    answer = call("isolate", "--no-control", "--json", cwd=tmp_path)
    assert answer.status == 1, answer.err
    assert (answer.json["outcome"], answer.json["rung"]) == ("isolated", "shorter-sequences")
    report = json.loads(run.layout.report("json").read_text())
    assert report["result"] == "Fail"
    assert call("judge", cwd=tmp_path).status == 1
