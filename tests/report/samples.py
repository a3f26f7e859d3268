"""The shared set of report models: every renderer is tested over all of them."""

from __future__ import annotations

from proveout.domain.evidence import AttemptResult, CheckRow, End, ExitRecord, StepResult, TriageResult
from proveout.domain.finding import Boundary, Citation, Finding, Severity, Where
from proveout.domain.report import Deliverable, PlotSeries, Report, RunInfo
from proveout.domain.step import Coverage, LevelRequest
from proveout.domain.verdict import Verdict

SMOKE = Coverage(loop="bench", level=0, variant="grpo")
LEARNING = Coverage(loop="bench", level=6, variant="grpo")
NEMO = Coverage(loop="nemo-rl", level=0, variant="grpo_megatron")


def attempt(verdict: Verdict, number: int = 1, **changes: object) -> AttemptResult:
    base = {
        "number": number,
        "directory": f"{number:02d}-bench-L0-grpo",
        "verdict": verdict,
        "exit": ExitRecord(
            end=End.EXITED, code=0 if verdict is Verdict.PASS else 1, started=1.0, finished=9.5
        ),
        "last_step": 3,
    }
    return AttemptResult(**{**base, **changes})


def report(result: Verdict, **changes: object) -> Report:
    base = {
        "result": result,
        "summary": "bench level 0 (grpo): GRPO updates completed in the bench loop (3 of 3 training steps)",
        "model": "tiny Qwen2",
        "requested_coverage": (SMOKE, LEARNING),
        "deliverables": (
            Deliverable(name="Bridge-side checks", verdict=Verdict.NOT_REQUESTED, detail="no checkout"),
            Deliverable(name="bench policy run", verdict=result, detail="3 of 3 training steps"),
        ),
        "evidence": (
            Citation(
                what="Command", where=Where(file="attempts/01-bench-L0-grpo/command.sh"), text="python -m x"
            ),
            Citation(what="last step", where=Where(metric="train/loss", step=3), text="0.25"),
        ),
        "limitations": ("CPU only",),
        "follow_ups": ("none",),
        "steps": (
            StepResult(id="bench-L0-grpo", coverage=SMOKE, verdict=result, attempts=(attempt(result),)),
        ),
        "levels": (LevelRequest(loop="verl", level=0, requested=False, reason="no checkout"),),
        "run": RunInfo(
            id="20260101-000000-abcdef", directory="runs/x", started=0.0, finished=20.0, version="0"
        ),
    }
    return Report(**{**base, **changes})


PASS = report(
    Verdict.PASS,
    plots=(
        PlotSeries(step_id="bench-L0-grpo", tag="train/reward", steps=(1, 2, 3), values=(0.1, None, 0.9)),
    ),
)
FAIL = report(
    Verdict.FAIL,
    summary="bench level 0 (grpo): train/loss is NaN at step 3",
    steps=(
        StepResult(
            id="bench-L0-grpo",
            coverage=SMOKE,
            verdict=Verdict.FAIL,
            attempts=(
                attempt(
                    Verdict.FAIL,
                    findings=(
                        Finding(
                            id="judge.finite.not-finite",
                            severity=Severity.ERROR,
                            what="train/loss is NaN at step 3",
                            where=Where(metric="train/loss", step=3),
                            remedy="look at the first step that is not finite",
                            boundary=Boundary.NUMERICS,
                        ),
                    ),
                    checks=(
                        CheckRow(
                            check='max(data["train/loss"]) < 1', passed=False, value="nan", message="NaN"
                        ),
                    ),
                ),
            ),
        ),
    ),
    follow_ups=("judge.finite.not-finite: look at the first step that is not finite",),
)
BLOCKED = report(
    Verdict.BLOCKED,
    summary="nemo-rl level 0 (grpo_megatron): stopped by the environment (no space left on device)",
    requested_coverage=(NEMO,),
    steps=(
        StepResult(
            id="nemo-rl-L0",
            coverage=NEMO,
            verdict=Verdict.BLOCKED,
            attempts=(
                attempt(
                    Verdict.BLOCKED,
                    triage=TriageResult(
                        boundary=Boundary.ENVIRONMENT,
                        verdict=Verdict.BLOCKED,
                        subkind="disk",
                        stage="provider_build",
                        confidence="high",
                        cause=Citation(
                            what="disk full",
                            where=Where(file="run.log", line=812),
                            text="OSError: [Errno 28] No space left on device: '<script>alert(1)</script>'",
                        ),
                        remedy="move HF_HOME to a larger path",
                    ),
                ),
            ),
        ),
    ),
)
INCOMPLETE = report(
    Verdict.INCOMPLETE,
    summary="1 of 2 steps have a verdict; nothing is claimed of the rest",
    steps=(
        StepResult(
            id="bench-L0-grpo",
            coverage=SMOKE,
            verdict=Verdict.PASS,
            attempts=(attempt(Verdict.INCOMPLETE), attempt(Verdict.PASS, number=2)),
        ),
        StepResult(
            id="bench-L6-grpo", coverage=LEARNING, verdict=Verdict.INCOMPLETE, reason="not run to its end"
        ),
    ),
    follow_ups=("'proveout resume' goes on with the steps that are left",),
)
HOSTILE = report(
    Verdict.FAIL,
    summary="| pipes | `ticks` <b>tags</b> @everyone\nand a second line \x1b[31mred\x1b[0m",
    evidence=(Citation(what="</details><script>alert(1)</script>", text="[link](http://x) *star* \u202e"),),
)

SAMPLES = {"pass": PASS, "fail": FAIL, "blocked": BLOCKED, "incomplete": INCOMPLETE, "hostile": HOSTILE}
