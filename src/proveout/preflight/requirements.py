"""What proveout itself declares for the loops that it brings along."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion

PACKAGES_ASKED = (
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "tensorboard",
    "numpy",
    "ray",
    "vllm",
    "sglang",
    "datasets",
    "pyarrow",
    "trl",
    "wandb",
    "nvidia-modelopt",
    "megatron-core",
    "megatron-bridge",
    "transformer-engine",
    "tensordict",
    "hydra-core",
    "omegaconf",
)


def of_extra(extra: str) -> tuple[Requirement, ...]:
    """The packages that an extra of the installed proveout adds. Raises PackageNotFoundError where it is not
    installed."""
    declared = [Requirement(text) for text in metadata.requires("proveout") or ()]
    return tuple(
        requirement
        for requirement in declared
        if requirement.marker
        and requirement.marker.evaluate({"extra": extra})
        and not requirement.marker.evaluate({"extra": ""})
    )


def readable(texts: Iterable[str]) -> tuple[Requirement, ...]:
    """The requirements among ``texts`` that hold here, without those that cannot be read as one."""
    found = []
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found.append(requirement)
    return tuple(found)


def satisfied(requirement: Requirement, version: str) -> bool:
    """Whether an installed version is one that the requirement allows; a local version label is ignored."""
    try:
        return requirement.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return False
