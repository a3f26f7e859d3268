"""What a report shows a run against: another run, or the golden file that a step was judged by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proveout.capture.config import read_config
from proveout.capture.metrics import read_any
from proveout.domain import redact
from proveout.domain.errors import UsageError
from proveout.domain.layout import AttemptLayout
from proveout.domain.metrics import MetricTable
from proveout.domain.report import ConfigChange
from proveout.domain.step import Step
from proveout.judge import metricfile
from proveout.store.runs import Run

_OWN_PLACES = ("output_dir", "log_dir", "checkpoint_dir")


def recorded(files: AttemptLayout) -> MetricTable:
    """The metrics that were judged, from metrics.json; an empty table where there are none."""
    try:
        return read_any(files.metrics)[0]
    except UsageError:
        return MetricTable()


def counterpart(run: Run, step: Step) -> tuple[Step, AttemptLayout] | None:
    """The step of another run that covers the same, with the files of its last attempt."""
    steps = {other.id: other for other in run.plan.steps}
    same = step.id if step.id in steps else None
    if same is None:
        same = next((key for key, other in steps.items() if other.coverage == step.coverage), None)
    found = [files for _, step_id, files in run.attempts() if step_id == same and files.metrics.exists()]
    return (steps[same], found[-1]) if same is not None and found else None


def golden(step: Step, files: AttemptLayout) -> MetricTable | None:
    """The golden metrics that the step is judged by, or None."""
    for criterion in step.criteria:
        if criterion.kind == "baseline" and criterion.params.get("golden"):
            try:
                return metricfile.load(Path(files.root) / str(criterion.params["golden"])).table
            except (UsageError, OSError):
                return None
    return None


def config_changes(step: Step, ours: AttemptLayout, other: Step, theirs: AttemptLayout) -> list[ConfigChange]:
    """Keys of the resolved configuration that differ, sorted; each attempt's own output places are left out."""
    mine, _ = read_config(step.config, ours.root)
    base, _ = read_config(other.config, theirs.root)
    if mine is None or base is None:
        return []
    return list(_differences(step.id, base, mine))


def _differences(step_id: str, base: Mapping[str, Any], mine: Mapping[str, Any]) -> Iterator[ConfigChange]:
    for key in sorted({*base, *mine}):
        if key.rpartition(".")[2] in _OWN_PLACES or (key in base and key in mine and base[key] == mine[key]):
            continue
        yield ConfigChange(
            step_id=step_id,
            key=key,
            baseline=_shown(key, base) if key in base else None,
            candidate=_shown(key, mine) if key in mine else None,
        )


def _shown(key: str, config: Mapping[str, Any]) -> str:
    if redact.is_secret_name(key.rpartition(".")[2]):
        return redact.MASK
    value = config[key]
    return value if isinstance(value, str) else repr(value)
