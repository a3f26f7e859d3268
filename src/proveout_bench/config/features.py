"""Which features of the loop go together. Each rule says what was asked for, and what would do."""

from __future__ import annotations

from collections.abc import Iterator

from proveout_bench.config.schema import PpoConfig, RunConfig, SftConfig
from proveout_bench.errors import ConfigError

HF, DIALOGUE, COLOUR = "hf", "dialogue", "colour"


def check(config: RunConfig) -> None:
    """Raise ConfigError for the first combination that does not run."""
    for complaint in _complaints(config):
        raise ConfigError(complaint)


def _complaints(config: RunConfig) -> Iterator[str]:
    yield from _of_backend(config)
    yield from _of_ranks(config)
    yield from _of_lag(config)
    yield from _of_tasks(config)


def _of_backend(config: RunConfig) -> Iterator[str]:
    if config.backend == HF:
        return
    asked = {
        f"runtime.ranks={config.runtime.ranks}": config.runtime.ranks > 1,
        f"runtime.tp={config.runtime.tp}": config.runtime.tp > 1,
        f"dynamic_batching.train_mb_tokens={config.dynamic_batching.train_mb_tokens}": bool(
            config.dynamic_batching.train_mb_tokens
        ),
        f"tiny.image_size={config.tiny.image_size}": bool(config.tiny.image_size),
        f"rollout.lag={config.rollout.lag}": bool(config.rollout.lag),
    }
    for what, given in asked.items():
        if given:
            yield f"{what}: only backend {HF} has it; backend {config.backend} has keys of its own"


def _of_ranks(config: RunConfig) -> Iterator[str]:
    tp, tiny = config.runtime.tp, config.tiny
    if tp == 1:
        return
    if config.runtime.ranks > 1:
        yield f"runtime.tp={tp} with runtime.ranks={config.runtime.ranks}: backend hf does one of the two at a time"
    if config.lora.rank:
        yield f"runtime.tp={tp} with lora.rank={config.lora.rank}: tensor parallel training is of all weights"
    if config.model:
        return
    if tiny.experts:
        yield f"runtime.tp={tp} with tiny.experts={tiny.experts}: experts are not sharded by backend hf"
    for name in ("heads", "kv_heads", "intermediate_size"):
        if getattr(tiny, name) % tp:
            yield f"runtime.tp={tp} must divide tiny.{name}={getattr(tiny, name)}"


def _of_lag(config: RunConfig) -> Iterator[str]:
    if not config.rollout.lag:
        return
    lag = f"rollout.lag={config.rollout.lag}"
    if isinstance(config, SftConfig):
        yield f"{lag}: sft samples nothing while it trains"
    if config.rollout.engine != "process":
        yield f"{lag} needs rollout.engine=process: another engine cannot sample while the policy trains"
    if config.runtime.ranks * config.runtime.tp > 1:
        yield f"{lag} with several ranks: only one rank rolls out a step ahead"
    if config.checkpoint.every or config.resume != "never":
        yield f"{lag} with a checkpoint: what is being sampled would not be in it"
    if config.task.name in (DIALOGUE, COLOUR):
        yield f"{lag} with task.name={config.task.name}: only single turns of text are sampled a step ahead"


def _of_tasks(config: RunConfig) -> Iterator[str]:
    name, size = config.task.name, config.tiny.image_size
    if name == DIALOGUE and (isinstance(config, SftConfig | PpoConfig)):
        yield "task.name=dialogue is for grpo: ppo and sft take a response for one answer"
    if (name == COLOUR) != bool(size):
        yield f"task.name={name} with tiny.image_size={size}: task colour needs images, and no other task has any"
    if not size:
        return
    if config.model or config.export:
        yield f"tiny.image_size={size}: a vision-language model is built here alone, and not exported"
    if size % 8 or config.tiny.vocab_multiple > 1 or config.tiny.experts:
        yield f"tiny.image_size={size} must be a multiple of 8, without tiny.vocab_multiple and tiny.experts"
    if config.rollout.prefix_cache or config.runtime.tp > 1 or config.lora.rank:
        yield f"tiny.image_size={size} with rollout.prefix_cache, runtime.tp or lora.rank: none of them knows of images"
    if isinstance(config, SftConfig | PpoConfig):
        yield f"tiny.image_size={size}: only grpo takes images"
