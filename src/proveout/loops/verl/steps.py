"""Variants -> steps: the wrapper's environment and words in this checkout, what it must leave, how it is
judged."""

from __future__ import annotations

import os
from typing import Any

from proveout.domain.checkout import compose_pythonpath, import_roots
from proveout.domain.errors import UsageError, nearest
from proveout.domain.loop import LoopContext
from proveout.domain.step import (
    ATTEMPT_DIR,
    Artifact,
    Command,
    Coverage,
    Criterion,
    Resources,
    Source,
    Step,
)
from proveout.domain.tree import Tree
from proveout.loops.criteria import provenance
from proveout.loops.verl.variants import Variant, table
from proveout.loops.verl.wrapper import Wrapper, read_wrapper, resolve

NAME = "verl"
OPTIONS = {
    "reward_model": "on or off: whether the wrapper's reward model is served",
    "enforce_eager": "true: no CUDA graphs in vLLM",
    "pythonpath": "what stands on PYTHONPATH already",
}
_WORKER_PATH = "++ray_kwargs.ray_init.runtime_env.env_vars.PYTHONPATH"
_GRADIENTS = 'min(data["actor/grad_norm"]) > 0'


def build(variant: Variant, context: LoopContext, tree: Tree) -> Step:
    """The step of one variant. What cannot run here is a step with a reason for being skipped."""
    path = variant.script or table().wrapper
    substitutions: tuple[str, ...] = ()
    if variant.unsupported:
        return _skipped(variant, variant.unsupported)
    if not tree.exists(path):
        stand_in = "" if variant.script else tree.nearest(path, ["tests/special_e2e/*megatron*.sh"])
        if not stand_in:
            return _skipped(variant, f"{path} does not exist in this checkout")
        substitutions = (f"{path} does not exist in this checkout: {stand_in} stands in for it",)
        path = stand_in
    if variant.dummy and not _dummy_config(variant, context):
        return _skipped(
            variant, "a dummy model needs DUMMY_MODEL_CONFIG_PATH (--set DUMMY_MODEL_CONFIG_PATH=FILE)"
        )
    missing = [name for name in variant.requires if name not in {*context.options, *os.environ}]
    if missing:
        return _skipped(variant, f"{path} needs {', '.join(missing)} (--set {missing[0]}=VALUE)")
    env = _environment(variant, context)
    words = _words(variant, context, env)
    try:
        wrapper = read_wrapper(tree, path, env)
        config = resolve(tree, wrapper, words, table().config_dir, table().config_name).config
    except UsageError as error:
        return _skipped(variant, str(error))
    return _step(variant, context, tree, wrapper, env, words, config, substitutions)


def _step(  # noqa: PLR0917 - all that was read of one variant
    variant: Variant,
    context: LoopContext,
    tree: Tree,
    wrapper: Wrapper,
    env: dict[str, str],
    words: tuple[str, ...],
    config: dict[str, Any],
    substitutions: tuple[str, ...],
) -> Step:
    trainer = config.get("trainer", {})
    gpus = _count(trainer.get("n_gpus_per_node"), variant.gpus or 1)
    nodes = _count(trainer.get("nnodes"), 1)
    short = (
        f"needs {gpus * nodes} GPUs, and --gpus says {context.gpus}"
        if 0 < context.gpus < gpus * nodes
        else ""
    )
    checkpoints = _checkpoints(variant)
    artifacts = (
        (
            Artifact(path=f"{checkpoints}/global_step_{variant.saves}/actor", what="saved actor"),
            Artifact(
                path=f"{checkpoints}/latest_checkpointed_iteration.txt", what="tracker of the last checkpoint"
            ),
        )
        if variant.saves
        else ()
    )
    expected = (
        {}
        if variant.script
        else {
            "actor_rollout_ref.actor.megatron.use_mbridge": True,
            "actor_rollout_ref.actor.megatron.vanilla_mbridge": False,
        }
    )
    criteria = [Criterion(kind=item.kind, params=_related(item, variant)) for item in variant.criteria]
    criteria += [
        Criterion(kind="log", params={"excludes": ["The legacy mbridge backend selected by"]}),
        Criterion(kind="checks", params={"expressions": [_GRADIENTS]}),
        *provenance(context, NAME),
    ]
    if expected or variant.backend:
        criteria.append(Criterion(kind="backend", params={"expected": {**expected, **variant.backend}}))
    return Step(
        id=f"{NAME}-L{variant.level}-{variant.name}",
        coverage=Coverage(loop=NAME, level=variant.level, variant=variant.name),
        deliverable=f"verl: {variant.title}",
        claim=variant.claim,
        command=Command(
            argv=("bash", wrapper.path, *words), env=env, unset=("ROCR_VISIBLE_DEVICES",), cwd=str(tree.root)
        ),
        resources=Resources(
            gpus=gpus * nodes,
            nodes=nodes,
            minutes=variant.minutes,
            timeout_minutes=variant.timeout or max(60.0, 4 * variant.minutes),
        ),
        planned_steps=_count(trainer.get("total_training_steps"), 0) or None,
        artifacts=artifacts,
        metrics=(Source(format="verl-console", path="run.log"),),
        config=Source(format="verl-console", path="run.log"),
        criteria=tuple(criteria),
        limitations=(*variant.limitations, *_limitations(variant, context, env, config)),
        needs=(f"{NAME}-L{variant.level}-{variant.needs}",) if variant.needs else (),
        skip_reason=short,
        substitutions=substitutions,
    )


def _environment(variant: Variant, context: LoopContext) -> dict[str, str]:
    roots = import_roots(context.checkouts, NAME)
    path = compose_pythonpath(roots, context.options.get("pythonpath", os.environ.get("PYTHONPATH", "")))
    chosen = {name: value for name, value in context.options.items() if name.isupper()}
    base = {} if variant.script else dict(table().base)
    env = {**base, **variant.env}
    if not variant.script and "NUM_GPUS" not in variant.env and context.gpus == 1:
        env["NUM_GPUS"] = "1"
    if context.model and not variant.own_model:
        env |= _model(context.model)
    if variant.dummy:
        env["DUMMY_MODEL_CONFIG_PATH"] = _dummy_config(variant, context)
    return {**env, **chosen, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


def _model(model: str) -> dict[str, str]:
    if model.startswith(("/", "~")):
        return {"MODEL_PATH": model, "MODEL_ID": model.rstrip("/").rpartition("/")[2]}
    return {"MODEL_ID": model}


def _dummy_config(variant: Variant, context: LoopContext) -> str:
    return context.options.get("DUMMY_MODEL_CONFIG_PATH", variant.dummy_config)


def _words(variant: Variant, context: LoopContext, env: dict[str, str]) -> tuple[str, ...]:
    words = [
        f"trainer.default_local_dir={_checkpoints(variant)}",
        f"hydra.run.dir={ATTEMPT_DIR}/hydra",
        f"{_WORKER_PATH}={env['PYTHONPATH']}",
        *variant.overrides,
    ]
    if context.options.get("reward_model") == "off" and not variant.script:
        words.append("reward.reward_model.enable=False")
    if context.options.get("enforce_eager") == "true":
        words.append("actor_rollout_ref.rollout.enforce_eager=True")
    return (*words, *context.overrides)


def _checkpoints(variant: Variant) -> str:
    """A directory of its own for every variant, beside the attempts where two variants share one."""
    if variant.share:
        return f"{ATTEMPT_DIR}/../{NAME}-L{variant.level}-{variant.share}-checkpoints"
    return f"{ATTEMPT_DIR}/checkpoints"


def _related(criterion: Criterion, variant: Variant) -> dict[str, Any]:
    if criterion.kind == "resume_parity" and variant.needs:
        return {**criterion.params, "saved": f"{NAME}-L{variant.level}-{variant.needs}"}
    return criterion.params


def _limitations(
    variant: Variant, context: LoopContext, env: dict[str, str], config: dict[str, Any]
) -> list[str]:
    found = []
    reward = config.get("reward", {}).get("reward_model", {})
    if reward.get("enable") is False and not variant.script:
        found.append(
            "the reward model was off: rewards came from rules, and serving a reward model was not exercised"
        )
    if config.get("actor_rollout_ref", {}).get("rollout", {}).get("enforce_eager") is True:
        found.append("enforce_eager=True: vLLM's CUDA graphs were not exercised")
    model = f"{env.get('MODEL_ID', '')} {env.get('MODEL_PATH', '')}".lower()
    if env.get("COMMON_EP", "1") == "1" and any(
        word in model for word in ("moe", "a3b", "deepseek-v", "moonlight")
    ):
        found.append("EP=1: experts were not spread over GPUs")
    if any(word in model for word in ("-vl", "omni", "audio")) and not variant.script:
        found.append("GSM8K is text: image, video and audio paths were not exercised")
    if context.model and variant.own_model:
        found.append(f"{variant.title} ran with its own model, not with {context.model}")
    return found


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _skipped(variant: Variant, reason: str) -> Step:
    return Step(
        id=f"{NAME}-L{variant.level}-{variant.name}",
        coverage=Coverage(loop=NAME, level=variant.level, variant=variant.name),
        deliverable=f"verl: {variant.title}",
        claim=variant.claim,
        command=Command(argv=()),
        resources=Resources(gpus=variant.gpus, minutes=variant.minutes),
        skip_reason=reason,
    )


def check_options(context: LoopContext, wrapper: Wrapper) -> None:
    """Raise UsageError for an option that is none, or a wrapper variable that this checkout's wrapper
    does not have."""
    from proveout.loops.verl.variants import known, required

    for name in context.options:
        if not name.isupper():
            if name not in OPTIONS:
                raise UsageError(
                    f"loop {NAME} has no option {name!r}{nearest(name, OPTIONS)}",
                    remedy=f"options: {', '.join(OPTIONS)}, or a variable of the wrapper in capitals",
                )
        elif name not in {*wrapper.defaults, *known().known, *required()}:
            now = known().renames.get(name)
            raise UsageError(
                f"{wrapper.path} has no variable {name}{nearest(name, wrapper.defaults)}",
                remedy=f"now: {now}" if now else "its variables are listed at its top",
            )
