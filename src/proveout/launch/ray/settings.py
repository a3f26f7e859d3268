"""The table ``[launch.ray]``."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from proveout.domain.errors import UsageError

VARIABLE = "RAY_ADDRESS"


class RaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which cluster, and how one is started where none is named.

    ``address`` is the Jobs API of a cluster (``http://HOST:8265``). Without one, and without RAY_ADDRESS, each
    attempt gets a cluster of its own on this machine: ``program`` starts it (the ``ray`` beside the step's
    interpreter, else that on PATH), with ``num_cpus`` and ``num_gpus`` (0: what the machine has), and within
    ``start_seconds`` it must answer. ``python`` runs the supervisor and the import probe in a cluster that is there.
    ``probe`` asks a worker of every node, before the command, from where it would import what is under test.
    ``lost_seconds`` is how long a cluster may not answer before the attempt is given up.
    """

    address: str = ""
    program: str = ""
    num_cpus: int = 0
    num_gpus: int = 0
    start_seconds: float = 180.0
    python: str = "python3"
    probe: bool = True
    lost_seconds: float = 20.0


def address_of(settings: RaySettings, env: Mapping[str, str] = os.environ) -> str:
    """The Jobs API to use; '' where a cluster is to be started. Raises UsageError for what is none."""
    named = settings.address or env.get(VARIABLE, "")
    where = "launch.ray.address" if settings.address else VARIABLE
    if not named or (not settings.address and named in ("auto", "local")):
        return ""
    if not named.startswith(("http://", "https://")):
        raise UsageError(
            f"{named!r} is not the address of a Jobs API",
            where=where,
            remedy="give the dashboard's: --ray-address http://HOST:8265",
        )
    return named.rstrip("/")
