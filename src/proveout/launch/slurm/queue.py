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
SETTLING_SECONDS = 60.0


class Queue:
    """The last known state of every watched job.

    Never more than one call a second, fewer where an answer is long; after a call that showed nothing new the
    next one waits longer, up to half a minute, unless somebody has a reason to ask at once.
    """

    def __init__(self) -> None:
        self._watched: dict[str, float] = {}
        self._known: dict[str, JobState] = {}
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
        accounts = query.accounting()
        try:
            answer = query.states(open_jobs, accounts=accounts)
        except (UnreachableError, BlockedError) as error:
            self.trouble = str(error)
            self.trouble_since = self.trouble_since or time.monotonic()
            self._interval = min(self._interval * GROWTH, LONGEST_SECONDS)
            return
        self.trouble, self.trouble_since = "", None
        changed = False
        for job in open_jobs:
            found = answer.get(job) or _of_array(answer, job) or self._missing(job, accounts)
            changed = changed or found != self._known.get(job)
            if found is not None:
                self._known[job] = found
        self._interval = SHORTEST_SECONDS if changed else min(self._interval * GROWTH, LONGEST_SECONDS)

    def _is_final(self, job: str) -> bool:
        known = self._known.get(job)
        return known is not None and known.terminal

    def _missing(self, job: str, accounts: bool) -> JobState | None:
        """A job that Slurm does not list: gone, unless the accounting has not heard of it yet."""
        if accounts and time.monotonic() - self._watched[job] < SETTLING_SECONDS:
            return self._known.get(job)
        return JobState(id=job, state="", known=False)


def _of_array(answer: dict[str, JobState], job: str) -> JobState | None:
    """The state of a task by its array's: of one that was cancelled before any task began nothing else is left."""
    array = answer.get(job.partition("_")[0])
    return replace(array, id=job) if array is not None and array.terminal else None


QUEUE = Queue()
"""The one queue of this process."""
