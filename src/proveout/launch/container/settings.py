"""The table ``[launch.container]``."""

from __future__ import annotations

from typing import Literal

import msgspec


class ContainerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a site wants of its container engine.

    ``engine`` is a program (docker or podman where none is named). ``pull`` fetches an image that is not here.
    ``user`` is the user inside (the image's own where none is named), ``umask`` that of the command. ``gpus`` is
    ``auto`` (as many as the step needs), ``all``, ``none`` or device numbers (``0,1``). ``ulimits`` are those of
    NVIDIA's images for a step with GPUs, where none are named. ``memory`` limits the container (``64g``; swap
    included). ``entrypoint`` keeps the image's own entry point in front of the command. ``setup`` are commands that
    run first, in the same container (``python -m pip install nvidia-modelopt``). ``runtime`` and ``extra`` are
    handed to the engine as they are.
    """

    engine: str = ""
    pull: Literal["never", "missing"] = "never"
    user: str = ""
    umask: str = ""
    gpus: str = "auto"
    memory: str = ""
    shm_size: str = "8g"
    ulimits: tuple[str, ...] | None = None
    network: str = "host"
    entrypoint: bool = False
    setup: tuple[str, ...] = ()
    runtime: str = ""
    extra: tuple[str, ...] = ()
