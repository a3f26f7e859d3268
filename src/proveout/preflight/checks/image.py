"""The container image that attempts run in: pinned, and made for the rollout engine that the loop uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import Check, warning

_ENGINES = {"vllm": ("vllm",), "sglang": ("sglang", "sgl"), "trtllm": ("trtllm", "trt-llm", "tensorrt")}
_WORD = re.compile(r"[a-z]+(?:-llm)?")


def run(context: PreflightContext) -> Iterator[Finding]:
    """A tag that may name another image tomorrow; and for verl, one that names another rollout engine only."""
    where = Where(key="image")
    tag = tag_of(context.image)
    if "@sha256:" not in context.image and tag in ("", "latest") and not context.image.endswith(".sqsh"):
        yield warning(
            "image.unpinned",
            f"image {context.image} is not pinned: its name may mean another image tomorrow",
            where=where,
            remedy="name an exact tag or a digest",
        )
    if "verl" not in context.wanted:
        return
    engine = context.environment("verl").get("ENGINE", "vllm")
    served = served_by(context.image)
    if engine in _ENGINES and served and engine not in served:
        yield warning(
            "image.engine",
            f"verl's rollout engine is {engine}, but image {context.image} is named for {', '.join(sorted(served))}: "
            "it may fail before a model is built",
            where=where,
            remedy=f"choose a tag that serves {engine}, or set ENGINE",
        )


def tag_of(image: str) -> str:
    """The tag of an image reference; '' without one."""
    name = image.partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2]


def served_by(image: str) -> frozenset[str]:
    """The rollout engines that an image's last name and tag speak of."""
    words = set(_WORD.findall(image.partition("@")[0].rpartition("/")[2].lower()))
    return frozenset(engine for engine, names in _ENGINES.items() if words.intersection(names))


CHECK = Check(
    id="image",
    proves="the container image is pinned, and made for verl's rollout engine",
    remedy="name an image by exact tag or digest, made for the rollout engine that is used",
    run=run,
    applies=lambda context: bool(context.image),
)
