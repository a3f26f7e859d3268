"""One job of a Ray cluster: how it ended, by the supervisor's record and by what Ray says of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json, write_json
from proveout.domain.layout import AttemptLayout
from proveout.launch import supervise
from proveout.launch.files import clean_up, lost
from proveout.launch.ray.cluster import Cluster
from proveout.launch.ray.jobs import Jobs, JobState, RefusedError, UnreachableError

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 10.0
RECORD_SECONDS = 8.0
AGREE_SECONDS = 6.0
CANCEL_SECONDS = 12.0
PAUSE_SECONDS = 0.1


class RayRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Which job an attempt is; written before it is submitted. ``stopped`` says that proveout stopped it."""

    address: str
    job: str
    own_cluster: bool = False
    stopped: bool = False


def record_path(files: AttemptLayout) -> Path:
    """Where the record of an attempt's job stands."""
    return files.root / "ray.json"


class RayJob:
    """One attempt in a Ray cluster."""

    def __init__(self, files: AttemptLayout, record: RayRecord, lost_seconds: float) -> None:
        self._files, self._record, self._lost_seconds = files, record, lost_seconds
        self._jobs = Jobs(record.address)
        self._next, self._pause = 0.0, FIRST_SECONDS
        self._silent_since: float | None = None
        self._terminal_since: float | None = None
        self._ended: ExitRecord | None = None

    def poll(self) -> ExitRecord | None:
        """How it ended, or None while it runs.

        The supervisor's record decides, unless Ray contradicts it; without one, what Ray says; and where the
        cluster does not answer any more, the attempt was ended with it.
        """
        if self._ended is None:
            if self._files.exit.exists():
                self._end(self._agreed(read_json(self._files.exit, ExitRecord)))
            elif time.monotonic() >= self._next:
                self._look()
        return self._ended

    def ask(self) -> None:
        """Ask the job to stop, and do not wait."""
        if self.poll() is None:
            self._record = msgspec.structs.replace(self._record, stopped=True)
            write_json(record_path(self._files), self._record)
            self._signal(signal.SIGTERM)
            with contextlib.suppress(UnreachableError, RefusedError):
                self._jobs.stop(self._record.job)

    def cancel(self) -> ExitRecord:
        """Stop the job with everything below it, and the cluster where it is the attempt's own."""
        self.ask()
        deadline = time.monotonic() + CANCEL_SECONDS
        while self._ended is None and not self._files.exit.exists() and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
        if self._ended is None and self._files.exit.exists():
            self._end(read_json(self._files.exit, ExitRecord))
        if self._ended is None:
            self._kill()
            self._end(self._write(End.INTERRUPTED, "stopped on request; its supervisor left no record"))
        assert self._ended is not None  # noqa: S101 - both ways above set it
        return self._ended

    def _look(self) -> None:
        """Ask Ray, less often the longer nothing changes."""
        self._next = time.monotonic() + self._pause
        self._pause = min(self._pause * 1.5, LONGEST_SECONDS)
        try:
            state = self._jobs.state(self._record.job)
        except UnreachableError as error:
            self._unreachable(str(error))
            return
        except RefusedError:
            self._gone("the Ray head does not know the job any more (it was started again)")
            return
        self._silent_since = None
        if not state.terminal:
            return
        self._next, now = 0.0, time.monotonic()
        self._terminal_since = self._terminal_since or now
        waited = now - self._terminal_since >= RECORD_SECONDS
        if waited or not self._files.process.exists() or not self._supervised():
            self._without_record(state)

    def _unreachable(self, why: str) -> None:
        self._next, now = time.monotonic() + FIRST_SECONDS, time.monotonic()
        self._silent_since = self._silent_since or now
        silent = now - self._silent_since
        if silent >= self._lost_seconds or not self._supervised():
            self._gone(f"the Ray head at {self._record.address} does not answer any more ({why})")

    def _gone(self, why: str) -> None:
        """The cluster is gone: so is the attempt, or it is made to be."""
        self._kill()
        if self._files.exit.exists():
            self._end(self._agreed(read_json(self._files.exit, ExitRecord)))
        else:
            self._end(self._write(End.EVICTED, why))

    def _without_record(self, state: JobState) -> None:
        """Ray says that the job is over, but no supervisor wrote how."""
        if self._files.exit.exists():
            return
        with contextlib.suppress(UnreachableError, RefusedError, OSError):
            text = self._jobs.logs(self._record.job)
            (self._files.root / "ray-job.log").write_text(text, encoding="utf-8")
        said = f"Ray says {state.status}: {state.message}"
        if state.status == "STOPPED":
            self._end(self._write(End.INTERRUPTED, f"stopped through Ray by another ({said})"))
        elif not self._files.process.exists():
            self._end(self._write(End.NOT_STARTED, said))
        else:
            self._end(self._write(End.LOST, f"its supervisor died; {said}"))

    def _agreed(self, record: ExitRecord) -> ExitRecord:
        """The supervisor's record, corrected where Ray knows better; written back where it is."""
        if self._record.stopped or record.end not in (End.EXITED, End.INTERRUPTED):
            return record
        state = self._settled_state()
        if record.end is End.INTERRUPTED:
            if state is None:
                return self._correct(
                    record, End.EVICTED, f"the Ray head at {self._record.address} died, and the job with it"
                )
            if state.status == "STOPPED":
                return self._correct(record, End.INTERRUPTED, "stopped through Ray by another")
            if state.status == "FAILED" and "entrypoint command failed" not in state.message:
                return self._correct(record, End.EVICTED, f"Ray ended the job: {state.message}")
        elif record.ok and state is not None and state.status in ("FAILED", "STOPPED"):
            return self._correct(
                record,
                End.EVICTED,
                f"the command ended with exit status 0, but Ray says {state.status}: {state.message}",
            )
        return record

    def _settled_state(self) -> JobState | None:
        """What Ray says once it says something final (or for as long as that may take); None without an answer."""
        deadline, state = time.monotonic() + AGREE_SECONDS, None
        while time.monotonic() < deadline:
            try:
                state = self._jobs.state(self._record.job)
            except (UnreachableError, RefusedError):
                return None
            if state.terminal:
                return state
            time.sleep(PAUSE_SECONDS)
        return state

    def _correct(self, record: ExitRecord, end: End, detail: str) -> ExitRecord:
        code = record.code if end is End.EXITED else None
        corrected = msgspec.structs.replace(record, end=end, code=code, detail=detail)
        write_json(self._files.exit, corrected)
        return corrected

    def _write(self, end: End, detail: str) -> ExitRecord:
        record = lost(self._files, detail)
        return self._correct(record, end, detail)

    def _end(self, record: ExitRecord) -> None:
        self._ended = record
        if record.end in (End.LOST, End.EVICTED) and self._on_this_machine():
            clean_up(self._files)
        if self._record.own_cluster:
            Cluster(self._files).stop()

    def _said(self) -> dict[str, int | str]:
        """What the supervisor wrote of itself; empty where it has not begun."""
        try:
            return read_json(self._files.process, dict[str, int | str])
        except UsageError:
            return {}

    def _on_this_machine(self) -> bool:
        return self._said().get("host") == socket.gethostname()

    def _process(self) -> int | None:
        """The supervisor's number, where it runs on this machine and is alive."""
        said = self._said()
        if said.get("host") != socket.gethostname():
            return None
        pid = int(said["pid"])
        return pid if supervise.start_ticks(pid) == said["start_ticks"] else None

    def _supervised(self) -> bool:
        """Whether the supervisor may still be at work: it is, or nobody here can tell."""
        return not self._on_this_machine() or self._process() is not None

    def _signal(self, number: signal.Signals) -> None:
        pid = self._process()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _kill(self) -> None:
        """End what is left of the attempt on this machine."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + CANCEL_SECONDS
        while self._process() is not None and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
        self._signal(signal.SIGKILL)
