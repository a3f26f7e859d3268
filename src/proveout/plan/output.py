"""A plan as JSON, as a shell script, and as a table that is read in ten seconds."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from proveout.domain import redact
from proveout.domain.finding import Finding, Severity
from proveout.domain.step import ATTEMPT_DIR, Plan, Step

SCHEMA_VERSION = 1
_PLACES = "PROVEOUT_ATTEMPTS"


def totals(plan: Plan) -> tuple[float, float]:
    """Minutes one after another, and GPU-hours, of the steps that would run."""
    running = [step for step in plan.steps if not step.skip_reason]
    minutes = sum(step.resources.minutes for step in running)
    return minutes, sum(step.resources.minutes * step.resources.gpus for step in running) / 60


def as_data(plan: Plan) -> dict[str, Any]:
    """The plan in the published form."""
    minutes, gpu_hours = totals(plan)
    return {
        "schema_version": SCHEMA_VERSION,
        "model": plan.model,
        "minutes": round(minutes, 1),
        "gpu_hours": round(gpu_hours, 2),
        "levels": [
            {
                "loop": item.loop,
                "level": item.level,
                "variant": item.variant,
                "requested": item.requested,
                "reason": item.reason,
                "paths": list(item.paths),
            }
            for item in plan.levels
        ],
        "steps": [_step(step) for step in plan.steps],
        "findings": [
            {
                "id": item.id,
                "severity": item.severity.value,
                "where": str(item.where),
                "what": item.what,
                "remedy": item.remedy,
            }
            for item in plan.findings
        ],
        "substitutions": list(plan.substitutions),
        "limitations": list(plan.limitations),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "id": step.id,
        "loop": step.coverage.loop,
        "level": step.coverage.level,
        "variant": step.coverage.variant,
        "deliverable": step.deliverable,
        "claim": step.claim,
        "argv": [redact.text(word) for word in step.command.argv],
        "env": redact.environment(step.command.env),
        "unset": list(step.command.unset),
        "cwd": step.command.cwd,
        "gpus": step.resources.gpus,
        "nodes": step.resources.nodes,
        "minutes": step.resources.minutes,
        "planned_steps": step.planned_steps,
        "artifacts": [item.path for item in step.artifacts],
        "metrics": [{"format": item.format, "path": item.path} for item in step.metrics],
        "criteria": [{"kind": item.kind, "params": item.params} for item in step.criteria],
        "limitations": list(step.limitations),
        "needs": list(step.needs),
        "skip_reason": step.skip_reason,
        "substitutions": list(step.substitutions),
    }


def as_script(plan: Plan) -> str:
    """A shell script that runs the steps by hand, each with a directory of its own and its log in it.

    No run is piped, so its exit status is kept; the script stops at the first step that fails. A step that
    would be skipped is a comment.
    """
    lines = [
        "#!/usr/bin/env bash",
        "# Made by 'proveout plan --commands'. It runs the steps and judges nothing: 'proveout run' does.",
        "set -euo pipefail",
        f'{_PLACES}="${{{_PLACES}:-$PWD/proveout-attempts}}"',
    ]
    for step in plan.steps:
        lines += [
            "",
            f"# {step.id}: {step.deliverable} ({step.resources.gpus} GPUs, about "
            f"{step.resources.minutes:g} min)",
        ]
        if step.skip_reason:
            lines.append(f"# left out: {step.skip_reason}")
            continue
        lines += [
            f'ATTEMPT="${_PLACES}/{step.id}"',
            'mkdir -p "$ATTEMPT"',
            "(",
            f"  cd {_word(step.command.cwd)}",
            *(f"  unset {name}" for name in step.command.unset),
            *(
                f"  export {name}={_word(value)}"
                for name, value in redact.environment(step.command.env).items()
            ),
            "  "
            + " ".join(_word(redact.text(word)) for word in step.command.argv)
            + ' >"$ATTEMPT/run.log" 2>&1',
            ")",
        ]
    return "\n".join(lines) + "\n"


def _word(text: str) -> str:
    return '"$ATTEMPT"'.join(shlex.quote(part) if part else "" for part in text.split(ATTEMPT_DIR)) or "''"


def as_text(plan: Plan, source: str) -> str:
    """The plan as plain lines."""
    return "\n".join(_lines(plan, source)) + "\n"


def _lines(plan: Plan, source: str) -> Iterator[str]:
    minutes, gpu_hours = totals(plan)
    yield f"Change: {source}"
    yield f"Model: {plan.model}"
    yield ""
    yield from _columns(
        [
            (item.loop, str(item.level), item.variant, shorten(item.reason))
            for item in plan.levels
            if item.requested
        ],
        ("LOOP", "LEVEL", "VARIANT", "WHY"),
    )
    rest = not_requested(plan)
    if rest:
        yield ""
        yield from (f"Not requested: {line}" for line in rest)
    if plan.steps:
        yield ""
        yield from _columns(
            [
                (
                    step.id,
                    str(step.resources.gpus),
                    f"{step.resources.minutes:g}",
                    f"skipped: {shorten(step.skip_reason)}" if step.skip_reason else step.deliverable,
                )
                for step in plan.steps
            ],
            ("STEP", "GPUS", "MIN", "WHAT"),
        )
        yield f"\nTogether about {minutes:g} minutes, {gpu_hours:.1f} GPU-hours"
    for title, texts in (("Instead", plan.substitutions), ("Limitation", plan.limitations)):
        if texts:
            yield ""
        yield from (f"{title}: {text}" for text in texts)
    told = [item for item in plan.findings if item.severity is not Severity.NOTICE]
    if told:
        yield ""
    yield from (finding_line(item) for item in told)


def not_requested(plan: Plan) -> list[str]:
    """Levels that were not requested, gathered by loop and reason."""
    gathered: dict[tuple[str, str], list[str]] = {}
    for item in plan.levels:
        if not item.requested:
            gathered.setdefault((item.loop, item.reason), []).append(str(item.level))
    return [
        f"{loop} - {reason}"
        if reason.startswith("no ") and "checkout" in reason
        else f"{loop} level{'s' if len(levels) > 1 else ''} {', '.join(levels)} - {reason}"
        for (loop, reason), levels in gathered.items()
    ]


def finding_line(item: Finding) -> str:
    """One finding on one line."""
    where = f" [{item.where}]" if str(item.where) else ""
    return f"{item.severity.value}: {item.what}{where}" + (f" -> {item.remedy}" if item.remedy else "")


def shorten(text: str, width: int = 100) -> str:
    """``text`` cut to ``width`` characters."""
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def _columns(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> Iterable[str]:
    if not rows:
        return ["No level is requested."] if head[0] == "LOOP" else []
    table = [head, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(head) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in table
    ]
