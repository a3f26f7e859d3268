"""Change -> levels, each with its reason and the paths that ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from proveout.domain.step import LevelRequest
from proveout.plan.change import Change, ChangedFile
from proveout.plan.families import SMALL_BILLIONS, Family, family_name, read_family
from proveout.plan.rules import Levels, Variants, path_rules, rule_for, symbol_rules

OPTIONAL = {("nemo-rl", 3), ("verl", 3)}
"""Levels that only an explicit request or a change to that very path asks for."""
_FEATURE_LEVEL = {"nemo-rl": 5, "verl": 4}


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One reason for one level of one loop."""

    loop: str
    level: int
    variant: str
    reason: str
    path: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a change asks for: the asks, the families it touches, own tests to run first, and remarks."""

    asks: tuple[Ask, ...]
    families: tuple[Family, ...] = ()
    tests: tuple[str, ...] = ()
    ignored: dict[str, tuple[str, ...]] = {}
    limitations: tuple[str, ...] = ()


def read_change(change: Change, checkouts: Mapping[str, str]) -> Reading:
    """The levels that a change asks for. Nothing is asked for where no rule does."""
    asks: list[Ask] = []
    tests: list[str] = []
    ignored: dict[str, list[str]] = {}
    touched: dict[str, list[ChangedFile]] = {}
    for role in change.whole:
        for each in path_rules(role):
            asks += [
                ask
                for ask in _asks(each.levels, each.variants, f"the whole {role} checkout is under test", role)
                if (ask.loop, ask.level) not in OPTIONAL
            ]
    for file in change.files:
        rule = rule_for(file.role, file.path)
        if rule is None:
            ignored.setdefault("no rule knows the path", []).append(file.path)
            continue
        reason = rule.reason
        if rule.family and file.role == "bridge":
            name = family_name(file.path)
            reason = rule.reason.format(family=name)
            touched.setdefault(name, []).append(file)
        asks += _asks(rule.levels, rule.variants, reason, file.path)
        tests += rule.tests
        if not rule.levels:
            ignored.setdefault(rule.reason, []).append(file.path)
        else:
            asks += _symbol_asks(file)
    families = [_family(name, files, checkouts) for name, files in touched.items()]
    limitations: list[str] = []
    for family in families:
        first = touched[family.name][0].path
        asks += _family_asks(family, first)
        tests += family.tests
        limitations += family_limitations(family)
    return Reading(
        asks=tuple(asks),
        families=tuple(families),
        tests=tuple(dict.fromkeys(tests)),
        ignored={reason: tuple(paths) for reason, paths in ignored.items()},
        limitations=tuple(limitations),
    )


def of_bench(asks: Iterable[Ask]) -> Iterator[Ask]:
    """What the asks for NeMo-RL's levels mean for the bench loop, whose levels have the same numbers.

    At level 5 it has a mixture of experts; what it has not (vision, audio, quantisation) is not asked of it.
    """
    for ask in asks:
        if ask.loop == "nemo-rl" and (ask.level != _FEATURE_LEVEL["nemo-rl"] or ask.variant == "moe"):
            variant = ask.variant if ask.level == _FEATURE_LEVEL["nemo-rl"] else "default"
            yield msgspec.structs.replace(ask, loop="bench", variant=variant)


def _asks(levels: Levels, variants: Variants, reason: str, path: str) -> list[Ask]:
    return [
        Ask(loop=loop, level=level, variant=variant, reason=reason, path=path)
        for loop, numbers in levels.items()
        for level in numbers
        for variant in variants.get(loop, {}).get(level, ["default"])
    ]


def _symbol_asks(file: ChangedFile) -> list[Ask]:
    if file.role not in ("bridge", "mcore") or not file.path.endswith(".py"):
        return []
    found = []
    for rule in symbol_rules():
        if line := rule.first_match(file.lines):
            shown = line.strip()[:60]
            found += _asks(rule.levels, rule.variants, f"{rule.reason} ({shown!r})", file.path)
    return found


def _family(name: str, changed: list[ChangedFile], checkouts: Mapping[str, str]) -> Family:
    bridge = Path(checkouts["bridge"])
    folder = bridge / "src/megatron/bridge/models" / name
    paths = tuple(file.path for file in changed)
    added = {file.path for file in changed if file.status == "added"}
    on_disk = (
        {path.relative_to(bridge).as_posix() for path in folder.rglob("*.py")} if folder.is_dir() else set()
    )
    new = bool(added) and (on_disk <= added) and all(file.status == "added" for file in changed)
    return read_family(bridge, name, paths, new)


def _family_asks(family: Family, path: str) -> list[Ask]:
    asks = []
    for nature in family.natures:
        reason = f"the {family.name} family is {_NATURE[nature]}"
        asks += [
            Ask(loop=loop, level=level, variant=nature, reason=reason, path=path)
            for loop, level in _FEATURE_LEVEL.items()
        ]
    if family.new:
        reason = f"{family.name} is a new family: its mapping, import and export are new"
        asks += [
            Ask(loop="nemo-rl", level=2, variant="default", reason=reason, path=path),
            Ask(loop="verl", level=1, variant="default", reason=reason, path=path),
        ]
    return asks


_NATURE = {"vlm": "a vision-language model", "audio": "an audio model", "moe": "a mixture of experts"}


def family_limitations(family: Family) -> list[str]:
    """What a run without the family's own checkpoint cannot show."""
    known = family.checkpoint
    names = ", ".join(family.architectures) or "no registered architecture"
    if known is None:
        return [
            f"{family.name} ({names}): no small public checkpoint is known; a dummy config shows "
            "that the model is "
            "built and trained, not that pretrained weights are compatible"
        ]
    if known.billions > SMALL_BILLIONS:
        return [
            f"{family.name}: its smallest known checkpoint {known.checkpoint} has "
            f"{known.billions:g}B parameters; "
            "the default small model does not exercise this family unless --model names one"
        ]
    return []


def family_model(families: Iterable[Family]) -> str | None:
    """The checkpoint to run with when the change touches exactly one family that has a small text
    checkpoint."""
    small = {
        family.checkpoint.checkpoint
        for family in families
        if family.checkpoint and family.checkpoint.billions <= SMALL_BILLIONS and "vlm" not in family.natures
    }
    return small.pop() if len(small) == 1 else None


def as_requests(asks: Iterable[Ask]) -> tuple[LevelRequest, ...]:
    """Asks gathered by loop, level and variant, in order; reasons and paths are joined, each once.

    A level that is asked for by name of a variant and by default keeps both.
    """
    gathered: dict[tuple[str, int, str], list[Ask]] = {}
    for ask in asks:
        gathered.setdefault((ask.loop, ask.level, ask.variant), []).append(ask)
    return tuple(
        LevelRequest(
            loop=loop,
            level=level,
            variant=variant,
            requested=True,
            reason="; ".join(dict.fromkeys(ask.reason for ask in found)),
            paths=tuple(dict.fromkeys(ask.path for ask in found)),
        )
        for (loop, level, variant), found in sorted(gathered.items(), key=lambda item: _order(item[0]))
    )


def _order(key: tuple[str, int, str]) -> tuple[str, int, bool, str]:
    loop, level, variant = key
    return loop, level, variant != "default", variant
