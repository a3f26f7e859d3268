"""verl's Megatron wrapper read as text: its variables with defaults, and the overrides that it would pass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from proveout.domain.config import hydra
from proveout.domain.config.overrides import Problem
from proveout.domain.step import ATTEMPT_DIR
from proveout.domain.tree import Tree
from proveout.loops.shell import read

_DEFAULTED = re.compile(r"\$\{([A-Z][A-Z0-9_]*):?-([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_USE = re.compile(r"\$\{?([A-Z][A-Z0-9_]*)")
_SELF = re.compile(r"^\s*(?:export\s+)?([A-Z][A-Z0-9_]*)=\$\{\1:?-", re.MULTILINE)
_PREPEND = re.compile(r"export PYTHONPATH=[\"']?(/[^:$\"']+)")
_MODULE = re.compile(r"-m\s+(verl\.[\w.]+)")
_PLACE = "ATTEMPT"
"""Stands for the attempt directory while words are read: braces have a meaning in override values."""
_COMMON = frozenset({"HOME", "PATH", "PYTHONPATH", "USER"})


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """One launch script.

    ``defaults`` maps a variable to its default as text; ``unused`` are variables that it sets and never uses;
    ``prepends`` are paths that it puts in front of PYTHONPATH; ``overrides`` what it passes on under an
    environment.
    """

    path: str
    defaults: dict[str, str]
    unused: tuple[str, ...]
    prepends: tuple[str, ...]
    overrides: tuple[str, ...]
    config_name: str
    passes_words: bool


def read_wrapper(tree: Tree, relative: str, env: Mapping[str, str]) -> Wrapper:
    """The wrapper under ``env``. Raises UsageError when it cannot be read."""
    key = ("wrapper", f"{relative} {sorted(env.items())}")
    if key not in tree.kept:
        tree.kept[key] = _read(tree, relative, env)
    wrapper: Wrapper = tree.kept[key]
    return wrapper


def _read(tree: Tree, relative: str, env: Mapping[str, str]) -> Wrapper:
    text = tree.text(relative)
    script = read(
        text, {"HOME": "HOME", **{name: value for name, value in env.items() if name != "PYTHONPATH"}}
    )
    overrides: list[str] = []
    config_name = ""
    for command in script.commands:
        words = list(command.words)
        if not any(_MODULE.search(f"-m {word}") for word in words) or command.words[0] in ("cd", "echo"):
            continue
        if config_name or overrides:
            break
        config_name = next((w.partition("=")[2] for w in words if w.startswith("--config-name")), "")
        start = next(i for i, word in enumerate(words) if word.startswith("verl.")) + 1
        overrides = [word for word in words[start:] if "=" in word and not word.startswith("--")]
    defaults = {name: default for name, default in _DEFAULTED.findall(text) if name not in _COMMON}
    uses = Counter(_USE.findall(text))
    unused = tuple(name for name in _SELF.findall(text) if uses[name] < 2)
    return Wrapper(
        path=relative,
        defaults=defaults,
        unused=unused,
        prepends=tuple(_PREPEND.findall(text)),
        overrides=tuple(overrides),
        config_name=config_name.removesuffix(".yaml"),
        passes_words='"$@"' in text or "$@" in text,
    )


class ResolvedRun(msgspec.Struct, kw_only=True):
    """The configuration that a launch would give to verl's trainer, and what is wrong with its overrides."""

    config: dict[str, object]
    problems: tuple[Problem, ...]
    words: tuple[str, ...]


def resolve(
    tree: Tree, wrapper: Wrapper, words: Sequence[str], config_dir: str, config_name: str
) -> ResolvedRun:
    """Compose the trainer's configuration with the wrapper's overrides and ``words`` after them.

    Raises UsageError when the configuration tree cannot be read.
    """
    every = tuple(word.replace(ATTEMPT_DIR, _PLACE) for word in (*wrapper.overrides, *words))
    config, problems = hydra.compose(tree, config_dir, wrapper.config_name or config_name, every)
    return ResolvedRun(config=config, problems=tuple(problems), words=every)
