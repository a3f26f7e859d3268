"""Model families read from the Bridge's code: what they register, of what nature they are, what to run
them with."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from proveout.domain.tree import parse_yaml

_ROOT = "src/megatron/bridge/models"
_MOE = re.compile(r"\bnum_moe_experts\b|\bmoe_(router|grouped|ffn|layer|token)\w*")
_VISION = re.compile(r"ForConditionalGeneration$|VL|Vision|Omni|Vl(?=[A-Z])")
_AUDIO = re.compile(r"Audio|Omni|ASR|Speech")
_NOT_VISION = re.compile(r"^T5|Audio|ASR")
SMALL_BILLIONS = 4.5


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest public checkpoint known for an architecture."""

    arch: str
    checkpoint: str
    billions: float
    gated: bool | None = None


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One family as its code shows it.

    ``architectures`` are the Hugging Face names that it registers bridges for; ``natures`` some of vlm,
    audio, moe;
    ``new`` when the whole directory is part of the change; ``tests`` its unit tests that exist.
    """

    name: str
    architectures: tuple[str, ...]
    natures: tuple[str, ...]
    new: bool = False
    tests: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None


@cache
def checkpoints() -> tuple[Checkpoint, ...]:
    """The known checkpoints."""
    data = parse_yaml((files("proveout.plan") / "families.yaml").read_text())
    return msgspec.convert(data, tuple[Checkpoint, ...])


def family_name(path: str) -> str:
    """The family that a path under the model directory belongs to, or ''."""
    parts = path.removeprefix(_ROOT + "/").split("/")
    return parts[0] if path.startswith(_ROOT + "/") else ""


def read_family(bridge: Path, name: str, changed: tuple[str, ...], new: bool) -> Family:
    """One family. Only what the changed files register decides its natures, or the whole directory if they
    register nothing. Files that cannot be parsed count as registering nothing."""
    folder = bridge / _ROOT / name
    every = sorted(folder.rglob("*.py")) if folder.is_dir() else []
    mine = [path for path in every if path.relative_to(bridge).as_posix() in changed]
    found = _registered(mine)
    texts = mine
    if not found:
        found, texts = _registered(every), mine or every
    natures = []
    if any(_VISION.search(arch) and not _NOT_VISION.search(arch) for arch in found):
        natures.append("vlm")
    if any(_AUDIO.search(arch) for arch in found):
        natures.append("audio")
    if any("Moe" in arch or "MoE" in arch for arch in found) or any(
        _MOE.search(_text(path)) for path in texts
    ):
        natures.append("moe")
    known = [entry for arch in found for entry in checkpoints() if arch.startswith(entry.arch)]
    return Family(
        name=name,
        architectures=tuple(found),
        natures=tuple(natures),
        new=new,
        tests=_tests(bridge, name),
        checkpoint=min(known, key=lambda entry: entry.billions, default=None),
    )


def _registered(paths: list[Path]) -> list[str]:
    found: list[str] = []
    for path in paths:
        text = _text(path)
        if "register_bridge" not in text:
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.value, str)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register_bridge":
                sources = [_name(word.value) for word in node.keywords if word.arg == "source"]
                found += [constants.get(name, name) for name in sources if name]
    return list(dict.fromkeys(found))


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _tests(bridge: Path, name: str) -> tuple[str, ...]:
    wanted = f"tests/unit_tests/models/{name}"
    return (wanted,) if (bridge / wanted).exists() else ()
