"""A rung applied to one step: whether it can tell anything there, and the step as it would be run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import msgspec

from proveout.domain.step import Command, Criterion, Step
from proveout.triage.ladders import Change, Rung

Config = Mapping[str, Any]


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The changed step, with the ``values`` by which its resolved configuration shows the change; or why not."""

    step: Step | None = None
    values: dict[str, Any] = {}
    reason: str = ""


def apply(change: Change, step: Step, config: Config | None, findings: Collection[str] = ()) -> Applied:
    """The step with the change. ``config`` is the failed attempt's resolved configuration, None if unknown.

    ``findings`` are the ids of those that decided: a change that would leave all of them unjudged tells nothing.
    """
    known = config or {}
    if reason := _no_occasion(change, step, known):
        return Applied(reason=reason)
    words = list(change.words)
    for key, smallest in change.halve.items():
        length = known.get(key)
        if not isinstance(length, int) or length < 2 * smallest:
            return Applied(reason=f"{key} is {length if key in known else 'not known'}: it cannot be halved")
        words.append(f"{key}={length // 2}")
    for key, factors in change.multiply.items():
        numbers = [known.get(factor) for factor in factors]
        if not all(isinstance(number, int) for number in numbers):
            return Applied(reason=f"{' and '.join(factors)} are not known")
        words.append(f"{key}={prod(number for number in numbers if isinstance(number, int))}")
    values = {key_of(word): word.partition("=")[2] for word in words}
    if _already(change, values, step.command, known):
        return Applied(reason="the failed run had it so already")
    if findings and all(_unjudged(name, change, step, values) for name in findings):
        return Applied(reason="what failed would not be judged any more, so a pass would tell nothing")
    return Applied(step=_changed(step, change, tuple(words), values), values=values)


def distinct(rungs: Iterable[tuple[Rung, Applied]]) -> tuple[tuple[Rung, Applied], ...]:
    """The rungs, where one that would run the command of an earlier one is skipped."""
    first: list[tuple[Command, str]] = []
    found = []
    for rung, applied in rungs:
        if applied.step is not None:
            command = applied.step.command
            earlier = next((name for other, name in first if other == command), "")
            first.append((command, rung.id))
            found.append((rung, Applied(reason=f"it is what {earlier} runs") if earlier else applied))
        else:
            found.append((rung, applied))
    return tuple(found)


def effect(values: Mapping[str, Any], config: Config | None) -> str:
    """Why the resolved configuration of a re-run does not show the change; '' where it does."""
    if not values:
        return ""
    if config is None:
        return "no resolved configuration shows the change"
    for key, value in values.items():
        if key not in config:
            return f"{key} is not in the resolved configuration"
        if not same(config[key], value):
            return f"{key} is {config[key]}, not {value}"
    return ""


def key_of(word: str) -> str:
    """The key of an override word, without the signs before it."""
    return word.partition("=")[0].lstrip("+~")


def same(found: Any, wanted: Any) -> bool:
    """Whether two values mean the same, however a configuration prints them."""
    return bool(_plain(found) == _plain(wanted))


def _plain(value: Any) -> Any:
    text = str(value).strip().strip("'\"").lower()
    try:
        return float(text)
    except ValueError:
        return "null" if text in ("none", "null", "") else text


def _no_occasion(change: Change, step: Step, known: Config) -> str:
    """Why the failed run had nothing that the change could take away; '' where it had, or nobody knows."""
    if step.config is None and (change.words or change.halve or change.multiply):
        return "the step is no training run, so it has no such setting"
    for key, value in change.needs.items():
        if key in known and not same(known[key], value):
            return f"{key} is {known[key]}: there is nothing to change"
    for key, value in change.refuses.items():
        if key in known and same(known[key], value):
            return f"{key} is {known[key]}: there is nothing to change"
    return ""


def _already(change: Change, values: Mapping[str, Any], command: Command, known: Config) -> bool:
    if any(key not in known or not same(known[key], value) for key, value in values.items()):
        return False
    if not values and any(command.env.get(name) != value for name, value in change.env.items()):
        return False
    return not any(name in command.env for name in change.unset)


def _unjudged(finding: str, change: Change, step: Step, values: Mapping[str, Any]) -> bool:
    """Whether the criterion behind a finding is left out, or asks for something else, with the change."""
    kind = finding.split(".")[1] if finding.count(".") > 1 else ""
    if kind == "backend":
        return any(
            values.keys() & item.params["expected"].keys() for item in step.criteria if item.kind == kind
        )
    return kind in change.without or (kind == "artifacts" and bool(change.without_artifacts))


def _changed(step: Step, change: Change, words: tuple[str, ...], values: Mapping[str, Any]) -> Step:
    kept = tuple(word for word in step.command.argv if "=" not in word or key_of(word) not in values)
    env = {name: value for name, value in step.command.env.items() if name not in change.unset}
    command = Command(
        argv=(*kept, *words),
        env={**env, **change.env},
        unset=(*step.command.unset, *change.unset),
        cwd=step.command.cwd,
    )
    return msgspec.structs.replace(
        step,
        command=command,
        artifacts=tuple(
            artifact
            for artifact in step.artifacts
            if not any(fnmatchcase(artifact.path, pattern) for pattern in change.without_artifacts)
        ),
        criteria=tuple(_criterion(item, values) for item in step.criteria if item.kind not in change.without),
    )


def _criterion(criterion: Criterion, values: Mapping[str, Any]) -> Criterion:
    """``backend`` expects the changed setting; every other criterion stays as it is."""
    if criterion.kind != "backend":
        return criterion
    expected = {key: values.get(key, value) for key, value in criterion.params["expected"].items()}
    return Criterion(kind="backend", params={**criterion.params, "expected": expected})
