"""A change and checkouts -> levels -> the steps of each loop, checked against the checkouts -> a plan."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from proveout import loops
from proveout.domain.checkout import Checkout, Drift
from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Finding, Severity
from proveout.domain.loop import ChoosingLoop, LoopContext, VerifiedLoop
from proveout.domain.step import LevelRequest, Plan, Step
from proveout.plan.around import around
from proveout.plan.bridge_tests import bridge_tests
from proveout.plan.change import Change, ChangedFile, from_git, from_patch, from_paths
from proveout.plan.checkouts import inspect
from proveout.plan.choices import Choice
from proveout.plan.levels import Reading, as_requests, family_model, read_change
from proveout.plan.patch import patch_of
from proveout.plan.vendored import compare

WITH_CHECKOUT = {"nemo-rl": "NEMO_RL_REPO", "verl": "VERL_REPO"}
NO_BRIDGE_TESTS = (
    "on platform cpu there is no environment of the Bridge's own, with Transformer Engine, for its tests"
)
WITHOUT_COMPARISON = {"plan.checkout.not-git", "plan.checkout.no-index", "plan.checkout.unreadable"}


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan is wanted for.

    ``loops`` empty: those whose checkout is given, else ``bench``. ``levels`` replaces what the change asks
    for,
    ``add`` adds to it. Of ``paths``, ``patch`` and ``whole`` at most one is given; else the change is what
    differs from ``base`` (default: the merge base with the default branch). ``options`` are settings by loop;
    ``overrides`` are words for a loop, ``LOOP:key=value`` where the plan has several.
    """

    checkouts: dict[str, str] = {}
    loops: tuple[str, ...] = ()
    levels: tuple[Choice, ...] = ()
    add: tuple[Choice, ...] = ()
    base: str | None = None
    patch: str | None = None
    paths: tuple[str, ...] = ()
    whole: bool = False
    model: str | None = None
    gpus: int = 0
    seed: int = 0
    python: str = sys.executable
    options: dict[str, dict[str, str]] = {}
    overrides: tuple[str, ...] = ()


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with what it was made from.

    ``drift`` compares NeMo-RL's vendored Bridge with the one under test.
    """

    plan: Plan
    checkouts: tuple[Checkout, ...]
    change: Change
    reading: Reading
    drift: Drift | None = None

    def patches(self) -> dict[str, bytes]:
        """Role -> the working tree's difference from its commit, for the run directory; clean trees are left out."""
        found = {checkout.role: patch_of(checkout) for checkout in self.checkouts}
        return {role: patch for role, patch in found.items() if patch}


def make_plan(request: PlanRequest) -> Planned:
    """The plan for a request. Nothing in a checkout is written.

    Raises UsageError for what was asked for wrongly: an unknown loop, level, variant, option or revision, a
    path outside the checkouts, a checkout whose change cannot be told.
    """
    names = _loops(request)
    with ThreadPoolExecutor(max_workers=8) as pool:
        states = {role: pool.submit(inspect, role, path) for role, path in request.checkouts.items()}
        both = "bridge" in request.checkouts and "nemo-rl" in request.checkouts
        drifting = (
            pool.submit(compare, request.checkouts["bridge"], request.checkouts["nemo-rl"]) if both else None
        )
        inspected = {role: state.result() for role, state in states.items()}
        change = _change(request, inspected)
        drift = drifting.result() if drifting else None
    reading = read_change(change, request.checkouts)
    model = request.model or family_model(reading.families)
    contexts = {name: _context(request, name, names, model) for name in names}
    findings = [finding for _, found in inspected.values() for finding in found]
    findings += around(request.checkouts, drift, change, explicit=bool(request.levels))
    for name in names:
        findings += loops.get(name).check(contexts[name])
    wanted = list(_requests(request, contexts, reading))
    steps, found = _steps(wanted, contexts, request)
    findings += found
    first = next((item for item in wanted if item.loop in WITH_CHECKOUT), None)
    if "bridge" in request.checkouts and first:
        own = bridge_tests(
            request.checkouts,
            change,
            reading.tests,
            reading.families,
            first.loop,
            first.level,
            os.environ.get("PYTHONPATH", ""),
        )
        if own and contexts[first.loop].options.get("platform"):
            own = msgspec.structs.replace(own, skip_reason=NO_BRIDGE_TESTS)
        steps = [own, *steps] if own else steps
    plan = Plan(
        model=model or "; ".join(dict.fromkeys(loops.get(name).default_model for name in names)),
        levels=(*wanted, *_not_requested(names, wanted)),
        steps=tuple(steps),
        findings=tuple(dict.fromkeys(findings)),
        substitutions=tuple(dict.fromkeys(text for step in steps for text in step.substitutions)),
        limitations=tuple(
            dict.fromkeys(
                [
                    *reading.limitations,
                    *_left_out(wanted, reading, names),
                    *(text for step in steps for text in step.limitations),
                ]
            )
        ),
    )
    return Planned(
        plan=plan,
        checkouts=tuple(checkout for checkout, _ in inspected.values()),
        change=change,
        reading=reading,
        drift=drift,
    )


def _loops(request: PlanRequest) -> tuple[str, ...]:
    for name in request.loops:
        loops.get(name)
        on_platform = bool(request.options.get(name, {}).get("platform"))
        if name in WITH_CHECKOUT and name not in request.checkouts and not on_platform:
            raise UsageError(
                f"loop {name} needs a {name} checkout",
                remedy=f"give --{name} PATH or set {WITH_CHECKOUT[name]}",
            )
    given = tuple(name for name in WITH_CHECKOUT if name in request.checkouts)
    return request.loops or given or ("bench",)


def _change(request: PlanRequest, inspected: dict[str, tuple[Checkout, tuple[Finding, ...]]]) -> Change:
    checkouts = request.checkouts
    ways = [
        way
        for way, given in (("--patch", request.patch), ("paths", request.paths), ("--whole", request.whole))
        if given
    ]
    if len(ways) > 1 or (ways and request.base):
        raise UsageError(
            f"{' and '.join([*ways, '--base'][:2])} exclude each other: each says what the change is"
        )
    own: list[str] = [role for role in ("bridge", "mcore") if role in checkouts]
    under_test = own or list(checkouts)
    if request.whole:
        return Change(files=(), source="the whole checkout", whole=tuple(under_test))
    if request.paths:
        return Change(files=from_paths(request.paths, checkouts), source=f"{len(request.paths)} named paths")
    if request.patch:
        if not under_test:
            raise UsageError("a patch needs a checkout that it belongs to", remedy="give --bridge PATH")
        return Change(files=from_patch(under_test[0], Path(request.patch)), source=f"patch {request.patch}")
    files: list[ChangedFile] = []
    said = []
    for role, path in checkouts.items():
        broken = next((item for item in inspected[role][1] if item.id in WITHOUT_COMPARISON), None)
        if broken and role in under_test and not request.levels:
            raise UsageError(broken.what, where=path, remedy=broken.remedy)
        if broken:
            continue
        base = request.base if role == under_test[0] else None
        commit, found = from_git(role, inspected[role][0], base)
        files += found
        said.append(f"{role} since {commit[:9]}")
    return Change(files=tuple(files), source=", ".join(said) or "no checkout")


def _context(request: PlanRequest, name: str, names: tuple[str, ...], model: str | None) -> LoopContext:
    overrides = []
    for word in request.overrides:
        loop, colon, rest = word.partition(":")
        if colon and loop in loops.LOOPS:
            if loop not in names:
                raise UsageError(f"{word!r} is for loop {loop}, which is not in the plan")
            overrides += [rest] if loop == name else []
        elif len(names) > 1:
            raise UsageError(f"{word!r} does not say for which loop", remedy=f"write {names[0]}:{word}")
        else:
            overrides.append(word)
    for loop in request.options:
        if loop not in names:
            raise UsageError(
                f"an option is for loop {loop!r}, which is not in the plan{nearest(loop, names)}"
            )
    return LoopContext(
        python=request.python,
        model=model,
        checkouts=request.checkouts,
        gpus=request.gpus,
        seed=request.seed,
        options=request.options.get(name, {}),
        overrides=tuple(overrides),
    )


def _requests(
    request: PlanRequest, contexts: dict[str, LoopContext], reading: Reading
) -> Iterator[LevelRequest]:
    names = tuple(contexts)
    gathered: dict[tuple[str, int, str], LevelRequest] = {}
    if not request.levels:
        for item in as_requests(ask for ask in reading.asks if ask.loop in names):
            gathered[item.loop, item.level, item.variant] = item
        for name in names:
            if name not in WITH_CHECKOUT or (
                name not in request.checkouts and "bridge" not in request.checkouts
            ):
                for level in _levels_by_default(name, contexts[name]):
                    gathered[name, level, "default"] = LevelRequest(
                        loop=name, level=level, requested=True, reason="a default level of this loop"
                    )
    for flag, choices in (("--level", request.levels), ("--add", request.add)):
        for choice in choices:
            for item in _chosen(choice, flag, names):
                gathered.setdefault((item.loop, item.level, item.variant), item)
    return iter(
        sorted(
            gathered.values(),
            key=lambda item: (names.index(item.loop), item.level, item.variant != "default"),
        )
    )


def _levels_by_default(name: str, context: LoopContext) -> tuple[int, ...]:
    loop = loops.get(name)
    return loop.levels_by_default(context) if isinstance(loop, ChoosingLoop) else loop.default_levels


def _chosen(choice: Choice, flag: str, names: tuple[str, ...]) -> Iterator[LevelRequest]:
    if choice.loop and choice.loop not in names:
        loops.get(choice.loop)
        raise UsageError(f"loop {choice.loop} is not in the plan", where=flag, remedy=f"--loop {choice.loop}")
    having = [name for name in names if choice.level in loops.get(name).levels and choice.loop in ("", name)]
    if not having:
        known = "; ".join(
            f"{name}: " + ", ".join(f"{n} ({title})" for n, title in loops.get(name).levels.items())
            for name in names
            if choice.loop in ("", name)
        )
        raise UsageError(f"no level {choice.level}", where=flag, remedy=f"known levels: {known}")
    for name in having:
        text = f"{flag} {choice.level}" + (f"/{choice.variant}" if choice.variant != "default" else "")
        yield LevelRequest(loop=name, level=choice.level, variant=choice.variant, requested=True, reason=text)


def _steps(
    wanted: Iterable[LevelRequest], contexts: dict[str, LoopContext], request: PlanRequest
) -> tuple[list[Step], list[Finding]]:
    steps: dict[str, Step] = {}
    findings: list[Finding] = []
    for item in wanted:
        loop, context = loops.get(item.loop), contexts[item.loop]
        for step in loop.steps(item, context):
            if step.id in steps:
                continue
            if isinstance(loop, VerifiedLoop):
                settled, found = _settle(step, loop.verify(step, context), asked=bool(context.overrides))
                findings += found
            else:
                settled = step
            steps[step.id] = settled
    return list(steps.values()), findings


def _settle(step: Step, found: tuple[Finding, ...], asked: bool) -> tuple[Step, tuple[Finding, ...]]:
    """A step that its own checkout rejects is skipped and says why; what a user's override causes stays
    an error."""
    errors = [item for item in found if item.severity is Severity.ERROR]
    if not errors or asked:
        return step, found
    if not step.skip_reason:
        reason = errors[0].what.removeprefix(f"{step.id}: ")
        step = msgspec.structs.replace(step, skip_reason=f"this checkout rejects it: {reason}")
    softened = tuple(
        msgspec.structs.replace(item, severity=Severity.WARNING) if item.severity is Severity.ERROR else item
        for item in found
    )
    return step, softened


def _not_requested(names: tuple[str, ...], wanted: list[LevelRequest]) -> Iterator[LevelRequest]:
    asked = {(item.loop, item.level) for item in wanted}
    for name in names:
        for level in loops.get(name).levels:
            if (name, level) not in asked:
                yield LevelRequest(
                    loop=name, level=level, requested=False, reason="no changed path asks for it"
                )
    for name, variable in WITH_CHECKOUT.items():
        if name not in names:
            yield LevelRequest(
                loop=name,
                level=0,
                requested=False,
                reason=f"no {name} checkout was given (--{name} or {variable})",
            )


def _left_out(wanted: list[LevelRequest], reading: Reading, names: tuple[str, ...]) -> Iterator[str]:
    """What the change asks for and the request leaves out: it limits what may be claimed."""
    asked = {(item.loop, item.level) for item in wanted}
    told: set[tuple[str, int]] = set()
    for ask in reading.asks:
        key = (ask.loop, ask.level)
        if ask.loop in names and key not in asked and key not in told:
            told.add(key)
            yield f"{ask.loop} level {ask.level} was left out, although {ask.path} asks for it: {ask.reason}"
