"""Scheduler ``ray``: attempts as jobs of Ray's Jobs API, each under the supervisor, which sees how it ended."""

from __future__ import annotations

import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proveout.domain import redact
from proveout.domain.checkout import import_roots
from proveout.domain.errors import BlockedError
from proveout.domain.evidence import ExitRecord
from proveout.domain.files import read_json, write_atomic, write_json
from proveout.domain.layout import AttemptLayout
from proveout.launch import supervise
from proveout.launch.base import Job, Task
from proveout.launch.files import checkouts_of, environment, lost, script, spec
from proveout.launch.ray import probe
from proveout.launch.ray.cluster import Cluster, ray_program
from proveout.launch.ray.job import RayJob, RayRecord, record_path
from proveout.launch.ray.jobs import Jobs, RefusedError, UnreachableError
from proveout.launch.ray.settings import RaySettings, address_of
from proveout.launch.site import LaunchSite

STOP_WAIT = {"RAY_JOB_STOP_WAIT_TIME_S": "10"}
NOT_READY = "No available agent"
POLL_SECONDS = 0.5


class RayScheduler:
    """Starts attempts as Ray jobs."""

    name = "ray"

    def check(self, site: LaunchSite) -> None:
        """Raises UsageError for an address that is none."""
        address_of(_settings(site))

    def submit(self, tasks: Sequence[Task]) -> list[Job]:
        """Start a job for each. Raises BlockedError where no cluster answers or takes it."""
        return [self._start(task) for task in tasks]

    def reattach(self, files: AttemptLayout, site: LaunchSite) -> Job | ExitRecord:
        """The job that an earlier proveout started, or how it ended."""
        if not record_path(files).exists():
            Cluster(files).stop()
            return (
                read_json(files.exit, ExitRecord)
                if files.exit.exists()
                else lost(files, "proveout died before the job was submitted")
            )
        job = RayJob(files, read_json(record_path(files), RayRecord), _settings(site).lost_seconds)
        return job.poll() or job

    def cancel(self, jobs: Sequence[Job]) -> list[ExitRecord]:
        """Ask all to stop before waiting for any."""
        for job in jobs:
            if isinstance(job, RayJob):
                job.ask()
        return [job.cancel() for job in jobs]

    def _start(self, task: Task) -> Job:
        settings, files = _settings(task.site), task.files
        env = environment(task.wrapped.command)
        handed = _handed(task, env)
        address = address_of(settings)
        own = not address
        python = sys.executable if own else settings.python
        try:
            write_atomic(files.command, script(task.wrapped.command))
            write_json(files.env, redact.environment(handed))
            shutil.copyfile(supervise.__file__, files.root / "supervise.py")
            write_json(files.job, spec(task) | {"unset": list(task.wrapped.command.unset)})
        except OSError as error:
            raise BlockedError(
                f"the attempt cannot be started: {error.strerror or error}", where=str(files.root)
            ) from error
        cluster = Cluster(files)
        try:
            if own:
                program = ray_program(settings, task.wrapped.command)
                address = cluster.start(program, settings, task.wrapped.command.env, task.resources)
            record = RayRecord(address=address, job=f"proveout-{secrets.token_hex(8)}", own_cluster=own)
            jobs = Jobs(address)
            version = _asked(jobs.version, address)
            ray_python = str(Path(program).with_name("python")) if own else python
            _probe(jobs, task, ray_python, handed, settings)
            write_json(record_path(files), record)
            words = [python, "-I", str(files.root / "supervise.py"), str(files.job)]
            _submit(
                jobs, record.job, shlex.join(words), handed=handed, task=task, patience=settings.start_seconds
            )
        except BaseException:
            cluster.stop()
            raise
        _note(files, {"ray": f"{address} (Ray {version})", "ray job": record.job}, task, handed, own=own)
        return RayJob(files, record, settings.lost_seconds)


def _settings(site: LaunchSite) -> RaySettings:
    return site.table("ray", RaySettings)


def _handed(task: Task, env: dict[str, str]) -> dict[str, str]:
    """What goes into the runtime environment: no secret, since Ray shows it to everyone who can see the cluster."""
    wanted = dict(task.wrapped.command.env)
    wanted |= {name: env[name] for name in (*task.site.env, "PYTHONPATH") if name in env}
    return {name: value for name, value in sorted(wanted.items()) if not redact.is_secret_name(name)}


def _asked(question: Any, address: str) -> str:
    try:
        return str(question())
    except (UnreachableError, RefusedError) as error:
        raise BlockedError(
            f"no Ray Jobs API answers: {error}",
            where=address,
            remedy="start the cluster's head (ray start --head, with ray[default]), or name another with --ray-address",
        ) from error


def _submit(
    jobs: Jobs, job: str, entrypoint: str, *, handed: dict[str, str], task: Task, patience: float
) -> None:
    """Submit, and again while the head says that its agent is not ready yet."""
    deadline = time.monotonic() + patience
    metadata = {"attempt": str(task.files.root), "tool": "proveout"}
    while True:
        try:
            jobs.submit(job, entrypoint, runtime_env={"env_vars": handed | STOP_WAIT}, metadata=metadata)
            return
        except RefusedError as error:
            if NOT_READY not in str(error) or time.monotonic() > deadline:
                raise BlockedError(f"Ray refused the job: {error}", where=jobs.address) from error
        except UnreachableError as error:
            try:
                jobs.state(job)
                return
            except (UnreachableError, RefusedError):
                raise BlockedError(f"the job could not be submitted: {error}", where=jobs.address) from error
        time.sleep(POLL_SECONDS)


def _probe(jobs: Jobs, task: Task, python: str, handed: dict[str, str], settings: RaySettings) -> None:
    """Ask a worker of every node from where it imports what is under test; the answer begins the attempt's log."""
    checkouts = checkouts_of(task.files)
    role = next((each.role for each in checkouts if each.role in ("nemo-rl", "verl")), "")
    modules = sorted(import_roots({each.role: each.path for each in checkouts}, role))
    if not modules or not settings.probe:
        return
    program = task.files.root / "probe.py"
    shutil.copyfile(probe.__file__, program)
    job = f"proveout-probe-{secrets.token_hex(8)}"
    _submit(
        jobs,
        job,
        shlex.join([python, str(program), *modules]),
        handed=handed,
        task=task,
        patience=settings.start_seconds,
    )
    deadline = time.monotonic() + probe.SECONDS + settings.start_seconds
    while not _asked_state(jobs, job).terminal and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    said = [line for line in _asked(lambda: jobs.logs(job), jobs.address).splitlines() if line.strip()]
    found = [line for line in said if line.startswith("[import] ")] or [
        f"proveout: the import probe in the Ray cluster answered nothing: {(said or ['no output'])[-1][:300]}"
    ]
    with task.files.log.open("a", encoding="utf-8") as log:
        log.write("\n".join(found) + "\n")


def _asked_state(jobs: Jobs, job: str) -> Any:
    try:
        return jobs.state(job)
    except (UnreachableError, RefusedError) as error:
        raise BlockedError(f"the Ray cluster stopped answering: {error}", where=jobs.address) from error


def _note(
    files: AttemptLayout, facts: dict[str, str], task: Task, handed: dict[str, str], *, own: bool
) -> None:
    from proveout.launch.launching import add_facts

    kept = sorted(set(task.wrapped.command.env) - set(handed))
    if kept and not own:
        facts = facts | {"not handed to the cluster (secret)": ", ".join(kept)}
    if own:
        facts = facts | {"ray cluster": "started for this attempt, stopped after it"}
    add_facts(files, facts)


SCHEDULER = RayScheduler()
