"""The rules: read from data files, checked, compiled, and kept ready in a cache.

A rule file is YAML, one per family. Shipped rules are checked against their examples by a test, a user's own
rules when they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.finding import Boundary
from proveout.triage.cache import cached

RULES_DIR = Path(__file__).parent / "rules"
ROLES = ("cause", "wrapper", "aftermath", "noise")
_BLANK = re.compile(r"(\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])|\\[^s]|\\s")
STAGES = (
    "preflight",
    "ray_start",
    "provider_build",
    "engine_start",
    "rollout",
    "logprob",
    "train_step",
    "refit",
    "checkpoint",
    "resume",
    "shutdown",
)


class Negative(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line that the rule must not match, and why it is there."""

    line: str
    why: str


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that software prints, and what it means.

    ``pattern`` is RE2, matched within one line as printed. ``frames`` (RE2) must be found in the traceback
    that the line belongs to; ``stages`` limits the stage reached. With ``by_frames`` the words are general: the
    boundary is that of the code which raised the exception, where its frames tell. ``built`` limits a rule to
    where the log showed before that the trainer's model was built. ``strength`` orders rules
    that apply to the same failure: 3 names a root by itself, 2 is usually the root, 1 is often only a consequence.
    ``metric`` is set for readings of a metric: those count although training went on. ``verdict`` overrides
    what the boundary gives. ``source`` names the program that prints it.
    """

    id: str
    pattern: str
    explanation: str
    source: str
    positives: tuple[str, ...]
    negatives: tuple[Negative, ...]
    role: str = "cause"
    boundary: Boundary = Boundary.UNKNOWN
    subkind: str = ""
    strength: int = 2
    frames: str = ""
    by_frames: bool = False
    built: bool = False
    stages: tuple[str, ...] = ()
    metric: str = ""
    verdict: str = ""
    remedy: str = ""


class _RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One family: ``defaults`` are the fields that its rules share."""

    rules: tuple[dict[str, Any], ...]
    defaults: dict[str, Any] = {}


class Catalog:
    """Rules ready to scan with; the engine objects are built at first use."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        seen: dict[str, Rule] = {}
        for rule in self.rules:
            if rule.id in seen:
                raise UsageError(f"two rules have the id {rule.id!r}", remedy="rename one of them")
            seen[rule.id] = rule
        self.by_id = seen

    @cached_property
    def matchers(self) -> list[Any]:
        """One compiled pattern a rule, for whole lines of bytes; compiled when first asked for."""
        return [None] * len(self.rules)

    def matcher(self, index: int) -> Any:
        """The compiled pattern of rule ``index``."""
        found = self.matchers[index]
        if found is None:
            found = self.matchers[index] = compile_pattern(self.rules[index].pattern)
        return found


def compile_pattern(pattern: str) -> Any:
    """A pattern compiled by RE2 for bytes. Raises UsageError with what RE2 says of it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(line_pattern(pattern).encode(), options)
    except re2.error as error:
        raise UsageError(
            f"not an RE2 pattern: {error}", where=pattern, remedy="RE2 has no look-around"
        ) from None


def line_pattern(pattern: str) -> str:
    """The pattern as it is given to RE2: ``^`` and ``$`` mean line ends, blanks never span lines."""
    return "(?m)" + _BLANK.sub(_blank, pattern)


def _blank(part: re.Match[str]) -> str:
    """A class with ``\\s`` in it, or ``\\s`` alone, for blanks within a line; any other escape as it is."""
    if part[1]:
        return part[0].replace(r"\s", r" \t")
    return r"[ \t]" if part[0] == r"\s" else part[0]


def gate(pattern: str) -> tuple[str, ...]:
    """Literal words of which every match holds at least one; empty where none can be derived.

    Derived from the pattern's syntax tree: the longest literal run of a concatenation, or one of every
    branch of an alternation. Case-insensitive patterns have none.
    """
    import re._constants as c  # type: ignore[import-not-found]
    import re._parser as parser  # type: ignore[import-not-found]

    def words(tree: Any) -> set[str]:
        best: set[str] = set()
        run = ""

        def offer(candidate: set[str]) -> None:
            nonlocal best
            if candidate and all(candidate) and (not best or min(map(len, candidate)) > min(map(len, best))):
                best = candidate

        for op, argument in tree:
            if op is c.LITERAL:
                run += chr(argument)
                continue
            offer({run} if run else set())
            run = ""
            if op is c.SUBPATTERN:
                offer(words(argument[3]))
            elif op is c.BRANCH:
                branches = [words(branch) for branch in argument[1]]
                offer(set().union(*branches) if all(branches) else set())
            elif op is c.MAX_REPEAT and argument[0] > 0:
                offer(words(argument[2]))
        offer({run} if run else set())
        return best

    if "(?i" in pattern:
        return ()
    return tuple(sorted(words(parser.parse(pattern))))


def parse_rules(text: str, where: str) -> tuple[Rule, ...]:
    """Rules of one YAML file. Raises UsageError naming the file and what is wrong in it."""
    import yaml

    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
        family = msgspec.convert(data, _RuleFile)
        rules = tuple(msgspec.convert(family.defaults | rule, Rule) for rule in family.rules)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise UsageError(str(error).replace("\n", " "), where=where, remedy="see docs/triage.md") from None
    for rule in rules:
        _check_words(rule, where)
    return rules


def _check_words(rule: Rule, where: str) -> None:
    if rule.role not in ROLES:
        raise UsageError(f"role {rule.role!r} of {rule.id} is none of {', '.join(ROLES)}", where=where)
    unknown = set(rule.stages) - set(STAGES)
    if unknown:
        raise UsageError(f"{rule.id} names unknown stages {sorted(unknown)}", where=where)


def problems(rules: Iterable[Rule]) -> list[str]:
    """What is wrong with rules by their own examples; empty when they are sound."""
    found: list[str] = []
    for rule in rules:
        matcher = compile_pattern(rule.pattern)
        if not rule.positives or not rule.negatives:
            found.append(f"{rule.id}: needs at least one positive and one negative example")
        found += [
            f"{rule.id}: does not match its positive {line!r}"
            for line in rule.positives
            if not matcher.search(line.encode())
        ]
        found += [
            f"{rule.id}: matches its negative {negative.line!r}"
            for negative in rule.negatives
            if matcher.search(negative.line.encode())
        ]
        found += [f"{rule.id}: a negative says no reason" for n in rule.negatives if not n.why.strip()]
        if matcher.search(b"") or matcher.search(b"step 1 loss 0.5"):
            found.append(f"{rule.id}: matches a harmless line")
        if rule.role == "cause" and not (rule.remedy and rule.subkind):
            found.append(f"{rule.id}: a cause needs a sub-kind and a remedy")
    return found


def user_rules_dir() -> Path:
    """Where a user's own rules stand: ``PROVEOUT_RULES``, else under the user's configuration directory."""
    chosen = os.environ.get("PROVEOUT_RULES")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "proveout" / "triage-rules"


@lru_cache(maxsize=4)
def load(user_dir: Path | None = None) -> Catalog:
    """The shipped rules, and the user's own after them. Raises UsageError for a file that is wrong."""
    files = sorted(RULES_DIR.glob("*.yaml"))
    mine = user_dir if user_dir is not None else user_rules_dir()
    if mine.is_dir():
        files += sorted(mine.glob("*.yaml"))
    return Catalog(cached("rules", files, _read_rules, tuple[Rule, ...]))


def _read_rules(files: Sequence[Path]) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for file in files:
        rules = parse_rules(file.read_text(encoding="utf-8"), str(file))
        wrong = problems(rules) if file.parent != RULES_DIR else []
        if wrong:
            raise UsageError(wrong[0], where=str(file), remedy="correct the rule or its examples")
        found += rules
    return tuple(found)
