"""Gathers all that one attempt left into the Evidence that the judge reads."""

from __future__ import annotations

from proveout.capture.config import read_config
from proveout.capture.imports import read_imports
from proveout.capture.metrics import read_metrics
from proveout.domain.evidence import Evidence, ExitRecord, ImportRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Step
from proveout.flow.keep import artifact_states, with_kept
from proveout.launch.logs import extra_logs
from proveout.store.runs import Run


def gather(
    step: Step,
    number: int,
    files: AttemptLayout,
    ended: ExitRecord,
    related: dict[str, Evidence],
    *,
    imports: tuple[ImportRecord, ...] = (),
) -> Evidence:
    """The evidence of one attempt; what cannot be read is a finding in it, never an exception.

    ``imports`` are what the loop's workers said before the run; what the run itself said comes first.
    """
    step = with_kept(step, files)
    metrics, metric_findings = read_metrics(step.metrics, files.root, not_before=_not_before(ended))
    config, config_findings = read_config(step.config, files.root)
    return Evidence(
        step=step,
        attempt=number,
        attempt_dir=str(files.root),
        exit=ended,
        log=str(files.log),
        metrics=metrics,
        artifacts=artifact_states(step, files),
        imports=(*read_imports(files.log), *imports),
        config=config,
        extra_logs=extra_logs(files),
        findings=(*metric_findings, *config_findings),
        related=related,
    )


def _not_before(ended: ExitRecord) -> float | None:
    """When the first record may be dated: by the clock of the attempt's host or of the file system."""
    return ended.started + min(ended.skew, 0.0) if ended.started else None


def related_to(step: Step, run: Run, steps: dict[str, Step]) -> dict[str, Evidence]:
    """Evidence of the last judged attempt of every step that ``step`` needs, by step id."""
    found: dict[str, Evidence] = {}
    results = run.results()
    for number, step_id, files in run.attempts():
        if step_id in step.needs and step_id in results and files.result.exists():
            last = next((r for r in results[step_id] if r.number == number), None)
            if last is not None:
                found[step_id] = gather(steps[step_id], number, files, last.exit, {})
    return found
