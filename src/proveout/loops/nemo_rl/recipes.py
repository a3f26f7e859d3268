"""Maintained recipes: the smallest one that a variant's wishes and the GPUs allow."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from proveout.domain.config import inherit
from proveout.domain.config.interpolate import lookup
from proveout.domain.tree import Tree
from proveout.loops.nemo_rl.variants import Variant

_SIZE = re.compile(r"-(\d+)n(\d+)g(?:-|\.|$)")
_ENTRIES = {
    "grpo": "examples/run_grpo.py",
    "sft": "examples/run_sft.py",
    "dpo": "examples/run_dpo.py",
    "ppo": "examples/run_ppo.py",
    "distillation": "examples/run_distillation.py",
    "vlm_grpo": "examples/run_vlm_grpo.py",
}


def find(tree: Tree, variant: Variant, gpus: int) -> str:
    """The recipe with the fewest GPUs that has all that ``variant`` wants, '' when there is none.

    With ``gpus`` given, one that fits is preferred; else the smallest is returned and the caller says that it
    does not fit.
    """
    for _, path in sorted((_gpus(path), path) for path in tree.glob(variant.pattern)):
        name = PurePosixPath(path).stem
        if variant.exclude and re.search(variant.exclude, name):
            continue
        if not _SIZE.search(name) or entry_of(path) not in _ENTRIES.values():
            continue
        config = inherit.load(tree, path)
        if lookup(config, "policy.megatron_cfg.enabled") is not True:
            continue
        if all(_at_least(lookup(config, key), least) for key, least in variant.want.items()):
            return path
    return ""


def entry_of(path: str) -> str:
    """The example script that runs a recipe, by the first word of its name, or ''."""
    return _ENTRIES.get(PurePosixPath(path).name.split("-")[0], "")


def _gpus(path: str) -> int:
    match = _SIZE.search(PurePosixPath(path).stem)
    return int(match[1]) * int(match[2]) if match else 1 << 20


def _at_least(value: object, least: int) -> bool:
    return isinstance(value, int) and value >= least
