"""The engine's command line for one attempt. Pure: nothing is started or looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from proveout.domain.step import Resources
from proveout.launch.container.settings import ContainerSettings

HANDED_IN = (
    "HF_DATASETS_CACHE",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_TOKEN",
    "NRL_MEGATRON_CHECKPOINT_DIR",
    "OMP_NUM_THREADS",
    "PYTHONPATH",
    "TRANSFORMERS_OFFLINE",
    "WANDB_API_KEY",
    "WANDB_MODE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
"""Variables of the caller that a container gets; ``env`` of the site names more."""
OF_THE_ENGINE = ("CONTAINER", "DOCKER", "HOME", "LD_", "PATH", "TMPDIR", "XDG_")
"""Variables that the engine itself reads: they are handed in by value, and kept from the engine."""

ULIMITS_WITH_GPUS = ("memlock=-1", "stack=67108864")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One container: ``names`` are variables handed in by name, ``values`` those that are set by value."""

    name: str
    image: str
    reference: str
    script: str
    mounts: tuple[str, ...]
    names: tuple[str, ...]
    values: dict[str, str]
    workdir: str = ""


def container_argv(  # noqa: PLR0917 - what one command line is made of
    engine: str,
    podman: bool,
    wanted: Wanted,
    command: Sequence[str],
    resources: Resources,
    settings: ContainerSettings,
    visible: str = "",
) -> tuple[str, ...]:
    """``ENGINE run ... IMAGE SCRIPT COMMAND``; ``visible`` is the caller's CUDA_VISIBLE_DEVICES.

    No value of a variable that may hold a secret stands in it.
    """
    words = [engine, "run", "--rm", "--name", wanted.name, "--label", f"proveout.image={wanted.reference}"]
    words += ["--pull", "never", "--log-driver", "none", "--stop-timeout", "1", "--pids-limit", "-1"]
    words += ["--network", settings.network] if settings.network else []
    words += ["--runtime", settings.runtime] if settings.runtime else []
    words += ["--user", settings.user] if settings.user else []
    words += ["--memory", settings.memory, "--memory-swap", settings.memory] if settings.memory else []
    words += ["--shm-size", settings.shm_size] if settings.shm_size else []
    for limit in _ulimits(settings, resources):
        words += ["--ulimit", limit]
    words += _gpus(settings.gpus, resources.gpus, podman, visible)
    for mount in wanted.mounts:
        words += ["--volume", mount]
    for name in wanted.names:
        words += ["--env", name]
    for name, value in sorted(wanted.values.items()):
        words += ["--env", f"{name}={value}"]
    words += ["--workdir", wanted.workdir] if wanted.workdir else []
    words += settings.extra
    if settings.entrypoint:
        return (*words, wanted.image, "sh", wanted.script, *command)
    return (*words, "--entrypoint", "sh", wanted.image, wanted.script, *command)


def of_the_engine(name: str) -> bool:
    """Whether the engine's own program reads a variable."""
    return name.upper().startswith(OF_THE_ENGINE)


def handed_in(
    env: Mapping[str, str], own: Mapping[str, str], unset: Sequence[str], more: Sequence[str]
) -> dict[str, str]:
    """The variables of a container: the step's ``own``, and of the caller's ``env`` those that are allowed."""
    allowed = {name: env[name] for name in (*HANDED_IN, *more) if name in env and name not in unset}
    return allowed | dict(own)


def _ulimits(settings: ContainerSettings, resources: Resources) -> tuple[str, ...]:
    if settings.ulimits is not None:
        return settings.ulimits
    return ULIMITS_WITH_GPUS if resources.gpus else ()


def _gpus(asked: str, needed: int, podman: bool, visible: str) -> list[str]:
    if asked == "none" or (asked == "auto" and not needed):
        return []
    devices = [word for word in asked.split(",") if word not in ("auto", "all")]
    if asked == "auto":
        own = [word for word in visible.split(",") if word]
        devices = own[:needed] if len(own) >= needed else [str(number) for number in range(needed)]
    if podman:
        return [word for device in devices or ["all"] for word in ("--device", f"nvidia.com/gpu={device}")]
    return ["--gpus", f'"device={",".join(devices)}"' if devices else "all"]
