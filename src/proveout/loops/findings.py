"""Findings about steps that a checkout would reject, in one form for all loops."""

from __future__ import annotations

from collections.abc import Iterable

from proveout.domain.config.overrides import Problem
from proveout.domain.finding import Finding, Severity, Where

_IDS = {
    "syntax": "syntax",
    "unknown": "unknown-key",
    "exists": "key-exists",
    "mismatch": "mismatch",
    "type": "type",
}


def finding(
    kind: str,
    step_id: str,
    what: str,
    *,
    remedy: str = "",
    file: str | None = None,
    line: int | None = None,
    key: str | None = None,
    severity: Severity = Severity.ERROR,
) -> Finding:
    """One finding ``plan.KIND`` about a step."""
    return Finding(
        id=f"plan.{kind}",
        severity=severity,
        what=f"{step_id}: {what}",
        where=Where(file=file, line=line, key=key),
        remedy=remedy,
    )


def from_problems(
    step_id: str,
    problems: Iterable[Problem],
    renames: dict[str, str],
    *,
    file: str | None,
    line: int | None = None,
) -> list[Finding]:
    """Findings for rejected overrides; a key that was renamed says what to write now."""
    found = []
    for problem in problems:
        now = renamed(problem.key, renames)
        remedy = f"{problem.key} is gone; now: {now}" if now and problem.kind == "unknown" else problem.remedy
        severity = Severity.WARNING if problem.kind == "type" else Severity.ERROR
        found.append(
            finding(
                f"override.{_IDS[problem.kind]}",
                step_id,
                problem.what,
                remedy=remedy,
                file=file,
                line=line,
                key=problem.key,
                severity=severity,
            )
        )
    return found


def renamed(key: str, renames: dict[str, str]) -> str:
    """What stands for a renamed key (or any key under it), or ''."""
    return next((now for old, now in renames.items() if key == old or key.startswith(old + ".")), "")


def parallel_problems(world: int, sizes: dict[str, int], batch: int, micro: int) -> list[str]:
    """What is wrong with parallel sizes on ``world`` GPUs: TP x PP x CP must divide them, and so must ETP x
    EP x PP; the global batch must be a multiple of the micro batch times the data-parallel size.

    Source: Megatron-Core ``parallel_state.initialize_model_parallel``.
    """
    tp, pp, cp = (sizes.get(name, 1) for name in ("TP", "PP", "CP"))
    model = tp * pp * cp
    if model > world:
        return [f"TP {tp} x PP {pp} x CP {cp} = {model} GPUs, and there are {world}"]
    if world % model:
        return [f"TP {tp} x PP {pp} x CP {cp} = {model} does not divide {world} GPUs"]
    found = []
    expert = sizes.get("EP", 1) * sizes.get("ETP", tp) * pp
    if sizes.get("EP", 1) > 1 and (expert > world or world % expert):
        found.append(
            f"EP {sizes['EP']} x ETP {sizes.get('ETP', tp)} x PP {pp} = {expert} does not divide {world} GPUs"
        )
    data = world // model
    if batch and micro and batch % (micro * data):
        found.append(
            f"global batch {batch} is no multiple of micro batch {micro} x data-parallel size {data}"
        )
    return found
