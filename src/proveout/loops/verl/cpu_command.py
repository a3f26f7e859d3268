"""How a variant of platform cpu is started: words, environment, model and data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from proveout.domain.checkout import compose_pythonpath, import_roots
from proveout.domain.errors import BlockedError, UsageError, nearest
from proveout.domain.loop import LoopContext
from proveout.domain.step import ATTEMPT_DIR, Command
from proveout.loops.own_model import own_model
from proveout.loops.verl.cpu_table import Variant, table
from proveout.loops.verl.variants import table as gpu_table
from proveout.stacks.place import installed, root
from proveout.stacks.shipped import platform_path

NAME, STACK, PLATFORM, STARTER = "verl", "verl-cpu", "cpu", "proveout_cpu.verl.start"
PLUGIN = "proveout_cpu.verl.plugin"
WRAPPER = {"VERL_USE_UV": "0", "ENGINE": "hf", "USE_REMOVE_PADDING": "True", "SKIP_SAVE_HF_MODEL": "1"}
"""Variables of verl's wrapper that differ from those of a run on GPUs."""
TOTAL = "trainer.total_training_steps"
FAMILIES = ("qwen2", "qwen3", "llama", "qwen3-moe")
ENGINES = ("actor_rollout_ref.actor.megatron", "actor_rollout_ref.ref.megatron", "critic.megatron")


def command(variant: Variant, context: LoopContext) -> Command:
    """The wrapper of the verl checkout where one is given, else verl's trainer itself; the same words for both.

    Raises BlockedError where the stack is not installed, UsageError for a family that has no tiny model.
    """
    interpreter, kind = python(context), family(context, variant.family)
    mine = "" if variant.family else own_model(context)
    assets = f"{ATTEMPT_DIR}/../../assets/{'data' if mine else kind}-{context.seed}"
    start = (interpreter, "-m", STARTER, assets, "-" if mine else kind, str(context.seed), "--")
    env = _environment(context, interpreter)
    program: tuple[str, ...] = (interpreter, "-W", "ignore", "-m", "verl.trainer.main_ppo")
    if script := wrapper(context):
        program, env = ("bash", script), {**env, **gpu_table().base, **WRAPPER, "NUM_GPUS": str(variant.gpus)}
    words = words_of(variant, context, mine or f"{assets}/model", assets)
    return Command(argv=(*start, *program, *words), env=env, unset=("RAY_ADDRESS",))


def wrapper(context: LoopContext) -> str:
    """verl's own launch script in the checkout; '' without a checkout that has it."""
    script = f"{context.checkouts.get(NAME, '')}/{gpu_table().wrapper}"
    return script if NAME in context.checkouts and Path(script).is_file() else ""


def words_of(variant: Variant, context: LoopContext, model: str, assets: str) -> tuple[str, ...]:
    """The overrides of verl's configuration, the user's last."""
    fields = {
        "assets": assets,
        "model": model,
        "platform": str(platform_path(root(os.environ))),
        "seed": str(context.seed + 1),
        "gpus": str(variant.gpus),
    }
    words = [_fill(word, fields) for word in _words(variant)]
    words += [
        f"{TOTAL}={variant.steps}",
        f"trainer.default_local_dir={checkpoints(variant)}",
        f"hydra.run.dir={ATTEMPT_DIR}/hydra",
    ]
    if variant.from_:
        saved = f"{_shared(variant.level, variant.from_.variant)}/global_step_{variant.from_.step}"
        words += ["trainer.resume_mode=resume_path", f"trainer.resume_from_path={saved}"]
    return (*words, *context.overrides)


def planned(variant: Variant, context: LoopContext) -> int:
    """The last step, as the variant says it or the user's last word on it."""
    said = [word.partition("=")[2] for word in context.overrides if word.lstrip("+").startswith(f"{TOTAL}=")]
    return int(said[-1]) if said and said[-1].isdecimal() else variant.steps


def checkpoints(variant: Variant) -> str:
    """A directory of the attempt's own, or beside the attempts where another step resumes from it."""
    resumed = any(
        v.from_ and (v.level, v.from_.variant) == (variant.level, variant.name) for v in table().variants
    )
    return _shared(variant.level, variant.name) if resumed else f"{ATTEMPT_DIR}/checkpoints"


def _shared(level: int, name: str) -> str:
    return f"{ATTEMPT_DIR}/../{NAME}-L{level}-{name}-checkpoints"


def _words(variant: Variant) -> Iterator[str]:
    shared = table()
    yield f"algorithm.adv_estimator={'gae' if variant.critic else 'grpo'}"
    yield from shared.base
    yield from shared.critic if variant.critic else ()
    for engine in ENGINES[: 3 if variant.critic else 2]:
        more = shared.experts if variant.experts else ()
        yield from (word.replace("{engine}", engine) for word in (*shared.engine, *more))
        yield from (f"{engine}.{size}={value}" for size, value in variant.sizes.items())
    yield from variant.words


def _fill(word: str, fields: dict[str, str]) -> str:
    for name, value in fields.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _environment(context: LoopContext, interpreter: str) -> dict[str, str]:
    """The checkouts before the wheels. No bytecode is written into them: compiling their modules costs each process a
    second or so, where a place of its own for bytecode would have every module of the stack compiled again."""
    stacks = root(os.environ)
    platform = platform_path(stacks)
    roots = import_roots(context.checkouts, NAME)
    present = {module: place for module, place in roots.items() if Path(place, *module.split(".")).is_dir()}
    return {
        "PATH": f"{Path(interpreter).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": compose_pythonpath(
            {**present, "proveout_cpu": str(platform)}, context.options.get("pythonpath", "")
        ),
        **({"PYTHONDONTWRITEBYTECODE": "1"} if present else {}),
        "PYTHONUNBUFFERED": "1",
        "PROVEOUT_EVIDENCE": ATTEMPT_DIR,
        "PROVEOUT_TINY_MODELS": str(stacks / "models" / platform.name),
        "PROVEOUT_CPU_ANSWER_PROBE": "1",
        "VERL_PLATFORM": PLATFORM,
        "VERL_USE_EXTERNAL_MODULES": ",".join(filter(None, (PLUGIN, context.options.get("modules")))),
        "VERL_ENGINE_DEVICE": "cuda",
        "TORCHDYNAMO_DISABLE": "1",
        "TORCH_COMPILE_DISABLE": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }


def python(context: LoopContext) -> str:
    """The interpreter that runs verl: as named, else the stack's. Raises BlockedError where there is none."""
    if named := context.options.get("python"):
        return str(Path(named).expanduser().absolute())
    place = installed(STACK, os.environ)
    if place is None:
        raise BlockedError(
            f"stack {STACK} is not installed",
            where=str(root(os.environ) / STACK),
            remedy=f"proveout stack install {STACK}",
        )
    return str(place.python)


def family(context: LoopContext, of_variant: str) -> str:
    """The tiny model's family: the variant's own, else as named, else nearest to the plan's model, else the first.

    Raises UsageError for a family that has none.
    """
    named = of_variant or context.options.get("family", "")
    if named:
        if named not in FAMILIES:
            raise UsageError(
                f"no tiny model of family {named!r}{nearest(named, FAMILIES)}",
                remedy=f"known: {', '.join(FAMILIES)}",
            )
        return named
    return of_model(context.model or "") or FAMILIES[0]


def of_model(model: str) -> str:
    """The family whose tiny model is nearest to a model's name on the hub; '' where none is."""
    name = model.lower()
    for words, kind in (
        (("qwen3", "a3b"), "qwen3-moe"),
        (("qwen3-",), "qwen3"),
        (("qwen2",), "qwen2"),
        (("llama",), "llama"),
    ):
        if all(word in name for word in words):
            return kind
    return ""
