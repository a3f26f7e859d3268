"""How an attempt ended, from what its supervisor wrote and what Slurm says; where they disagree, that is told."""

from __future__ import annotations

import time

from msgspec.structs import replace

from proveout.domain.evidence import End, ExitRecord
from proveout.launch.slurm.states import BY_THE_MACHINE, JobState

_SIGKILL = 9


def reconcile(
    said: ExitRecord | None, state: JobState, *, launcher: str, started: bool, asked: bool, log: str
) -> ExitRecord:
    """The one record of an attempt whose job is over.

    ``said`` is the supervisor's own record, None where it left none; ``started`` whether it began; ``asked``
    whether proveout itself cancelled the job; ``log`` names Slurm's own log of the job. Only a job that both
    call good is good.
    """
    base = said or ExitRecord(end=End.LOST, finished=time.time(), launcher=launcher)
    told = f"Slurm job {state.id}: {state.state or 'not known any more'}"
    if (by_slurm := _by_slurm(said, state, told, asked)) is not None:
        end, detail = by_slurm
        signal = _SIGKILL if end is End.SIGNALLED else None
        return replace(base, end=end, code=None, signal=signal, detail=detail)
    if said is None:
        return _without_file(base, state, told, started, log)
    if not state.known:
        return replace(
            said, detail=_joined(said.detail, "Slurm no longer knows the job: its exit file alone")
        )
    return _compared(said, state, told)


def _by_slurm(said: ExitRecord | None, state: JobState, told: str, asked: bool) -> tuple[End, str] | None:
    """How Slurm itself ended the job, which counts whatever the file says; None where it did not."""
    if state.restarts:
        times = f"{state.restarts} times" if state.restarts > 1 else "once"
        return End.EVICTED, f"{told}; Slurm requeued it {times}, and an attempt is run once only"
    if state.state in BY_THE_MACHINE:
        limit = f" ({state.limit})" if state.state == "TIMEOUT" and state.limit else ""
        why = BY_THE_MACHINE[state.state]
        return End.EVICTED, f"{told}: {why}{limit}{_on(state)}{_but(said)}"
    if state.state == "CANCELLED" or (asked and not state.known and said is None):
        return End.INTERRUPTED, _cancelled(said, state, told, asked)
    if state.state == "OUT_OF_MEMORY":
        return End.SIGNALLED, f"{told}: more memory than the job was given{_on(state)}{_but(said)}"
    return None


def _compared(said: ExitRecord, state: JobState, told: str) -> ExitRecord:
    """COMPLETED and FAILED against the file. The supervisor's status is the command's, so both must say the same."""
    expected = said.code if said.end is End.EXITED else 128 + (said.signal or 0)
    if said.end not in (End.EXITED, End.SIGNALLED):
        return said
    if expected == state.code and not state.signal and (state.state == "COMPLETED") == (expected == 0):
        return said
    how = f"{told} with exit status {state.code}" + (f", signal {state.signal}" if state.signal else "")
    detail = f"Slurm and the exit file disagree: {how}; the file says {said}"
    if said.ok:
        if state.signal:
            return replace(said, end=End.SIGNALLED, code=None, signal=state.signal, detail=detail)
        return replace(said, code=state.code or 1, detail=detail)
    return replace(said, detail=detail)


def _without_file(base: ExitRecord, state: JobState, told: str, started: bool, log: str) -> ExitRecord:
    if not started and state.known and state.state == "FAILED":
        return replace(
            base,
            end=End.NOT_STARTED,
            detail=f"{told} before the supervisor started (exit status {state.code}); see {log}",
        )
    return replace(base, detail=f"{told}, and no exit file was left{_on(state)}; see {log}")


def _cancelled(said: ExitRecord | None, state: JobState, told: str, asked: bool) -> str:
    if asked:
        return "stopped on request"
    who = f"by {state.by}" if state.by else "by somebody else (Slurm does not say by whom without accounting)"
    return f"{told} {who}{_but(said)}"


def _but(said: ExitRecord | None) -> str:
    return f"; the exit file says {said}" if said is not None and said.end is not End.INTERRUPTED else ""


def _on(state: JobState) -> str:
    return f" on {state.nodes}" if state.nodes else ""


def _joined(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second
