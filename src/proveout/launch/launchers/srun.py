"""Launcher ``srun``: one container step of an allocation, through the options that pyxis adds to srun."""

from __future__ import annotations

import msgspec

from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch.base import Wrapped
from proveout.launch.launchers.containers import inside, mounts, needs_image
from proveout.launch.site import LaunchSite


class SrunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table ``[launch.srun]``: ``mount_home`` lets the container see the user's home; ``extra`` are options."""

    mount_home: bool = False
    extra: tuple[str, ...] = ()


class SrunLauncher:
    """Runs the command in a container step on every node of the allocation, one task a node."""

    name = "srun"
    schedulers = ("slurm",)

    def check(self, site: LaunchSite) -> None:
        """Raises UsageError without an image."""
        needs_image(site, self.name)
        site.table("srun", SrunSettings)

    def wrap(self, command: Command, files: AttemptLayout, resources: Resources, site: LaunchSite) -> Wrapped:
        """``srun --container-image=... bash -lc '...'``: set-up and command in one step."""
        options = [
            f"--nodes={resources.nodes}",
            f"--ntasks={resources.nodes}",
            "--ntasks-per-node=1",
            "--kill-on-bad-exit=1",
            *container_options(command, files, site),
        ]
        argv = ("srun", *options, "bash", "-lc", inside(command, site))
        return Wrapped(command=Command(argv=argv, env=command.env, unset=command.unset, cwd=command.cwd))

    def facts(self, site: LaunchSite) -> dict[str, str]:
        """Image, and what ran before the command in the same step."""
        return image_facts(site)


def container_options(command: Command, files: AttemptLayout, site: LaunchSite) -> list[str]:
    """What pyxis understands: image, mounts, directory, and whether the home is seen."""
    settings = site.table("srun", SrunSettings)
    return [
        f"--container-image={site.image}",
        f"--container-mounts={','.join(mounts(command, files, site))}",
        f"--container-workdir={site.workdir or command.cwd}",
        *([] if settings.mount_home else ["--no-container-mount-home"]),
        *settings.extra,
    ]


def image_facts(site: LaunchSite) -> dict[str, str]:
    """What a report says of a container launch. The digest is told where the reference itself holds one."""
    facts = {"image": site.image}
    name, at, digest = site.image.partition("@")
    if at:
        facts |= {"image": name, "digest": digest}
    if site.mounts:
        facts["mounts"] = ", ".join(site.mounts)
    if site.setup:
        facts["setup"] = "; ".join(site.setup)
    if site.mcore_copy:
        facts["Megatron-Core"] = f"copied to {site.mcore_copy} and built there"
    return facts


LAUNCHER = SrunLauncher()
