"""What Slurm says of one job, and which of its states are final. Source of the states: squeue(1), JOB STATE CODES."""

from __future__ import annotations

import pwd
import re

import msgspec

TERMINAL = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
"""Nothing follows these; every other state (COMPLETING, REQUEUED, SUSPENDED and what a later Slurm adds) goes on."""

BY_THE_MACHINE = {
    "BOOT_FAIL": "its node did not boot",
    "DEADLINE": "its deadline passed",
    "NODE_FAIL": "its node failed",
    "PREEMPTED": "it was preempted by another job",
    "REVOKED": "another cluster took the job",
    "TIMEOUT": "the time limit of the job was reached",
}
"""Final states that say nothing of the command, in words."""

_CANCELLED = re.compile(r"CANCELLED(?: by (\d+))?\+?")


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """One job or array task: exit ``code`` and ``signal`` as Slurm has them, times it was restarted, who cancelled it.

    ``known`` is false where Slurm was asked and has no such job (any more).
    """

    id: str
    state: str
    code: int = 0
    signal: int = 0
    restarts: int = 0
    reason: str = ""
    nodes: str = ""
    limit: str = ""
    by: str = ""
    known: bool = True

    @property
    def terminal(self) -> bool:
        """Whether nothing follows."""
        return self.state in TERMINAL


def parse_state(text: str) -> tuple[str, str]:
    """The state, and who cancelled the job where that is told: ``CANCELLED by 1000`` -> (CANCELLED, a user's name)."""
    found = _CANCELLED.fullmatch(text.strip())
    if found is None:
        return text.strip(), ""
    return "CANCELLED", _user(int(found[1])) if found[1] else ""


def parse_exit(text: str) -> tuple[int, int]:
    """``CODE:SIGNAL``, or a wait status as squeue prints it, as (code, signal)."""
    code, colon, signal = text.strip().partition(":")
    if colon:
        return _number(code), _number(signal)
    status = _number(code)
    return status >> 8 & 0xFF, status & 0x7F


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid {number}"
