"""Which interpreter imports Megatron in each loop, by the loop's own rules. Starts and builds nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from proveout.domain.preflight import PreflightContext, Worker
from proveout.domain.step import Command

_PREFIX = re.compile(r'^\s*(?:export\s+)?PYTHONPATH=["\']?([^"\'$\s]+)\$\{PYTHONPATH', re.MULTILINE)
VERL_WRAPPER = "tests/special_e2e/run_ppo_trainer_megatron.sh"
STARTER = "proveout_cpu.verl.start"
UV_ENGINES = frozenset({"vllm", "sglang"})


def of_run(context: PreflightContext) -> tuple[Worker, ...]:
    """The workers that were named for a loop, else those that the loop's rules give."""
    found: list[Worker] = list(context.workers)
    for loop in sorted(context.wanted):
        if not any(worker.loop == loop for worker in context.workers):
            found += _RULES.get(loop, _of_commands)(context, loop)
    return tuple(found)


def _of_commands(context: PreflightContext, loop: str) -> Iterator[Worker]:
    """The python that the loop's commands name, else proveout's own."""
    programs = {command.argv[0] for command in context.commands(loop)}
    pythons = sorted(program for program in programs if Path(program).name.startswith("python"))
    for program in pythons or [context.python]:
        yield Worker(name=loop, argv=(program,), loop=loop)


def nemo_rl_venvs(context: PreflightContext) -> Path | None:
    """Where NeMo-RL keeps an environment for each actor class (its utils/venvs.py); None if not known."""
    named = context.environment("nemo-rl").get("NEMO_RL_VENV_DIR")
    if named:
        return Path(named)
    checkout = context.checkouts.get("nemo-rl")
    return Path(checkout) / "venvs" if checkout else None


def _nemo_rl(context: PreflightContext, loop: str) -> Iterator[Worker]:
    """The environments of the Megatron actors; one for all where the system's is to be used."""
    env = context.environment(loop)
    if env.get("NEMO_RL_PY_EXECUTABLES_SYSTEM") == "1":
        yield Worker(name="nemo-rl (system interpreter)", argv=("python",), loop=loop)
        return
    place = nemo_rl_venvs(context)
    for python in sorted(place.glob("*/bin/python")) if place else ():
        actor = python.parents[1].name
        if "megatron" in actor.lower():
            yield Worker(name=f"nemo-rl {actor.rsplit('.', 1)[-1]}", argv=(str(python),), loop=loop)


def wrapper_runs(context: PreflightContext) -> tuple[Command, ...]:
    """The steps' commands that start verl's wrapper script."""
    name = Path(VERL_WRAPPER).name
    return tuple(
        command
        for command in context.commands("verl")
        if any(Path(word).name == name for word in command.argv)
    )


def makes(command: Command) -> str:
    """The directory in which a command makes its own model and data before it starts the loop; '' for none."""
    words = command.argv
    return words[words.index(STARTER) + 1] if STARTER in words[:-1] else ""


def wrapped(context: PreflightContext) -> bool:
    """Whether verl is started by its wrapper script; taken for granted where there are no steps to see."""
    return not context.commands("verl") or bool(wrapper_runs(context))


def uses_uv(context: PreflightContext) -> bool:
    """Whether verl's wrapper would start everything through ``uv run --frozen``."""
    env = context.environment("verl")
    return (
        wrapped(context)
        and env.get("VERL_USE_UV", "1") != "0"
        and env.get("DEVICE", "gpu") == "gpu"
        and env.get("ENGINE", "vllm") in UV_ENGINES
    )


def verl_venv(context: PreflightContext) -> Path | None:
    """The environment that ``uv run --frozen`` uses in the verl checkout; None without a checkout."""
    checkout = context.checkouts.get("verl")
    named = context.environment("verl").get("UV_PROJECT_ENVIRONMENT", ".venv")
    return Path(checkout) / named if checkout else None


def wrapper_prefix(context: PreflightContext) -> str:
    """What verl's wrapper puts in front of PYTHONPATH, read from the checkout; empty where it does not."""
    checkout = context.checkouts.get("verl") if wrapped(context) else None
    try:
        text = (Path(checkout or "") / VERL_WRAPPER).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = _PREFIX.search(text)
    return found[1].rstrip(":") if found else ""


def _verl(context: PreflightContext, loop: str) -> Iterator[Worker]:
    env = context.environment(loop)
    path = ":".join(entry for entry in (wrapper_prefix(context), env.get("PYTHONPATH", "")) if entry)
    added = {"PYTHONPATH": path} if path else {}
    cwd = context.checkouts.get("verl", "")
    if not wrapped(context):
        yield from _of_commands(context, loop)
        return
    if not uses_uv(context):
        yield Worker(name="verl (python3)", argv=("python3",), loop=loop, env=added, cwd=cwd)
        return
    place = verl_venv(context)
    if place and (place / "bin" / "python").exists():
        python = str(place / "bin" / "python")
        yield Worker(name="verl (uv run --frozen)", argv=(python,), loop=loop, env=added, cwd=cwd)


_RULES = {"nemo-rl": _nemo_rl, "verl": _verl}


def program(worker: Worker, env: dict[str, str]) -> str:
    """The worker's program as the environment's PATH resolves it."""
    return shutil.which(worker.argv[0], path=env.get("PATH")) or worker.argv[0]
