"""From what the user asked for to a plan."""

from __future__ import annotations

import sys

import msgspec

from proveout import loops
from proveout.domain.errors import UsageError
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Plan, Step


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``proveout run`` was asked for. No level of a loop named: its default levels."""

    loops: tuple[str, ...] = ("bench",)
    levels: tuple[int, ...] = ()
    model: str | None = None
    seed: int = 0
    overrides: tuple[str, ...] = ()
    options: dict[str, str] = {}


NOT_ASKED = {
    "nemo-rl": "no NeMo-RL checkout was given (--nemo-rl or NEMO_RL_REPO)",
    "verl": "no verl checkout was given (--verl or VERL_REPO)",
    "trl": "--loop trl was not given",
}


def make_plan(request: RunRequest) -> Plan:
    """The plan for a request. Raises UsageError for an unknown loop, level, override or model."""
    context = LoopContext(
        python=sys.executable,
        model=request.model,
        seed=request.seed,
        overrides=request.overrides,
        options=request.options,
    )
    levels: list[LevelRequest] = []
    steps: list[Step] = []
    for name in request.loops:
        loop = loops.get(name)
        loop.check(context)
        wanted = request.levels or loop.default_levels
        for number in wanted:
            if number not in loop.levels:
                known = ", ".join(f"{n} ({title})" for n, title in loop.levels.items())
                raise UsageError(f"loop {name} has no level {number}", remedy=f"known levels: {known}")
            level = LevelRequest(loop=name, level=number, requested=True, reason=_reason(request, number))
            levels.append(level)
            steps += loop.steps(level, context)
        levels += [
            LevelRequest(loop=name, level=number, requested=False, reason="not asked for")
            for number in loop.levels
            if number not in wanted
        ]
    levels += [
        LevelRequest(loop=name, level=0, requested=False, reason=reason)
        for name, reason in NOT_ASKED.items()
        if name not in request.loops
    ]
    limitations = tuple(dict.fromkeys(text for step in steps for text in step.limitations))
    model = request.model or "the bench loop's tiny Qwen2, random weights"
    return Plan(model=model, levels=tuple(levels), steps=tuple(steps), limitations=limitations)


def _reason(request: RunRequest, level: int) -> str:
    return f"--level {level}" if request.levels else "a default level of this loop"
