"""What only the longer report formats show: plots, timelines, log excerpts, commands, configuration."""

from __future__ import annotations

import shlex
from typing import Any

from proveout.capture.metrics import read_metrics
from proveout.domain.errors import UsageError
from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.layout import AttemptLayout
from proveout.domain.metrics import MetricTable
from proveout.domain.report import ConfigChange, Excerpt, Phase, PlotSeries
from proveout.domain.step import Plan, Step
from proveout.flow.baseline import config_changes, counterpart, golden, recorded
from proveout.flow.excerpts import excerpt
from proveout.flow.keep import with_kept
from proveout.flow.plots import plots
from proveout.flow.timeline import timeline
from proveout.store.runs import Run


def details(
    run: Run, plan: Plan, results: tuple[StepResult, ...], baseline: Run | None, baseline_name: str
) -> dict[str, Any]:
    """Fields of the report model, by name, from the attempts' own files and those of ``baseline``."""
    steps = {step.id: step for step in plan.steps}
    phases: dict[str, tuple[Phase, ...]] = {}
    commands: dict[str, str] = {}
    excerpts: dict[str, Excerpt] = {}
    series: list[PlotSeries] = []
    changes: list[ConfigChange] = []
    for result in results:
        step = steps[result.id]
        for attempt in result.attempts:
            files = AttemptLayout(run.layout.attempts / attempt.directory)
            commands[attempt.directory] = shlex.join(step.command.at(str(files.root)).argv)
            phases[attempt.directory] = timeline(_timed(step, attempt, files), attempt.exit)
            found = excerpt(attempt, files)
            if found is not None:
                excerpts[attempt.directory] = found
        for attempt in result.attempts[-1:]:
            files = AttemptLayout(run.layout.attempts / attempt.directory)
            other = counterpart(baseline, step) if baseline is not None else None
            against = recorded(other[1]) if other is not None else golden(step, files)
            loop = step.coverage.loop
            series += plots(step.id, loop, attempt, recorded(files), against, share=len(results))
            changes += config_changes(step, files, *other) if other is not None else []
    return {
        "timeline": {name: found for name, found in phases.items() if found},
        "plots": tuple(series),
        "config_diff": tuple(changes),
        "commands": commands,
        "excerpts": excerpts,
        "baseline": baseline_name,
    }


def _timed(step: Step, attempt: AttemptResult, files: AttemptLayout) -> MetricTable:
    """The metrics with their wall times, which metrics.json does not keep."""
    try:
        return read_metrics(
            with_kept(step, files).metrics, files.root, not_before=attempt.exit.started or None
        )[0]
    except (UsageError, OSError):
        return MetricTable()
