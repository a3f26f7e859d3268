"""What a NeMo-RL command would run: its configuration with all overrides, read from the checkout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec

from proveout.domain.config import inherit
from proveout.domain.config.interpolate import ABSENT, Unresolved, lookup
from proveout.domain.config.overrides import Problem, apply
from proveout.domain.tree import Tree
from proveout.loops.nemo_rl.functional import FunctionalScript, RunCall, default_config, read_script

SCRIPTS = "tests/functional"


class ResolvedRun(msgspec.Struct, kw_only=True):
    """One run with its configuration. ``source`` names the file (and line) that starts it."""

    source: str
    line: int | None
    entry: str
    config_file: str
    config: dict[str, Any]
    words: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def section(self) -> str:
        """The configuration section that holds ``max_num_steps``: grpo, sft, dpo, ppo or distillation."""
        stem = PurePosixPath(self.entry).stem.removeprefix("run_").removeprefix("vlm_")
        return stem.split("_")[0]

    def get(self, key: str, default: Any = None) -> Any:
        """The value at ``key``, or ``default`` where it is missing or cannot be told from files."""
        value = lookup(self.config, key)
        return default if value is ABSENT or isinstance(value, Unresolved) else value

    def number(self, key: str, default: int) -> int:
        """The whole number at ``key``, or ``default``."""
        value = self.get(key, default)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    @property
    def steps(self) -> int | None:
        """The last training step that the run plans."""
        value = self.get(f"{self.section}.max_num_steps")
        return value if isinstance(value, int) else None

    @property
    def nodes(self) -> int:
        """Nodes that the run asks for."""
        return self.number("cluster.num_nodes", 1)

    @property
    def gpus(self) -> int:
        """GPUs that the run asks for, over all nodes."""
        return self.number("cluster.gpus_per_node", 1) * self.nodes


def resolve_script(tree: Tree, script: FunctionalScript, words: Sequence[str]) -> tuple[ResolvedRun, ...]:
    """The runs of a functional script whose configuration can be read, with ``words`` passed on to each."""
    return tuple(
        _resolve(tree, run, (*run.overrides, *words), script.path, run.line)
        for run in script.runs
        if run.config and tree.exists(run.config)
    )


def resolve_entry(tree: Tree, entry: str, config: str, words: Sequence[str]) -> ResolvedRun:
    """The run of an example script. Raises UsageError when the configuration cannot be read."""
    config = config or default_config(tree, entry)
    call = RunCall(line=0, entry=entry, config=config, overrides=())
    return _resolve(tree, call, tuple(words), entry, None)


def _resolve(tree: Tree, run: RunCall, words: tuple[str, ...], source: str, line: int | None) -> ResolvedRun:
    config, problems = apply(inherit.load(tree, run.config), words)
    return ResolvedRun(
        source=source,
        line=line,
        entry=run.entry,
        config_file=run.config,
        config=config,
        words=words,
        problems=tuple(problems),
    )


class CommandRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a step's argv says: a functional script or an entry with its configuration, or test files, and
    words."""

    script: str = ""
    entry: str = ""
    config: str = ""
    words: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    pytest: tuple[str, ...] = ()


def read_argv(argv: Sequence[str]) -> CommandRead:
    """Take a step's argv apart."""
    words = list(argv)
    extras = tuple(words[i + 1] for i, word in enumerate(words[:-1]) if word == "--extra")
    if "pytest" in words:
        return CommandRead(pytest=tuple(words[words.index("pytest") + 1 :]), extras=extras)
    for at, word in enumerate(words):
        if word.endswith(".sh"):
            return CommandRead(script=word, words=tuple(words[at + 1 :]), extras=extras)
        if word.startswith("examples/") and word.endswith(".py"):
            rest = words[at + 1 :]
            config = rest[rest.index("--config") + 1] if "--config" in rest else ""
            own = tuple(item for item in rest if item not in ("--config", config))
            return CommandRead(entry=word, config=config, words=own, extras=extras)
    return CommandRead(extras=extras)


def resolve_argv(tree: Tree, read: CommandRead) -> tuple[ResolvedRun, ...]:
    """The runs of a command. Raises UsageError when a file cannot be read."""
    if read.script and tree.exists(read.script):
        return resolve_script(tree, read_script(tree, read.script), read.words)
    if read.entry and tree.exists(read.entry):
        return (resolve_entry(tree, read.entry, read.config, read.words),)
    return ()
