"""Which features of the loop go together. Each rule says what was asked for, and what would do."""

from __future__ import annotations

from collections.abc import Iterator

from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import ConfigError

HF = "hf"


def check(config: RunConfig) -> None:
    """Raise ConfigError for the first combination that does not run."""
    for complaint in _complaints(config):
        raise ConfigError(complaint)


def _complaints(config: RunConfig) -> Iterator[str]:
    yield from _of_backend(config)
    yield from _of_ranks(config)


def _of_backend(config: RunConfig) -> Iterator[str]:
    if config.backend == HF:
        return
    asked = {
        f"runtime.ranks={config.runtime.ranks}": config.runtime.ranks > 1,
        f"runtime.tp={config.runtime.tp}": config.runtime.tp > 1,
        f"dynamic_batching.train_mb_tokens={config.dynamic_batching.train_mb_tokens}": bool(
            config.dynamic_batching.train_mb_tokens
        ),
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
