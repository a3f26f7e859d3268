"""From override words to a checked configuration, and from a configuration to JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proveout_bench.config.model_dir import check_model_dir
from proveout_bench.config.overrides import apply
from proveout_bench.config.schema import GrpoConfig, InitModelConfig, TinyModel
from proveout_bench.errors import ConfigError
from proveout_bench.registry import BACKENDS, ENGINES, TASKS, nearest_name

TENSORBOARD = "tensorboard"


def resolve(words: Iterable[str]) -> GrpoConfig:
    """The configuration that ``words`` ask for, checked as far as possible without loading anything.

    Raises ConfigError for a bad override, combination or model directory, or an output directory that already
    holds the events of another run.
    """
    config = apply(GrpoConfig, words)
    for key, name, known in (
        ("task.name", config.task.name, TASKS),
        ("backend", config.backend, BACKENDS),
        ("rollout.engine", config.rollout.engine, ENGINES),
    ):
        if name not in known:
            raise ConfigError(
                f"key {key!r}: {name!r} is unknown; nearest valid value: {nearest_name(name, known)}"
            )
    _check_combination(config)
    _check_output_dir(config.output_dir)
    if config.model:
        check_model_dir(config.model)
    return config


def resolve_init_model(words: Iterable[str], directory: str) -> InitModelConfig:
    """The tiny model that ``words`` ask for; ConfigError also if ``directory`` already holds a checkpoint."""
    config = apply(InitModelConfig, words)
    _check_shape(config.tiny)
    if (Path(directory) / "config.json").exists():
        raise ConfigError(f"{directory} already holds a config.json; give a fresh directory")
    return config


def open_output(config: GrpoConfig) -> None:
    """Make the output directory with config.json in it, and print the configuration. OSError if it cannot be."""
    folder = Path(config.output_dir)
    (folder / TENSORBOARD).mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(as_json(config) + "\n", encoding="utf-8")
    print(f"Final config:\n{as_json(config)}", flush=True)


def as_json(config: GrpoConfig) -> str:
    """The nested configuration as indented JSON."""
    return json.dumps(as_dict(config), indent=2)


def as_dict(config: GrpoConfig) -> dict[str, Any]:
    """The nested configuration as plain data."""
    return dataclasses.asdict(config)


def _check_combination(config: GrpoConfig) -> None:
    _check_shape(config.tiny)
    samples = config.rollout.prompts * config.rollout.group_size
    if samples % config.loss.minibatch_size:
        raise ConfigError(
            f"loss.minibatch_size={config.loss.minibatch_size} must divide the {samples} samples of a step "
            "(rollout.prompts x rollout.group_size)"
        )


def _check_shape(tiny: TinyModel) -> None:
    if tiny.hidden_size % tiny.heads or (tiny.hidden_size // tiny.heads) % 2:
        raise ConfigError(
            f"tiny.hidden_size={tiny.hidden_size} must be a multiple of tiny.heads={tiny.heads}, "
            "with an even size of each head"
        )
    if tiny.heads % tiny.kv_heads:
        raise ConfigError(f"tiny.heads={tiny.heads} must be a multiple of tiny.kv_heads={tiny.kv_heads}")


def _check_output_dir(text: str) -> None:
    if not text:
        raise ConfigError("output_dir is empty; give a directory to write to")
    folder = Path(text)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"output_dir={text}: is a file, not a directory")
    events = folder / TENSORBOARD
    if events.is_dir() and any(events.glob("*tfevents*")):
        raise ConfigError(
            f"output_dir={text}: {TENSORBOARD}/ already holds the events of another run, and two runs in one "
            "directory cannot be told apart; give a fresh directory"
        )
