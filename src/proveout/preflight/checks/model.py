"""The model: on this disk, whole, allowed, loadable; and the reward model that verl starts by default."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.resources import files

from proveout.assets import offline, places, snapshot
from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext, Worker
from proveout.preflight import interpreters, limits, probe, workers
from proveout.preflight.check import Check, Cost, blocked, warning

FETCH = "proveout model fetch {model} --to DIR"
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
REWARD_OFF = "reward.reward_model.enable=false"
REWARD_DEFAULT = "models/Skywork/Skywork-Reward-V2-Llama-3.2-1B"


def _present(context: PreflightContext, model: str, id_: str, what: str) -> Iterator[Finding]:
    found = snapshot.inspect(model, places.hf_hub(context.env))
    hub = snapshot.is_hub_name(model)
    for problem in found.problems:
        absent = problem.fault is snapshot.Fault.ABSENT
        waits = absent and hub and not offline.says(context.env)
        say = warning if waits else blocked
        yield say(
            f"{id_}.{problem.fault}",
            f"{what} {model}: {problem.what}" + ("; each worker would fetch it" if waits else ""),
            where=Where(file=problem.path),
            remedy=FETCH.format(model=model) if hub else "fetch or copy it again, with all its files",
        )


def _snapshot(context: PreflightContext) -> Iterator[Finding]:
    yield from _present(context, context.model or "", "snapshot", "model")


def _worker(context: PreflightContext) -> Worker | None:
    """The first worker that has transformers."""
    for worker in workers.of_run(context):
        try:
            if interpreters.report(context, worker)["packages"]["transformers"]:
                return worker
        except BlockedError:
            continue
    return None


def _loads(context: PreflightContext) -> Iterator[Finding]:
    worker = _worker(context)
    if worker is None:
        raise BlockedError("no worker's interpreter has transformers")
    path = snapshot.find(context.model or "", places.hf_hub(context.env))
    if path is None:
        return  # the snapshot check says so
    env = interpreters.environment(context, worker)
    answer = probe.ask(
        "load_model",
        (workers.program(worker, env), *worker.argv[1:]),
        {"path": str(path), "weights": limits.text(context, "model.load") == "weights"},
        env=env | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
        timeout=limits.number(context, "model.seconds"),
    )
    for part, error in answer["errors"].items():
        yield blocked(
            f"snapshot-loads.{part}",
            f"the {part} of {context.model} does not load with local_files_only: {error}",
            where=Where(file=str(path)),
            remedy="fetch it again, or use the version of transformers that it was made for",
        )


def gated(model: str) -> bool:
    """Whether the hub asks for an accepted licence, by the list of ``gated.toml``."""
    listed = tomllib.loads(files("proveout.preflight").joinpath("gated.toml").read_text(encoding="utf-8"))
    return any(fnmatchcase(model.lower(), pattern.lower()) for pattern in listed["patterns"])


def _needs_token(context: PreflightContext) -> bool:
    model = context.model or ""
    absent = snapshot.find(model, places.hf_hub(context.env)) is None
    return bool(model) and snapshot.is_hub_name(model) and gated(model) and absent


def _gated(context: PreflightContext) -> Iterator[Finding]:
    kept = context.env.get("HF_TOKEN_PATH") or places.hf_home(context.env) / "token"
    try:
        with open(kept, encoding="utf-8") as file:  # noqa: PTH123 - a path or a string
            stored = bool(file.read(1))
    except OSError:
        stored = False
    if not stored and not any(context.env.get(name) for name in TOKENS):
        yield blocked(
            "gated.no-token",
            f"{context.model} is gated on the hub, it is not on this disk, and there is no token",
            where=Where(key="HF_TOKEN"),
            remedy="accept its licence and set HF_TOKEN, or name a local copy or an open model",
        )


def _reward_wanted(context: PreflightContext) -> bool:
    if "verl" not in context.wanted:
        return False
    runs = [[word.lstrip("+").lower() for word in command.argv] for command in workers.wrapper_runs(context)]
    return workers.wrapped(context) and (not runs or any(REWARD_OFF not in words for words in runs))


def _reward(context: PreflightContext) -> Iterator[Finding]:
    env = context.environment("verl")
    model = env.get("RM_MODEL_PATH") or str(places.home(env) / REWARD_DEFAULT)
    yield from _present(context, model, "reward-model", "the reward model that verl's wrapper starts,")


SNAPSHOT = Check(
    id="snapshot",
    proves="the model is on this disk with its configuration, every shard of its index, and a tokenizer",
    remedy="proveout model fetch, once, before workers race for it",
    applies=lambda context: bool(context.model),
    run=_snapshot,
)
LOADS = Check(
    id="snapshot-loads",
    proves="configuration and tokenizer (weights, if asked) load in a worker's interpreter without the hub",
    remedy="fetch the model again, or use the transformers version that it needs",
    cost=Cost.SLOW,
    applies=lambda context: bool(context.model) and limits.text(context, "model.load") != "no",
    run=_loads,
)
GATED = Check(
    id="gated",
    proves="a gated model that has to be fetched comes with a token",
    remedy="set HF_TOKEN, or use a local copy",
    applies=_needs_token,
    run=_gated,
)
REWARD = Check(
    id="reward-model",
    proves="the reward model that verl's wrapper starts by default is there and whole",
    remedy="fetch it, name it by RM_MODEL_PATH, or switch it off with reward.reward_model.enable=False",
    applies=_reward_wanted,
    run=_reward,
)
