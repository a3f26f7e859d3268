"""Hangs: which rank is behind, by the sequence numbers that NCCL's watchdog prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proveout.triage.scan import Event

_WATCHDOG = re.compile(r"WorkNCCL\(SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<numel>\d+))?")
_RANK = re.compile(r"\[Rank (?P<rank>\d+)\]|\bRank (?P<other>\d+)\]")
_DONE = re.compile(r"last enqueued work: (?P<enqueued>-?\d+), last completed work: (?P<done>-?\d+)")
_AT = re.compile(r"at work sequence id: (?P<seq>\d+)")
_NRANKS = re.compile(rb"\bnranks (\d+)")


@dataclass
class RankState:
    """What one rank said: the collective it waited in, and the last one that it finished."""

    rank: int
    seq: int | None = None
    op: str = ""
    numel: int | None = None
    done: int | None = None
    event: Event | None = None


@dataclass
class Hang:
    """The table of all ranks that spoke, and what follows from it."""

    ranks: dict[int, RankState]
    first: Event
    behind: int
    missing: tuple[int, ...]
    subkind: str
    blocked: bool
    story: str


def table(events: Sequence[Event]) -> dict[int, RankState]:
    """Sequence number, operation and last finished collective of every rank that reported."""
    ranks: dict[int, RankState] = {}
    for event in events:
        text = event.line.text
        found = _RANK.search(text)
        number = int(found["rank"] or found["other"]) if found else event.line.rank
        if number is None:
            continue
        state = ranks.setdefault(number, RankState(number))
        work = _WATCHDOG.search(text)
        if work and (state.seq is None or int(work["seq"]) < state.seq):
            state.seq, state.op = int(work["seq"]), work["op"]
            state.numel = int(work["numel"]) if work["numel"] else None
            state.event = event
        done = _DONE.search(text)
        if done:
            state.done = int(done["done"])
        at = _AT.search(text)
        if at and state.seq is None:
            state.seq, state.event = int(at["seq"]), event
    return ranks


def analyse(events: Sequence[Event], world: int | None = None) -> Hang | None:
    """The hang that watchdog lines describe, or None where none of them names a collective."""
    ranks = table(events)
    speaking = [state for state in ranks.values() if state.seq is not None and state.event is not None]
    if not speaking:
        return None
    lowest = min(state.seq for state in speaking if state.seq is not None)
    at_lowest = [state for state in speaking if state.seq == lowest]
    first = min((s.event for s in at_lowest if s.event is not None), key=lambda e: (e.file, e.order))
    behind = next(s.rank for s in at_lowest if s.event is first)
    highest = max(ranks)
    size = world if world is not None and world > highest else highest + 1
    missing = tuple(rank for rank in range(size) if rank not in ranks) if size <= 4096 else ()
    kinds = {(state.op, state.numel) for state in at_lowest if state.op}
    done = [state.done for state in ranks.values() if state.done is not None]
    blocked = lowest <= 1 and all(value < 1 for value in done)
    mismatch = len(kinds) > 1
    result = Hang(
        ranks, first, behind, missing, "collective-mismatch" if mismatch else "nccl-watchdog", blocked, ""
    )
    result.story = _story(result, lowest, kinds)
    return result


def _story(stuck: Hang, lowest: int, kinds: set[tuple[str, int | None]]) -> str:
    ranks, behind, missing = stuck.ranks, stuck.behind, stuck.missing
    ahead = sorted(r.rank for r in ranks.values() if r.seq is not None and r.seq > lowest)
    parts = [f"{len(ranks)} rank(s) timed out; the lowest sequence number is {lowest} (rank {behind})"]
    if len(kinds) > 1:
        told = ", ".join(sorted(f"{op} of {numel}" for op, numel in kinds))
        parts.append(f"ranks disagree on that collective: {told}")
    if ahead:
        parts.append(f"rank(s) {_list(ahead)} were already further")
    if missing:
        parts.append(f"rank(s) {_list(missing)} reported nothing: look at what they did last")
    return "; ".join(parts)


def _list(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:8])
    return shown + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def world_size(tail: bytes) -> int | None:
    """The number of ranks that NCCL named, or None."""
    found = _NRANKS.findall(tail)
    return max(map(int, found)) if found else None
