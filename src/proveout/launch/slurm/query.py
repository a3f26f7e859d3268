"""The state of any number of jobs in one call: from the controller, or from the accounting where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from proveout.domain.errors import BlockedError
from proveout.launch.slurm.programs import slurm
from proveout.launch.slurm.states import JobState, parse_exit, parse_state

_SQUEUE = "JobArrayID:|,State:|,exit_code:|,Reason:|,NodeList:|,TimeLimit:|,RestartCnt:|"
_SACCT = "JobID,State,ExitCode,Reason,NodeList,Timelimit"
_UNKNOWN_JOB = "Invalid job id specified"


@cache
def accounting() -> bool:
    """Whether this cluster keeps an accounting that sacct can read; asked once."""
    try:
        slurm(("sacct", "--noheader", "--starttime=now"))
    except BlockedError:
        return False
    return True


def states(jobs: Iterable[str], *, accounts: bool) -> dict[str, JobState]:
    """What Slurm knows of these jobs (array tasks as ``12_3``); a job that is not in the answer is not known.

    ``--parsable2`` matters: without it the accounting cuts states to ten characters. Raises UnreachableError.
    """
    numbers = sorted({job.partition("_")[0] for job in jobs}, key=int)
    if accounts:
        argv = ["sacct", "--parsable2", "--noheader", "--allocations"]
        return parse(slurm([*argv, f"--jobs={','.join(numbers)}", f"--format={_SACCT}"]))
    argv = ["squeue", "--noheader", "--array", "--states=all", f"--jobs={','.join(numbers)}"]
    try:
        return parse(slurm([*argv, f"--Format={_SQUEUE}"]))
    except BlockedError as error:
        if _UNKNOWN_JOB in error.what:
            return {}
        raise


def find(name: str) -> str:
    """The number of the newest job of this name, or ''. Raises UnreachableError."""
    found = slurm(
        ("squeue", "--noheader", "--array", "--states=all", f"--name={name}", "--Format=JobArrayID:|")
    )
    numbers = [line.rstrip("|").partition("_")[0] for line in found.split()]
    return max(numbers, key=int, default="")


def parse(text: str) -> dict[str, JobState]:
    """The lines of squeue or sacct in the formats above, by job.

    The accounting may list tasks both together (``12_[0-5]``) and one by one: the line of its own counts.
    """
    found: dict[str, JobState] = {}
    together: dict[str, JobState] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.rstrip("|").split("|")]
        if len(fields) < 3 or not fields[0][:1].isdigit():
            continue
        fields += [""] * (7 - len(fields))
        state, by = parse_state(fields[1])
        code, signal = parse_exit(fields[2])
        for job in _tasks(fields[0]):
            (found if job == fields[0] else together)[job] = JobState(
                id=job,
                state=state,
                code=code,
                signal=signal,
                reason=fields[3],
                nodes=fields[4],
                limit=fields[5],
                restarts=int(fields[6]) if fields[6].isdigit() else 0,
                by=by,
            )
    return together | found


def _tasks(job: str) -> list[str]:
    """``12_[0-2,5%4]`` as its tasks: the accounting shows those that wait in one line."""
    array, bracket, rest = job.partition("_[")
    if not bracket:
        return [job]
    found = []
    for part in rest.rstrip("]").partition("%")[0].split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found += [f"{array}_{number}" for number in range(int(first), int(last or first) + 1)]
    return found
