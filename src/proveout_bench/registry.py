"""What can be chosen by name. A new algorithm, backend, engine or task is one file and one line here.

Each entry is ``module:attribute`` and is imported only when chosen, so that this table imports nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

ALGORITHMS = {
    "grpo": "proveout_bench.algorithms.grpo.loop:run",
    "ppo": "proveout_bench.algorithms.ppo.loop:run",
    "sft": "proveout_bench.algorithms.sft.loop:run",
}
CONFIGS = {
    "grpo": "proveout_bench.config.schema:GrpoConfig",
    "ppo": "proveout_bench.config.schema:PpoConfig",
    "sft": "proveout_bench.config.schema:SftConfig",
}
BACKENDS = {
    "hf": "proveout_bench.backends.hf:HfBackend",
    "megatron": "proveout_bench.backends.megatron.backend:MegatronBackend",
}
LIMITS = {"megatron": "proveout_bench.backends.megatron.limits:check"}
"""What a backend refuses, of a configuration alone."""
STARTERS = {
    "hf": "proveout_bench.backends.data_parallel:start",
    "megatron": "proveout_bench.backends.megatron.launch:start",
}
"""How a backend starts a run, where it needs more than one process or imports of its own before."""
WARM_IMPORTS = {"megatron": "proveout_bench.backends.megatron.meeting:import_megatron"}
"""What a backend imports when it starts a run, for a process that imports it ahead of many."""
MEETINGS = {"hf": "proveout_bench.backends.group:join"}
"""How the ranks of a backend find each other, where the backend itself does not see to it."""
BY_POLICY = "policy"
ENGINES = {
    "inprocess": "proveout_bench.generation.inprocess:build",
    "process": "proveout_bench.generation.process:ProcessGenerator",
    BY_POLICY: "proveout_bench.backends.base:PolicyBackend",
}
FORKED = ("process",)
"""Engines that begin with a fork, before this process has used a GPU."""
TASKS = {
    "digits": "proveout_bench.tasks.digits:DigitsTask",
    "arithmetic": "proveout_bench.tasks.arithmetic:ArithmeticTask",
    "dialogue": "proveout_bench.tasks.dialogue:DialogueTask",
    "colour": "proveout_bench.tasks.colour:ColourTask",
}
REWARDS = {
    "rules": "proveout_bench.rewards.base:Rules",
    "model": "proveout_bench.rewards.model:ModelReward",
}


def load(table: Mapping[str, str], name: str) -> Any:
    """The object registered as ``name``; KeyError if there is none."""
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name closest to ``name``, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return close[0] if close else ", ".join(names)
