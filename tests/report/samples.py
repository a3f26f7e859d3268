"""The shared set of report models: every renderer is tested over all of them."""

from __future__ import annotations

import msgspec

from proveout.domain.evidence import AttemptResult, CheckRow, End, ExitRecord, StepResult, TriageResult
from proveout.domain.finding import Boundary, Citation, Finding, Severity, Where
from proveout.domain.report import (
    ConfigChange,
    Deliverable,
    Excerpt,
    Phase,
    PlotSeries,
    Report,
    RunInfo,
)
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


INJECTED = "<script>document.title = 'owned'; window.owned = true</script>"
DIRECTORY = "01-bench-L0-grpo"
COMMAND = "python -m proveout_bench grpo 'output_dir=a b' max_steps=3"


def timeline(*, count: int = 3) -> tuple[Phase, ...]:
    phases = [Phase(name="start-up", start=0.0, end=2.0), Phase(name="set-up", start=2.0, end=2.5)]
    for step in range(1, count + 1):
        at = 1.5 + step
        phases += [
            Phase(name="generation", start=at, end=at + 0.4, of=f"step {step}"),
            Phase(name="training", start=at + 0.4, end=at + 0.9, of=f"step {step}"),
        ]
    return (*phases, Phase(name="end", start=phases[-1].end, end=phases[-1].end + 0.7))


def series(tag: str, values: tuple[float | None, ...], plot: str, **changes: object) -> PlotSeries:
    steps = tuple(range(1, len(values) + 1))
    base = {"step_id": "bench-L0-grpo", "tag": tag, "steps": steps, "values": values, "plot": plot}
    return PlotSeries(**{**base, "total": len(values), **changes})


PASS = report(
    Verdict.PASS,
    plots=(
        series("train/reward", (0.1, None, 0.9), "Reward"),
        series("timing/train/total_step_time", (1.2, 1.0, 1.1), "Training step", unit="s"),
    ),
    timeline={DIRECTORY: timeline()},
    commands={DIRECTORY: COMMAND},
    deliverable_steps=((), ("bench-L0-grpo",)),
    steps=(
        StepResult(
            id="bench-L0-grpo",
            coverage=SMOKE,
            verdict=Verdict.PASS,
            attempts=(
                attempt(
                    Verdict.PASS,
                    held=(
                        Citation(
                            what="the planned last step 3 is reached",
                            where=Where(file="runs/x/attempts/01-bench-L0-grpo/metrics.json", step=3),
                            text="train/loss = 0.25 at step 3",
                        ),
                    ),
                    checks=(CheckRow(check='max(data["train/kl"]) < 1', passed=True, value="0.25"),),
                ),
            ),
        ),
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
    plots=(series("train/loss", (0.4, 0.3, None), "Loss", marked=(3,)),),
    timeline={DIRECTORY: timeline()},
    commands={DIRECTORY: COMMAND},
    deliverable_steps=((), ("bench-L0-grpo",)),
)
AGAINST = msgspec.structs.replace(
    FAIL,
    plots=(
        *FAIL.plots,
        series("train/loss", (0.4, 0.3, 0.25), "Loss", role="baseline"),
        series("train/token_mult_prob_error", (1.0, 1.4, 1.0), "Token probability error", marked=(2,)),
        series("train/token_mult_prob_error", (1.0, 1.0, 1.0), "Token probability error", role="baseline"),
    ),
    config_diff=(
        ConfigChange(step_id="bench-L0-grpo", key="lr", baseline="0.001", candidate="1.0"),
        ConfigChange(step_id="bench-L0-grpo", key=INJECTED, baseline=None, candidate=INJECTED),
    ),
    baseline="20251231-000000-012345 (Pass)",
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
                        aftermath=(
                            Citation(
                                what="the worker died of it",
                                where=Where(file="run.log", line=815),
                                text="ray.exceptions.RayActorError",
                            ),
                        ),
                        noise=(
                            Citation(
                                what="a shutdown warning",
                                where=Where(file="run.log", line=830),
                                text=f"resource_tracker: {INJECTED}",
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
    excerpts={
        DIRECTORY: Excerpt(
            file="run.log",
            first=811,
            lines=(
                f"copying {INJECTED}",
                "OSError: [Errno 28] No space left on device: '<script>alert(1)</script>'",
                '" onmouseover="window.owned = true" x="</pre></ol><img src=x onerror=window.owned=true>',
            ),
            marked=812,
        )
    },
    commands={DIRECTORY: f"python '{INJECTED}'"},
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

SAMPLES = {
    "pass": PASS,
    "fail": FAIL,
    "against": AGAINST,
    "blocked": BLOCKED,
    "incomplete": INCOMPLETE,
    "hostile": HOSTILE,
}
