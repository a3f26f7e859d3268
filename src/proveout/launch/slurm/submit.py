"""Puts attempts into Slurm: those that ask for the same go as one job array."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from proveout.domain import redact
from proveout.domain.errors import BlockedError
from proveout.domain.files import write_atomic, write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command
from proveout.launch import supervise
from proveout.launch.base import Task
from proveout.launch.files import environment, script, spec
from proveout.launch.slurm import query
from proveout.launch.slurm.programs import UnreachableError, slurm
from proveout.launch.slurm.script import SUPERVISOR, TASKS, options, text
from proveout.launch.slurm.settings import SlurmSettings

PATIENCE_SECONDS = 120.0
_KEPT = ("SLURM_CONF", "SLURM_TIME_FORMAT")


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """Where an attempt is in Slurm: written before ``sbatch`` is called, so that no job can be lost by a kill.

    The job's number stands in ``folder``/job.json, as one file for all tasks of an array; ``index`` is None for a
    job of its own.
    """

    name: str
    folder: str
    index: int | None = None

    def job(self, number: str) -> str:
        """The job, or the task of the array with this number."""
        return number if self.index is None else f"{number}_{self.index}"

    def log(self, number: str) -> Path:
        """Slurm's own log of it."""
        task = "" if self.index is None else f"_{self.index}"
        return Path(self.folder) / f"slurm-{number}{task}.log"


def record_path(files: AttemptLayout) -> Path:
    """Where ``Submitted`` is written."""
    return files.root / "slurm.json"


def supervisor_record(files: AttemptLayout) -> Path:
    """Where the supervisor writes how the command ended; ``exit.json`` follows when Slurm has had its word."""
    return files.root / "supervisor.json"


def number_path(folder: str) -> Path:
    """Where the number of a submitted job stands."""
    return Path(folder) / "job.json"


def submit(tasks: Sequence[Task]) -> list[str]:
    """Submit all; the jobs in the order of the tasks. Raises BlockedError where Slurm refuses."""
    jobs: dict[int, str] = {}
    groups: dict[bytes, list[int]] = {}
    for place, task in enumerate(tasks):
        groups.setdefault(_alike(task), []).append(place)
    for places in groups.values():
        settings = tasks[places[0]].site.table("slurm", SlurmSettings)
        size = max(settings.array, 1)
        for part in (places[at : at + size] for at in range(0, len(places), size)):
            found = _submit_alike([tasks[place] for place in part], settings)
            jobs.update(zip(part, found, strict=True))
    return [jobs[place] for place in range(len(tasks))]


def _submit_alike(tasks: Sequence[Task], settings: SlurmSettings) -> list[str]:
    first = tasks[0]
    name = f"proveout-{secrets.token_hex(5)}"
    folder = str(first.files.root / "slurm")
    many = len(tasks) > 1
    records = [
        Submitted(name=name, folder=folder, index=index if many else None) for index in range(len(tasks))
    ]
    python = settings.python or sys.executable
    log = f"{folder}/slurm-%A_%a.log" if many else f"{folder}/slurm-%j.log"
    more = first.wrapped.batch_options
    found = options(settings, first.resources, name=name, log=log, tasks=len(tasks), more=more)
    try:
        Path(folder).mkdir(exist_ok=True)
        shutil.copyfile(supervise.__file__, Path(folder) / SUPERVISOR)
        for task, record in zip(tasks, records, strict=True):
            _write_task(task, record)
        specs = [str(task.files.job) for task in tasks]
        if many:
            write_atomic(Path(folder) / TASKS, "\n".join([*specs, ""]))
        batch = Path(folder) / "batch.sh"
        write_atomic(batch, text(found, folder, python, specs))
        number = _sbatch(batch, name, _shared_environment(first), first.wrapped.command.cwd)
        write_json(number_path(folder), {"job": number})
    except OSError as error:
        raise BlockedError(
            f"the attempt cannot be submitted: {error.strerror or error}", where=str(first.files.root)
        ) from error
    return [record.job(number) for record in records]


def _write_task(task: Task, record: Submitted) -> None:
    command, files = task.wrapped.command, task.files
    env = environment(command)
    shared = _shared_environment(task)
    write_atomic(files.command, script(command))
    write_json(files.env, redact.environment(env))
    own = {key: value for key, value in env.items() if shared.get(key) != value and not _dropped(key)}
    write_json(files.job, spec(task) | {"exit": str(supervisor_record(files)), "env": own})
    write_json(record_path(files), record)


def _shared_environment(task: Task) -> dict[str, str]:
    """What all attempts of one submission get from ``sbatch``; of a command's own variables only the secret ones.

    Secrets go this way alone: they stand in no file of the run. The variables of an allocation in which proveout
    itself runs are left out.
    """
    command = task.wrapped.command
    env = environment(Command(argv=(), unset=command.unset))
    env |= {key: value for key, value in command.env.items() if _secret(key, value)}
    return {key: value for key, value in env.items() if not _dropped(key)}


def _dropped(key: str) -> bool:
    return key.startswith(("SLURM_", "SLURMD_", "PMI_", "PMIX_")) and key not in _KEPT and key in os.environ


def _secret(key: str, value: str) -> bool:
    return redact.environment({key: value})[key] != value


def _alike(task: Task) -> bytes:
    """Equal for tasks that may be tasks of one array."""
    return msgspec.json.encode(
        [
            task.resources.nodes,
            task.resources.gpus,
            task.resources.timeout_minutes,
            task.wrapped.batch_options,
            sorted(_shared_environment(task).items()),
            task.site.table("slurm", SlurmSettings),
        ]
    )


def _sbatch(batch: Path, name: str, env: dict[str, str], cwd: str) -> str:
    """Submit, and try again while the controller does not answer; a call that got through unheard is found by name."""
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, 1.0
    folder = cwd if Path(cwd).is_dir() else str(batch.parent)
    while True:
        try:
            answer = slurm(("sbatch", "--parsable", str(batch)), env=env, cwd=folder)
            return answer.strip().splitlines()[-1].partition(";")[0]
        except UnreachableError as error:
            if time.monotonic() + pause > deadline:
                raise BlockedError(
                    f"Slurm takes no job: {error}", remedy="'proveout resume' when it answers again"
                ) from error
            time.sleep(pause)
            pause = min(pause * 2, 30.0)
            if number := _found(name):
                return number


def _found(name: str) -> str:
    try:
        return query.find(name)
    except UnreachableError:
        return ""
