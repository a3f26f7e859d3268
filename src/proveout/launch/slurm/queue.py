"""Asks Slurm about all jobs of this process at once, and seldom: more seldom the longer nothing changes."""

from __future__ import annotations

import time

from msgspec.structs import replace

from proveout.domain.errors import BlockedError
from proveout.launch.slurm import query
from proveout.launch.slurm.programs import UnreachableError
from proveout.launch.slurm.states import JobState

SHORTEST_SECONDS = 1.05
LONGEST_SECONDS = 30.0
GROWTH = 1.5
JOBS_A_SECOND = 500
MOST_FOR_MANY_SECONDS = 4.0
SETTLING_SECONDS = 15.0
LATE_SECONDS = 5.0


class Queue:
    """The last known state of every watched job.

    Never more than one call a second, fewer where an answer is long; after a call that showed nothing new the
    next one waits longer, up to half a minute, unless somebody has a reason to ask at once.
    """

    def __init__(self) -> None:
        self._watched: dict[str, float] = {}
        self._known: dict[str, JobState] = {}
        self._missed: dict[str, float] = {}
        self._for_accounting: dict[str, JobState] = {}
        self._interval, self._asked = SHORTEST_SECONDS, float("-inf")
        self.calls = 0
        self.trouble = ""
        self.trouble_since: float | None = None

    def watch(self, job: str) -> None:
        """Ask about this job too."""
        if job not in self._watched:
            self._watched[job] = time.monotonic()
            self._interval = SHORTEST_SECONDS

    def state(self, job: str, *, now: bool = False) -> JobState | None:
        """The job as it was last seen, None before the first answer; ``now`` says that news is expected."""
        self.watch(job)
        known = self._known.get(job)
        if known is None or not known.terminal:
            self._refresh(now)
        return self._known.get(job)

    def forget(self, job: str) -> None:
        """Nobody waits for this job any more."""
        self._watched.pop(job, None)

    def _refresh(self, now: bool) -> None:
        since = time.monotonic() - self._asked
        if since < (SHORTEST_SECONDS if now else self._interval):
            return
        if since < SHORTEST_SECONDS + min(len(self._watched) / JOBS_A_SECOND, MOST_FOR_MANY_SECONDS):
            return
        open_jobs = [job for job in self._watched if not self._is_final(job)]
        if not open_jobs:
            return
        self._asked = time.monotonic()
        self.calls += 1
        try:
            changed = self._ask_accounting() if self._for_accounting else self._ask_controller(open_jobs)
        except (UnreachableError, BlockedError) as error:
            self.trouble = str(error)
            self.trouble_since = self.trouble_since or time.monotonic()
            self._interval = min(self._interval * GROWTH, LONGEST_SECONDS)
            return
        self.trouble, self.trouble_since = "", None
        self._interval = SHORTEST_SECONDS if changed else min(self._interval * GROWTH, LONGEST_SECONDS)

    def _ask_controller(self, jobs: list[str]) -> bool:
        """Whether anything changed. What the controller no longer knows, and who cancelled, the accounting is asked."""
        answer = query.states(jobs, accounts=False)
        accounts = query.accounting()
        changed = False
        for job in jobs:
            found = answer.get(job) or _of_array(answer, job)
            if found is None:
                found = self._missing(job, SETTLING_SECONDS if accounts else LATE_SECONDS)
                if accounts and not found.known:
                    self._for_accounting[job] = found
            else:
                self._missed.pop(job, None)
                if accounts and found.state == "CANCELLED":
                    self._for_accounting[job] = found
            if job not in self._for_accounting:
                changed = self._keep(job, found) or changed
        return changed or bool(self._for_accounting)

    def _ask_accounting(self) -> bool:
        """Whether anything changed: final states that only the accounting still has, and names of who cancelled."""
        asked, self._for_accounting = self._for_accounting, {}
        answer = query.states(asked, accounts=True)
        for job, known in asked.items():
            told = answer.get(job)
            self._keep(job, told if told is not None and told.terminal else known)
        return True

    def _keep(self, job: str, found: JobState) -> bool:
        changed = found != self._known.get(job)
        self._known[job] = found
        return changed

    def _is_final(self, job: str) -> bool:
        known = self._known.get(job)
        return known is not None and known.terminal

    def _missing(self, job: str, patience: float) -> JobState:
        """A job that is not listed: gone, when it was not for a while."""
        now = time.monotonic()
        if now - self._missed.setdefault(job, now) < patience:
            return self._known.get(job) or JobState(id=job, state="")
        return JobState(id=job, state="", known=False)


def _of_array(answer: dict[str, JobState], job: str) -> JobState | None:
    """The state of a task by its array's: of one that was cancelled before any task began nothing else is left."""
    array = answer.get(job.partition("_")[0])
    return replace(array, id=job) if array is not None and array.terminal else None


QUEUE = Queue()
"""The one queue of this process."""
