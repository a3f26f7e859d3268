"""From override words to a checked configuration, and from a configuration to JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proveout_bench.checkpoint.find import check_resume
from proveout_bench.config import features
from proveout_bench.config.model_dir import check_model_dir
from proveout_bench.config.overrides import apply
from proveout_bench.config.schema import GrpoConfig, InitModelConfig, RunConfig, SftConfig, TinyModel
from proveout_bench.errors import ConfigError
from proveout_bench.faults.names import NAMES
from proveout_bench.registry import BACKENDS, CONFIGS, ENGINES, LIMITS, TASKS, load, nearest_name

TENSORBOARD = "tensorboard"


def resolve(words: Iterable[str], algorithm: str = "grpo") -> Any:
    """The configuration of ``algorithm`` that ``words`` ask for, checked as far as possible without loading
    anything: a RunConfig of the algorithm's own.

    Raises ConfigError for a bad override, combination, model or checkpoint directory, or an output directory
    that already holds the events of another run.
    """
    schema: type[RunConfig] = load(CONFIGS, algorithm)
    config = apply(schema, words)
    for key, name, known in (
        ("task.name", config.task.name, TASKS),
        ("backend", config.backend, BACKENDS),
        ("rollout.engine", config.rollout.engine, ENGINES),
        ("fault.inject", config.fault.inject, ("", *NAMES)),
    ):
        if name not in known:
            raise ConfigError(
                f"key {key!r}: {name!r} is unknown; nearest valid value: {nearest_name(name, known)}"
            )
    _check_combination(config)
    features.check(config)
    _check_output_dir(config)
    _check_export(config.export)
    check_resume(config)
    if config.model:
        check_model_dir(config.model)
    if config.backend in LIMITS:
        load(LIMITS, config.backend)(config)
    return config


def resolve_init_model(words: Iterable[str], directory: str) -> InitModelConfig:
    """The tiny model that ``words`` ask for; ConfigError also if ``directory`` already holds a checkpoint."""
    config = apply(InitModelConfig, words)
    _check_shape(config.tiny)
    if (Path(directory) / "config.json").exists():
        raise ConfigError(f"{directory} already holds a config.json; give a fresh directory")
    return config


def open_output(config: RunConfig) -> None:
    """Make the output directory with config.json in it, and print the configuration. OSError if it cannot be."""
    folder = Path(config.output_dir)
    (folder / TENSORBOARD).mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(as_json(config) + "\n", encoding="utf-8")
    print(f"Final config:\n{as_json(config)}", flush=True)


def as_json(config: RunConfig) -> str:
    """The nested configuration as indented JSON."""
    return json.dumps(as_dict(config), indent=2)


def as_dict(config: RunConfig) -> dict[str, Any]:
    """The nested configuration as plain data."""
    return dataclasses.asdict(config)


def _check_combination(config: RunConfig) -> None:
    _check_shape(config.tiny)
    if config.lora.rank and not config.lora.targets.strip(", "):
        raise ConfigError("lora.targets is empty; name the ends of the module names that get an adapter")
    if isinstance(config, GrpoConfig):
        samples = config.rollout.prompts * config.rollout.group_size
        if samples % config.loss.minibatch_size:
            raise ConfigError(
                f"loss.minibatch_size={config.loss.minibatch_size} must divide the {samples} samples of a step "
                "(rollout.prompts x rollout.group_size)"
            )
    if isinstance(config, SftConfig) and config.rollout.temperature != 1.0:
        raise ConfigError(
            f"rollout.temperature={config.rollout.temperature}: sft trains and validates at temperature 1"
        )
    if isinstance(config, SftConfig) and config.sft.examples < config.sft.batch_size:
        raise ConfigError(
            f"sft.batch_size={config.sft.batch_size} is more than the sft.examples={config.sft.examples} there are"
        )


def _check_shape(tiny: TinyModel) -> None:
    if tiny.hidden_size % tiny.heads or (tiny.hidden_size // tiny.heads) % 2:
        raise ConfigError(
            f"tiny.hidden_size={tiny.hidden_size} must be a multiple of tiny.heads={tiny.heads}, "
            "with an even size of each head"
        )
    if tiny.experts and tiny.family != "qwen2":
        raise ConfigError(
            f"tiny.family={tiny.family} with tiny.experts: the mixture of experts is Qwen3's alone"
        )
    if tiny.heads % tiny.kv_heads:
        raise ConfigError(f"tiny.heads={tiny.heads} must be a multiple of tiny.kv_heads={tiny.kv_heads}")


def _check_output_dir(config: RunConfig) -> None:
    text = config.output_dir
    if not text:
        raise ConfigError("output_dir is empty; give a directory to write to")
    folder = Path(text)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"output_dir={text}: is a file, not a directory")
    events = folder / TENSORBOARD
    if config.resume == "never" and events.is_dir() and any(events.glob("*tfevents*")):
        raise ConfigError(
            f"output_dir={text}: {TENSORBOARD}/ already holds the events of another run, and two runs in one "
            "directory cannot be told apart; give a fresh directory"
        )


def _check_export(text: str) -> None:
    if text and (Path(text) / "config.json").exists():
        raise ConfigError(f"export={text}: already holds a config.json; give a fresh directory")
