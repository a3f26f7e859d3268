"""Files of earlier runs in the checkouts, which a loop would read, resume from, or mix with its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proveout.assets import places
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import Check, warning
from proveout.preflight.loops import wants

VERL_MODEL = "Qwen/Qwen2.5-0.5B"


def run(context: PreflightContext) -> Iterator[Finding]:
    """NeMo-RL's numbered experiments, verl's shared checkpoint directory, verl's dummy model."""
    if "nemo-rl" in context.wanted:
        yield from _nemo_rl(context)
    if "verl" in context.wanted:
        yield from _verl(context)


def _nemo_rl(context: PreflightContext) -> Iterator[Finding]:
    checkout = context.checkouts.get("nemo-rl")
    if not checkout:
        return
    scripts = {Path(word).stem for command in context.commands("nemo-rl") for word in command.argv}
    roots = [Path(checkout) / "logs", *(Path(checkout) / "tests" / "functional" / name for name in scripts)]
    for root in roots:
        old = sorted(str(path) for path in (*root.glob("exp_*"), *root.glob("logs/exp_*")))
        if old:
            yield warning(
                "leftovers.experiments",
                f"{len(old)} earlier experiments lie there; a metric dump of the directory merges them",
                where=Where(file=str(root)),
                remedy="remove them, or give logger.log_dir a fresh directory",
            )


def _verl(context: PreflightContext) -> Iterator[Finding]:
    env = context.environment("verl")
    model_id = env.get("MODEL_ID", VERL_MODEL)
    checkout = context.checkouts.get("verl")
    name = f"{model_id.rsplit('/', 1)[-1].lower()}-megatron-gsm8k-minimal"
    saved = Path(checkout or "") / "checkpoints" / "verl-test" / name
    if checkout and saved.is_dir() and any(saved.iterdir()):
        resumes = env.get("RESUME_MODE", "disable") != "disable"
        doing = "it would be resumed from" if resumes else "all variants share this directory"
        yield warning(
            "leftovers.checkpoint",
            f"checkpoints of an earlier run lie there: {doing}",
            where=Where(file=str(saved)),
            remedy="remove it, or give trainer.default_local_dir a fresh directory",
        )
    dummy = Path(env.get("DUMMY_MODEL_PATH") or places.home(env) / "dummy_models" / model_id)
    if env.get("USE_DUMMY_MODEL", "False") == "True" and dummy.exists():
        yield warning(
            "leftovers.dummy-model",
            "the dummy model exists already, and verl reuses it whatever its configuration is",
            where=Where(file=str(dummy), key="DUMMY_MODEL_PATH"),
            remedy="remove it, or name another DUMMY_MODEL_PATH",
        )


CHECK = Check(
    id="leftovers",
    proves="no experiment, checkpoint or dummy model of an earlier run would be read by this one",
    remedy="remove what is left over, or point the run at fresh directories",
    applies=wants("nemo-rl", "verl"),
    run=run,
)
