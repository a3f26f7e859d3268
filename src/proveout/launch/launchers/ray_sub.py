"""Launcher ``ray.sub``: NeMo-RL's batch script brings up a Ray cluster in the allocation and runs the command in it.

The script is run by the supervisor inside an allocation with the options that the script's own #SBATCH lines would
ask for, so that exit file, time limit and cancelling are those of every other attempt; its environment is what
``sbatch ray.sub`` would give it.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import msgspec

from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch.base import Wrapped
from proveout.launch.files import environment
from proveout.launch.launchers.containers import inside, mounts, needs_image, set_up
from proveout.launch.launchers.srun import image_facts
from proveout.launch.site import LaunchSite

LOGS = "ray"
CONSOLE = "ray.sub.log"
DRIVER = "ray-driver.log"
_DIRECTIVE = re.compile(r"^#SBATCH\s+(--\S+)", re.MULTILINE)
_PROVEOUTS_OWN = {"--nodes", "--account", "--job-name", "--partition", "--time", "--dependency", "--output"}


class RaySubSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table ``[launch.ray-sub]``.

    ``script`` is ray.sub itself (default: that of $NEMO_RL_REPO). ``gpus_per_node`` must be all that a node has
    (0: as the step asks, else 8). ``log_sync_seconds`` copies Ray's own logs beside the others; ``uv_cache`` is
    mounted as the container's uv cache; ``env`` are further variables that the script reads, as ports.
    """

    script: str = ""
    gpus_per_node: int = 0
    cpus_per_worker: int = 0
    log_sync_seconds: int = 0
    uv_cache: str = ""
    env: dict[str, str] = {}


class RaySubLauncher:
    """Wraps a command into ray.sub's environment."""

    name = "ray.sub"
    schedulers = ("slurm",)

    def check(self, site: LaunchSite) -> None:
        """Raises UsageError without an image."""
        needs_image(site, self.name)
        site.table("ray-sub", RaySubSettings)

    def wrap(self, command: Command, files: AttemptLayout, resources: Resources, site: LaunchSite) -> Wrapped:
        """``bash ray.sub`` in the root of NeMo-RL; the log of the attempt is the driver's log."""
        settings = site.table("ray-sub", RaySubSettings)
        script = _script(settings, command)
        given = variables(command, files, resources, site)
        root = str(script.parent)
        directives = _DIRECTIVE.findall(script.read_text(encoding="utf-8", errors="replace"))
        options = [option for option in directives if option.partition("=")[0] not in _PROVEOUTS_OWN]
        if resources.gpus:
            options.append(f"--gres=gpu:{given['GPUS_PER_NODE']}")
        return Wrapped(
            command=Command(
                argv=("bash", str(script)),
                env=command.env | given | {"SLURM_SUBMIT_DIR": root},
                unset=command.unset,
                cwd=root,
            ),
            batch_options=tuple(options),
            console=CONSOLE,
            log_link=f"{LOGS}/{{job}}-logs/{DRIVER}",
        )

    def facts(self, site: LaunchSite) -> dict[str, str]:
        """Image and script."""
        script = site.table("ray-sub", RaySubSettings).script
        return image_facts(site) | {"ray.sub": script or "that of $NEMO_RL_REPO"}


def variables(
    command: Command, files: AttemptLayout, resources: Resources, site: LaunchSite
) -> dict[str, str]:
    """What ray.sub reads from its environment. COMMAND sets pipefail and exports PYTHONPATH itself: the script's own
    driver_command.sh has no pipefail, and without the export the container's Bridge would be imported.
    """
    settings = site.table("ray-sub", RaySubSettings)
    asked = math.ceil(resources.gpus / max(resources.nodes, 1))
    found = {
        "CONTAINER": site.image,
        "MOUNTS": ",".join(mounts(command, files, site)),
        "COMMAND": inside(command, site),
        "SETUP_COMMAND": "\n".join(["set -eo pipefail", *set_up(site)]) if site.mcore_copy else "",
        "GPUS_PER_NODE": str(settings.gpus_per_node or asked or 8),
        "BASE_LOG_DIR": str(files.root / LOGS),
        "CPUS_PER_WORKER": str(settings.cpus_per_worker or ""),
        "RAY_LOG_SYNC_FREQUENCY": str(settings.log_sync_seconds or ""),
        "UV_CACHE_DIR_OVERRIDE": settings.uv_cache,
    }
    return {key: value for key, value in found.items() if value} | settings.env


def logs(files: AttemptLayout) -> list[Path]:
    """The logs of head, workers and script of an attempt, for triage beside the driver's; those that are there."""
    found = [files.root / CONSOLE]
    found += sorted(path for path in (files.root / LOGS).glob("*-logs/*.log") if path.name != DRIVER)
    return [path for path in found if path.is_file()]


def _script(settings: RaySubSettings, command: Command) -> Path:
    env = environment(command)
    root = env.get("NEMO_RL_REPO") or os.environ.get("NEMO_RL_REPO", "")
    if not settings.script and not root:
        raise UsageError(
            "ray.sub is not found: no NeMo-RL checkout is known",
            remedy="give --nemo-rl PATH, set NEMO_RL_REPO, or write script under [launch.ray-sub]",
        )
    script = Path(settings.script or f"{root}/ray.sub").absolute()
    if not script.is_file():
        raise BlockedError("there is no ray.sub", where=str(script))
    return script


LAUNCHER = RaySubLauncher()
