"""Launcher ``container``: the command in a container of docker or podman, which does not outlive the attempt."""

from __future__ import annotations

import os
import secrets
import shlex

from proveout.domain import redact
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.files import write_atomic
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch.base import Wrapped
from proveout.launch.container.argv import Wanted, container_argv, handed_in, of_the_engine
from proveout.launch.container.image import Image, engine_program, image_here, is_podman
from proveout.launch.container.inside import END_FILE, script
from proveout.launch.container.mounts import mounts_for
from proveout.launch.container.settings import ContainerSettings
from proveout.launch.files import environment
from proveout.launch.site import LaunchSite

SCRIPT = "container.sh"


class ContainerLauncher:
    """Wraps a command in ``ENGINE run``."""

    name = "container"
    schedulers = ("local", "slurm")

    def check(self, site: LaunchSite) -> None:
        """Raises UsageError without an image, or for settings that cannot be read."""
        settings = _settings(site)
        if not site.image:
            raise UsageError(
                "the container launcher needs an image", remedy="give --image NAME, or image in [launch]"
            )
        for number, line in enumerate(settings.setup, start=1):
            try:
                shlex.split(line)
            except ValueError as error:
                raise UsageError(
                    f"setup command {number} is no command: {error}", where="launch.container.setup"
                ) from error

    def wrap(self, command: Command, files: AttemptLayout, resources: Resources, site: LaunchSite) -> Wrapped:
        """``ENGINE run`` with the command in it. Raises BlockedError where engine or image are not here."""
        settings = _settings(site)
        engine = engine_program(settings.engine)
        image = _image(engine, site, settings)
        env = environment(command)
        inside = handed_in(env, command.env, command.unset, site.env)
        if "PYTHONPATH" in inside:
            inside["PYTHONPATH"] = env["PYTHONPATH"]
        by_value = {name: value for name, value in inside.items() if of_the_engine(name)}
        place = files.root / SCRIPT
        setup = [shlex.split(line) for line in settings.setup]
        _write(files, script(str(files.root), site.workdir or command.cwd, _umask(settings), setup))
        wanted = Wanted(
            name=f"proveout-{secrets.token_hex(6)}",
            image=image.id,
            reference=site.image,
            script=str(place),
            mounts=mounts_for(command, files, inside, site.mounts, here=site.scheduler == "local"),
            names=tuple(name for name in sorted(inside) if name not in by_value),
            values=by_value,
        )
        argv = container_argv(
            engine,
            is_podman(engine),
            wanted,
            command.argv,
            resources,
            settings,
            env.get("CUDA_VISIBLE_DEVICES", ""),
        )
        for_engine = {name: value for name, value in inside.items() if name not in by_value}
        return Wrapped(
            command=Command(argv=argv, env=for_engine, unset=command.unset, cwd=str(files.root)),
            cleanup=(engine, "rm", "--force", wanted.name),
            end_file=END_FILE,
        )

    def facts(self, site: LaunchSite) -> dict[str, str]:
        """The image by name, content and registry digest, and what was set up by hand in the container."""
        settings = _settings(site)
        engine = engine_program(settings.engine)
        image = _image(engine, site, settings)
        found = {"engine": engine, "image": site.image}
        found |= {"image id": image.id} if image.id != site.image else {}
        found |= {"digest": ", ".join(image.digests)} if image.digests else {}
        found |= {"memory limit": settings.memory} if settings.memory else {}
        found |= {"set up in the container": redact.text("; ".join(settings.setup))} if settings.setup else {}
        found |= {"engine options": redact.text(shlex.join(settings.extra))} if settings.extra else {}
        return found


def _image(engine: str, site: LaunchSite, settings: ContainerSettings) -> Image:
    """The image that is here; where attempts start on other machines, it may be there alone, by its name."""
    try:
        return image_here(engine, site.image, settings.pull)
    except BlockedError:
        if site.scheduler == "local":
            raise
        return Image(reference=site.image, id=site.image)


def _settings(site: LaunchSite) -> ContainerSettings:
    return site.table("container", ContainerSettings)


def _umask(settings: ContainerSettings) -> str:
    """As asked; else what lets the caller read and remove what another user wrote inside."""
    return settings.umask or ("" if os.geteuid() == 0 else "0000")


def _write(files: AttemptLayout, text: str) -> None:
    try:
        write_atomic(files.root / SCRIPT, text)
    except OSError as error:
        raise BlockedError(
            f"the attempt cannot be started: {error.strerror or error}", where=str(files.root)
        ) from error


LAUNCHER = ContainerLauncher()
