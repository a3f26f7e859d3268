"""Attribution: a step that did not pass is run again on the commit before the change, and on the change itself.

The base is a tree of its own beside the run; it differs from the failed attempt in the search path alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.attribution import Against, Answer, Attribution, Side, SideRun
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.evidence import AttemptResult, Evidence, StepResult
from proveout.domain.files import read_json, write_json
from proveout.domain.preflight import PreflightContext
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.against_answer import answer_of, cause_of
from proveout.flow.beside import Beside
from proveout.flow.execute import step_results
from proveout.flow.isolation_state import forget_state
from proveout.flow.observer import Observer
from proveout.flow.planning import Planned
from proveout.flow.provenance import imports_of
from proveout.launch import Launch
from proveout.plan.base_tree import commit_of, make_tree
from proveout.preflight import import_records
from proveout.store.runs import Run

REQUESTED = "against_requested"
_UNDER_TEST = ("bridge", "mcore", "nemo-rl", "verl")


def against(planned: Planned, revision: str, repeat: int) -> Against:
    """What ``--against REVISION`` asks for: the commit of the first checkout under test.

    Raises UsageError where nothing is under test, or the revision is no commit of it.
    """
    paths = {checkout.role: checkout.path for checkout in planned.checkouts}
    role = next((role for role in _UNDER_TEST if role in paths), None)
    if role is None:
        raise UsageError(
            "nothing is under test that another commit could stand in for",
            where="--against",
            remedy="give --bridge, --mcore, --nemo-rl or --verl",
        )
    commit = commit_of(Path(paths[role]), revision)
    return Against(role=role, path=paths[role], revision=revision, commit=commit, repeat=repeat)


def request(run: Run, wanted: Against) -> None:
    """Keep in the run what it is to be compared with, so that resume goes on with it."""
    run.journal.append(REQUESTED, **msgspec.to_builtins(wanted))


def requested(run: Run) -> Against | None:
    """What the run is to be compared with, or None."""
    events = [event for event in run.journal.read() if event["event"] == REQUESTED]
    return msgspec.convert(events[-1], Against) if events else None


def attributions(run: Run) -> tuple[Attribution, ...]:
    """The answers so far, one for each attempt that was looked at. Raises UsageError for a damaged file."""
    if not run.layout.attributions.exists():
        return ()
    return read_json(run.layout.attributions, tuple[Attribution, ...])


def attribute(run: Run, launch: Launch, observer: Observer) -> None:
    """Answer for every step that did not pass, where the run asks for it; an answer that is there stays."""
    wanted = requested(run)
    if wanted is None:
        return
    known = attributions(run)
    done = {(each.step, each.attempt) for each in known}
    comparison = _Comparison(run, wanted, launch, observer)
    for result in step_results(run.plan, run):
        if _failed(result) and (result.id, result.attempts[-1].directory) not in done:
            known = (*known, comparison.answer(result))
            write_json(run.layout.attributions, known)
            run.journal.append("against_answered", step=result.id, answer=known[-1].answer)


def _failed(result: StepResult) -> bool:
    return bool(result.attempts) and result.verdict in (Verdict.FAIL, Verdict.BLOCKED)


class _Comparison:
    """The steps of one run on both sides."""

    def __init__(self, run: Run, wanted: Against, launch: Launch, observer: Observer) -> None:
        self._run, self._wanted = run, wanted
        self._steps = {step.id: step for step in run.plan.steps}
        folder = run.layout.against
        self._place = folder / f"tree-{wanted.commit[:12]}"
        self._base = Beside(run, "against-base", folder / Side.BASE, launch, observer)
        self._change = Beside(run, "against-change", folder / Side.CHANGE, launch, observer)

    def answer(self, result: StepResult) -> Attribution:
        """Run what is needed to answer for one step."""
        step, failed = self._steps[result.id], result.attempts[-1]
        why = ""
        try:
            self._run_sides(step, failed)
        except (BlockedError, UsageError) as error:
            why = str(error)
        change = [failed, *(found for _, found in self._change.judged(step))]
        base = [found for _, found in self._base.judged(self._on(self._base, step))]
        answer, reason = answer_of(change, base)
        why = why or reason
        return Attribution(
            step=step.id,
            attempt=failed.directory,
            verdict=result.verdict,
            role=self._wanted.role,
            commit=self._wanted.commit,
            answer=Answer.UNDECIDED if why else answer,
            summary=self._summary(step, Answer.UNDECIDED if why else answer, why, change, base),
            runs=tuple(self._sides(step, failed)),
            repeat=self._wanted.repeat,
        )

    def _run_sides(self, step: Step, failed: AttemptResult) -> None:
        """The base once; where it passes, both sides until one of them changes its mind or all agree."""
        make_tree(Path(self._wanted.path), self._wanted.commit, self._place)
        ready = self._on(self._base, step)
        base = [found for _, found in self._base.judged(ready)] or self._once(self._base, step)
        while base[-1].verdict is Verdict.PASS and len(base) < self._wanted.repeat:
            base = self._once(self._base, step)
        change = [failed, *(found for _, found in self._change.judged(step))]
        while base[-1].verdict is Verdict.PASS and len(change) < self._wanted.repeat:
            if change[-1].verdict is Verdict.PASS:
                return
            change = [failed, *self._once(self._change, step)]

    def _once(self, beside: Beside, step: Step) -> list[AttemptResult]:
        """One more run of the step on one side, after fresh runs of what it needs; all of it that were judged."""
        related: dict[str, Evidence] = {}
        if step.needs:
            forget_state(beside.folder, step)
        for name in step.needs:
            needed = self._steps[name]
            if self._once(beside, needed)[-1].verdict is not Verdict.PASS:
                raise BlockedError(f"{name}, which {step.id} needs, did not pass again")
            found = beside.evidence(self._on(beside, needed))
            related |= {name: found} if found is not None else {}
        ready = self._on(beside, step)
        imports = imports_of(self._run, step) if beside is self._change else self._imports(ready)
        beside.once_more(ready, related, imports)
        judged = [found for _, found in beside.judged(ready)]
        if not judged:
            raise BlockedError(f"another run of {step.id} came to no end")
        return judged

    def _on(self, beside: Beside, step: Step) -> Step:
        return step if beside is self._change else on_base(step, self._wanted.path, self._place)

    def _imports(self, step: Step) -> Any:
        """Where the workers of a step on the base would import from, as they say before it."""
        paths = {checkout.role: checkout.path for checkout in self._run.checkouts()}
        context = PreflightContext(
            loops=(step.coverage.loop,),
            steps=(step,),
            checkouts={**paths, self._wanted.role: str(self._place)},
            run_dir=str(self._run.layout.root),
            env=dict(os.environ),
        )
        return import_records(context).get(step.coverage.loop, ())

    def _sides(self, step: Step, failed: AttemptResult) -> Iterator[SideRun]:
        attempts = self._run.layout.attempts.name
        yield _side(Side.CHANGE, f"{attempts}/{failed.directory}", failed)
        for side, beside, ran in (
            (Side.CHANGE, self._change, step),
            (Side.BASE, self._base, self._on(self._base, step)),
        ):
            for files, found in beside.judged(ran):
                yield _side(side, str(files.root.relative_to(self._run.layout.root)), found)

    def _summary(
        self,
        step: Step,
        answer: Answer,
        why: str,
        change: list[AttemptResult],
        base: list[AttemptResult],
    ) -> str:
        theirs = f"{self._wanted.role} {self._wanted.commit[:9]}"
        counted = f"with the change {_count(change)}, on {theirs} {_count(base)}"
        return f"{step.id}: {answer.value}: {counted}" + (f"; {why}" if why else "")


def _count(results: list[AttemptResult]) -> str:
    if not results:
        return "no run"
    passed = sum(result.verdict is Verdict.PASS for result in results)
    other = "/".join(dict.fromkeys(r.verdict.value for r in results if r.verdict is not Verdict.PASS))
    return f"{passed} of {len(results)} passed" + (f" ({other})" if other else "")


def _side(side: Side, directory: str, result: AttemptResult) -> SideRun:
    ids = tuple(dict.fromkeys(finding.id for finding in result.findings if finding.decides))
    return SideRun(
        side=side, directory=directory, verdict=result.verdict, findings=ids, cause=cause_of(result)
    )


def on_base(step: Step, path: str, tree: Path) -> Step:
    """The step with the checkout at ``path`` replaced by ``tree``: command, environment, what is judged."""
    whole = re.compile(rf"(?<![\w./-]){re.escape(path)}(?=[/:;,'\"\s)\]}}]|$)")

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return whole.sub(lambda _: str(tree), value)
        if isinstance(value, dict):
            return {key: walk(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [walk(each) for each in value]
        return value

    changed = msgspec.convert(walk(msgspec.to_builtins(step)), Step)
    given = os.environ.get("PYTHONPATH", "")
    if "PYTHONPATH" in changed.command.env or not whole.search(given):
        return changed
    env = {**changed.command.env, "PYTHONPATH": walk(given)}
    return msgspec.structs.replace(changed, command=msgspec.structs.replace(changed.command, env=env))
