"""A Ray cluster of this machine for one attempt, under a supervisor of its own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from proveout.domain.errors import BlockedError
from proveout.domain.evidence import ExitRecord
from proveout.domain.files import write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch.base import Job, Task, Wrapped
from proveout.launch.local import SCHEDULER as LOCAL
from proveout.launch.local import LocalJob
from proveout.launch.ray import head
from proveout.launch.ray.settings import RaySettings
from proveout.launch.site import LaunchSite

FOLDER = "ray"
POLL_SECONDS = 0.2
EXTRA_MINUTES = 10.0


class Cluster:
    """The cluster of one attempt; its files lie in ``ray`` of the attempt's directory."""

    def __init__(self, attempt: AttemptLayout) -> None:
        self.files = AttemptLayout(attempt.root / FOLDER)
        self._address = self.files.root / "address"
        self._spec = self.files.root / "head.json"
        self._attempt = attempt

    def start(self, program: str, settings: RaySettings, env: Mapping[str, str], resources: Resources) -> str:
        """Start it and wait until it answers; its address. Raises BlockedError where it does not come up."""
        argv = [program, "start", "--head", "--port=0", "--disable-usage-stats"]
        argv += ["--dashboard-host=127.0.0.1", "--include-dashboard=true"]
        argv += [f"--num-cpus={settings.num_cpus}"] if settings.num_cpus else []
        argv += [f"--num-gpus={settings.num_gpus}"] if settings.num_gpus else []
        try:
            self.files.root.mkdir()
            write_json(self._spec, self._told(argv, settings))
        except OSError as error:
            raise BlockedError(
                f"no Ray cluster can be started: {error.strerror or error}", where=str(self.files.root)
            ) from error
        python = (sys.executable, "-I", head.__file__)
        wrapped = Wrapped(
            command=Command(argv=(*python, "run", str(self._spec)), env=dict(env), cwd=str(self.files.root)),
            cleanup=(*python, "remove", str(self._spec)),
        )
        limit = Resources(timeout_minutes=resources.timeout_minutes + EXTRA_MINUTES)
        (job,) = LOCAL.submit([Task(wrapped, self.files, limit, "local+ray head", LaunchSite())])
        try:
            return self._wait(job, settings.start_seconds)
        except BaseException:
            job.cancel()
            raise

    def stop(self) -> None:
        """Stop it with everything that it started, and remove its directory."""
        if self.files.job.exists():
            found = LOCAL.reattach(self.files, LaunchSite())
            if not isinstance(found, ExitRecord):
                found.cancel()

    def ask_to_stop(self) -> None:
        """Begin to stop it, and do not wait."""
        if self.files.job.exists():
            found = LOCAL.reattach(self.files, LaunchSite())
            if isinstance(found, LocalJob):
                found.ask()

    def _told(self, argv: list[str], settings: RaySettings) -> dict[str, object]:
        return {
            "argv": argv,
            "address": str(self._address),
            "place": str(self.files.root / "place"),
            "logs": str(self.files.root / "logs"),
            "exit": str(self._attempt.exit),
            "process": str(self._attempt.process),
            "start_seconds": settings.start_seconds,
            "temp": os.environ.get("RAY_TMPDIR") or tempfile.gettempdir(),
        }

    def _wait(self, job: Job, seconds: float) -> str:
        deadline = time.monotonic() + seconds
        while not self._address.exists():
            ended = job.poll()
            if ended is not None:
                raise BlockedError(
                    f"the Ray cluster did not start ({ended}): {_last_line(self.files.log)}",
                    where=str(self.files.log),
                )
            if time.monotonic() > deadline:
                raise BlockedError(
                    f"the Ray cluster did not answer within {seconds:g} s",
                    where=str(self.files.log),
                    remedy="see its log; launch.ray.start-seconds gives it more time",
                )
            time.sleep(POLL_SECONDS)
        return self._address.read_text(encoding="utf-8")


def ray_program(settings: RaySettings, command: Command) -> str:
    """The ``ray`` that starts a cluster. Raises BlockedError where there is none."""
    if settings.program:
        names = [settings.program]
    else:
        names = [str(Path(command.argv[0]).with_name("ray"))] if "/" in command.argv[0] else []
        names.append("ray")
    for name in names:
        if found := shutil.which(name):
            return found
    raise BlockedError(
        f"no Ray here ({', '.join(names)})",
        remedy="install ray[default] beside the loop, name it with --launch ray.program=PATH, or name a cluster with "
        "--ray-address http://HOST:8265",
    )


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "its log is empty"
