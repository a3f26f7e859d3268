"""The table ``[launch.slurm]``."""

from __future__ import annotations

import msgspec


class SlurmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a site wants said to ``sbatch``.

    ``time`` is the most that a job may ask for (``D-HH:MM:SS``; a step that may take longer asks for this much).
    ``gres`` stands instead of ``gpu:N`` for a step that needs N GPUs a node. ``extra`` are further options, as
    ``--constraint=h100``. ``requeue`` lets Slurm start a job again; an attempt is still run once only, and
    ``resume`` starts a fresh one. ``python`` is the interpreter (3.8 or newer) that runs the supervisor on the
    compute node. ``array`` is how many tasks one job array may have.
    """

    account: str = ""
    partition: str = ""
    qos: str = ""
    gres: str = ""
    time: str = ""
    cpus_per_task: int = 0
    mem: str = ""
    exclusive: bool = False
    requeue: bool = False
    extra: tuple[str, ...] = ()
    python: str = ""
    array: int = 1000
