"""A converted checkpoint that NeMo-RL would reuse, so that Bridge's import is not exercised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proveout.assets import places
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import Check, warning

FORCE = "policy.megatron_cfg.force_reconvert_from_hf"


def applies(context: PreflightContext) -> bool:
    """NeMo-RL with a known model, and no order to convert again."""
    words = [word.lstrip("+").lower() for command in context.commands("nemo-rl") for word in command.argv]
    return "nemo-rl" in context.wanted and bool(context.model) and f"{FORCE}=true" not in words


def cached(context: PreflightContext) -> Iterator[Path]:
    """Converted checkpoints of the model: NeMo-RL's name for it, and those with overrides hashed into it."""
    model = context.model or ""
    name = f"model_{model.replace('/', '_')}" if Path(model).exists() else model
    root = places.conversion_cache(context.environment("nemo-rl"))
    for place in (root / name, *root.glob(f"{name}__hfovr_*")):
        if (place / "iter_0000000").exists():
            yield place / "iter_0000000"


def run(context: PreflightContext) -> Iterator[Finding]:
    """One finding for each converted checkpoint of the model."""
    for place in cached(context):
        yield warning(
            "conversion-cache.reused",
            f"{context.model} was converted before: NeMo-RL skips the import, a change to it is not tested",
            where=Where(file=str(place)),
            remedy=f"add {FORCE}=true, or set NRL_MEGATRON_CHECKPOINT_DIR to a fresh directory",
        )


CHECK = Check(
    id="conversion-cache",
    proves="NeMo-RL will convert the model with the Bridge under test, not reuse an earlier conversion",
    remedy=f"{FORCE}=true, or a fresh NRL_MEGATRON_CHECKPOINT_DIR",
    applies=applies,
    run=run,
)
