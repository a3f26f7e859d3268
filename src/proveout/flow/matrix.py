"""A matrix of steps: models x levels x loops x seeds x commits, planned as one run for each set of commits."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.errors import UsageError, nearest
from proveout.domain.step import Plan, Step
from proveout.flow.locate import with_paths
from proveout.flow.planning import Planned, PlanRequest, make_plan
from proveout.plan.choices import parse_choices
from proveout.plan.trees import tree_at

_BESIDE = re.compile(r"\.\./([\w.-]*\w)")


class Matrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``matrix.toml`` may say; every list that is left out is what the command line says.

    ``levels`` are choices as for ``--level``; ``commits`` gives revisions by role (``{bridge = ["main", "HEAD"]}``):
    each is tested in a fresh tree, and the checkout that it is taken from is left as it is.
    """

    models: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    commits: dict[str, tuple[str, ...]] = {}
    overrides: tuple[str, ...] = ()


def read_matrix(path: Path) -> Matrix:
    """The matrix in a file. Raises UsageError for what is wrong in it, naming the nearest known key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    for key in data:
        if key not in Matrix.__struct_fields__:
            raise UsageError(f"no key {key!r}{nearest(key, Matrix.__struct_fields__)}", where=str(path))
    try:
        return msgspec.convert(data, Matrix)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), where=str(path)) from error


def plan_matrix(matrix: Matrix, request: PlanRequest, trees: Path) -> list[Planned]:
    """The plans of a matrix: one for each combination of commits, with the steps of all its cells.

    ``trees`` is where fresh trees of commits are made. Raises UsageError as ``make_plan`` does.
    """
    for role in matrix.commits:
        if role not in request.checkouts:
            raise UsageError(f"commits of {role!r} need its checkout", remedy=f"give --{role} PATH")
    request = msgspec.structs.replace(
        request,
        loops=matrix.loops or request.loops,
        levels=parse_choices(matrix.levels, "levels") if matrix.levels else request.levels,
        overrides=(*request.overrides, *matrix.overrides),
    )
    return [
        _one_run(matrix, _at(request, dict(zip(matrix.commits, revisions, strict=True)), trees))
        for revisions in product(*matrix.commits.values())
    ]


def _at(request: PlanRequest, revisions: dict[str, str], trees: Path) -> PlanRequest:
    fresh = {role: str(tree_at(request.checkouts[role], role, rev, trees)) for role, rev in revisions.items()}
    return msgspec.structs.replace(request, checkouts=request.checkouts | fresh)


def _one_run(matrix: Matrix, request: PlanRequest) -> Planned:
    cells: list[tuple[str, Planned]] = []
    for name, cell in _cells(matrix, request):
        cells.append((name, make_plan(cell)))
    first = cells[0][1]
    plans = [planned.plan for _, planned in cells]
    merged = msgspec.structs.replace(
        first.plan,
        model="; ".join(dict.fromkeys(plan.model for plan in plans)),
        levels=_once(plan.levels for plan in plans),
        steps=tuple(step for name, planned in cells for step in _named(planned.plan, name)),
        findings=_once(plan.findings for plan in plans),
        substitutions=_once(plan.substitutions for plan in plans),
        limitations=_once(plan.limitations for plan in plans),
    )
    return msgspec.structs.replace(first, plan=merged)


def _cells(matrix: Matrix, request: PlanRequest) -> Iterator[tuple[str, PlanRequest]]:
    """Each cell's short name (m2-s7: second model, seed 7) and what is planned for it."""
    models: Sequence[str | None] = matrix.models or (request.model,)
    for (place, model), seed in product(enumerate(models, 1), matrix.seeds or (request.seed,)):
        name = [f"m{place}"] if len(models) > 1 else []
        name += [f"s{seed}"] if len(matrix.seeds) > 1 else []
        yield "-".join(name), msgspec.structs.replace(request, model=model or None, seed=seed)


def _named(plan: Plan, cell: str) -> Iterator[Step]:
    """The steps of a cell, told from those of others: by id and variant, and in what they leave beside attempts."""
    ids = {step.id: f"{step.id}@{cell}" for step in plan.steps}
    for step in plan.steps:
        yield step if not cell else _renamed(step, ids, cell)


def _renamed(step: Step, ids: dict[str, str], cell: str) -> Step:
    def apart(text: str) -> str:
        return _BESIDE.sub(rf"../\1@{cell}", text)

    replace = msgspec.structs.replace
    step = with_paths(step, apart)
    command = replace(
        step.command,
        argv=tuple(map(apart, step.command.argv)),
        env={key: apart(value) for key, value in step.command.env.items()},
    )
    criteria = tuple(
        replace(each, params=_within(each.params, lambda text: ids.get(text, apart(text))))
        for each in step.criteria
    )
    return replace(
        step,
        id=ids[step.id],
        coverage=replace(step.coverage, variant=f"{step.coverage.variant}@{cell}"),
        command=command,
        criteria=criteria,
        needs=tuple(ids[need] for need in step.needs),
    )


def _within(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _within(each, change) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_within(each, change) for each in value]
    return value


def _once(parts: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(item for part in parts for item in part))
