"""Sound runs with many seeds: what is raised on them is a false alarm."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from proveout import loops
from proveout.domain.finding import Severity
from proveout.domain.layout import STATE_DIR
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Plan, Step
from proveout.domain.verdict import Verdict
from proveout.flow.execute import Policy, execute
from proveout.flow.observer import Silent
from proveout.flow.warm import refuse_gone, warm_server, warmed
from proveout.launch import launch_for
from proveout.loops.bench.backends import backend_of
from proveout.loops.bench.faults import catalogue
from proveout.loops.bench.table import table
from proveout.store.runs import create


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A finding above notice on a sound run."""

    seed: int
    step: str
    finding: str
    what: str


def run_clean(
    seeds: Iterable[int], *, context: LoopContext, state_dir: Path | None, told: Callable[[str], None]
) -> list[Alarm]:
    """One run for each seed, in turn over every step of every level and the settings that faults need besides.

    A step that needs others brings them along. Raises BlockedError where the bench loop does not start.
    """
    root = (state_dir or Path(STATE_DIR)).absolute() / "clean"
    kinds = _kinds(backend_of(context))
    alarms: list[Alarm] = []
    with warm_server(context) as variable:
        policy = Policy(launch=launch_for())
        for number, seed in enumerate(seeds):
            level, variant, words = kinds[number % len(kinds)]
            sound = msgspec.structs.replace(context, seed=seed, overrides=words)
            request = LevelRequest(loop="bench", level=level, requested=True, reason="sound", variant=variant)
            steps = tuple(warmed(step, variable) for step in loops.get("bench").steps(request, sound))
            found = _alarms(steps, request, seed, root / str(seed), policy)
            alarms += found
            told(f"seed {seed} level {level} {variant} {' '.join(words)}: {found or 'nothing'}")
    return alarms


def _kinds(backend: str) -> list[tuple[int, str, tuple[str, ...]]]:
    plain = [
        (row.level, row.name, tuple[str, ...]())
        for row in table(backend).steps
        if not row.name.endswith("save") and not row.skip
    ]
    special = [
        (fault.level, fault.step, fault.extra)
        for fault in (one.with_backend(backend) for one in catalogue())
        if fault.extra and not fault.not_for
    ]
    return list(dict.fromkeys([*plain, *special]))


def _alarms(
    steps: tuple[Step, ...], request: LevelRequest, seed: int, folder: Path, policy: Policy
) -> list[Alarm]:
    shutil.rmtree(folder, ignore_errors=True)
    run = create(folder, Plan(model="tiny", levels=(request,), steps=steps))
    with run.held():
        results = execute(run, policy, Silent())
    refuse_gone(results)
    found = []
    for result in results:
        above = [
            finding
            for attempt in result.attempts
            for finding in attempt.findings
            if finding.severity is not Severity.NOTICE
        ]
        found += [Alarm(seed=seed, step=result.id, finding=one.id, what=one.what) for one in above]
        if result.verdict is not Verdict.PASS and not above:
            found.append(Alarm(seed=seed, step=result.id, finding=str(result.verdict), what=result.reason))
    shutil.rmtree(folder, ignore_errors=True)
    return found
