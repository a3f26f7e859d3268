"""Flight-recorder dumps of torch (NCCL and Gloo): which rank never entered the collective that others wait in.

torch writes one file a rank (``TORCH_FR_DUMP_TEMP_FILE``, ``TORCH_NCCL_DEBUG_INFO_TEMP_FILE``), a pickle of plain
containers or JSON; form: torch/csrc/distributed/c10d/FlightRecorder.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proveout.domain.errors import UsageError
from proveout.domain.evidence import TriageResult
from proveout.domain.finding import Boundary, Citation, Where
from proveout.domain.verdict import Verdict

LARGEST = 256 << 20
_RANK = re.compile(r"(?:rank|_|-|\.)(\d+)(?:\.(?:json|pkl|pickle|dump|pt))?$")
_INTERNAL = re.compile(r"torch[/\\]distributed|c10d_logger|_contextlib")

_REMEDY = (
    "find out what the missing rank did instead; the caller of the collective tells where the others are"
)


@dataclass
class Work:
    """One collective as a rank recorded it."""

    seq: int
    op: str
    sizes: str
    state: str
    caller: str


@dataclass
class RankRecord:
    """What one rank recorded of one process group: the last numbers, and the first collective that did not end."""

    rank: int
    file: Path
    members: tuple[int, ...]
    enqueued: int
    completed: int
    pending: Work | None
    works: dict[int, Work] = field(default_factory=dict)


@dataclass
class Recorded:
    """The ranks of the process group that is stuck, and what follows."""

    group: str
    ranks: dict[int, RankRecord]
    stuck: Work
    waiting: RankRecord
    subkind: str
    blocked: bool
    story: str


def is_dump(path: Path) -> bool:
    """Whether a file looks like a flight-recorder dump, by its first bytes."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        return False
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and len(head) > 2:
        return True
    return head.lstrip()[:1] == b"{" and (b'"pg_config"' in head or b'"collective_seq_id"' in head)


class _Plain(pickle.Unpickler):
    """Containers, numbers and text only: a pickle that names any class or function is refused, never run."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no flight-recorder dump does")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside of it")


def _read(path: Path) -> dict[str, Any]:
    if path.stat().st_size > LARGEST:
        raise UsageError(f"is larger than {LARGEST >> 20} MB", where=str(path), remedy="read its ranks apart")
    data = path.read_bytes()
    try:
        found = _Plain(io.BytesIO(data)).load() if data[:1] == b"\x80" else json.loads(data)
    except Exception as error:
        raise UsageError(
            f"is no readable flight-recorder dump: {error}",
            where=str(path),
            remedy="leave the file out, or copy it again",
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("entries"), list):
        raise UsageError(
            "is no flight-recorder dump: it has no entries", where=str(path), remedy="leave the file out"
        )
    return found


def records(path: Path) -> dict[str, RankRecord]:
    """One dump, by process group. Raises UsageError for a file that is not a dump or names a class."""
    data = _read(path)
    named = _RANK.search(path.name)
    rank = data.get("rank", int(named[1]) if named else -1)
    if not isinstance(rank, int) or rank < 0:
        raise UsageError(
            "does not say whose dump it is",
            where=str(path),
            remedy="keep the rank at the end of the file's name",
        )
    status, config = data.get("pg_status") or {}, data.get("pg_config") or {}
    found: dict[str, RankRecord] = {}
    for entry in data["entries"]:
        if isinstance(entry, dict) and not entry.get("is_p2p"):
            _add(found, entry, rank, path)
    for name, record in found.items():
        told = status.get(name) or {}
        record.enqueued = max(record.enqueued, _number(told.get("last_enqueued_collective")))
        record.completed = max(record.completed, _number(told.get("last_completed_collective")))
        record.members = _members((config.get(name) or {}).get("ranks"))
    return found


def _add(found: dict[str, RankRecord], entry: dict[str, Any], rank: int, path: Path) -> None:
    group = entry.get("process_group") or [entry.get("pg_id", 0)]
    name = str(group[0] if isinstance(group, (list, tuple)) else group)
    record = found.setdefault(name, RankRecord(rank, path, (), -1, -1, None))
    seq = _number(entry.get("collective_seq_id", entry.get("seq_id")))
    work = Work(
        seq,
        str(entry.get("profiling_name", "?")),
        f"{entry.get('input_sizes')} {entry.get('input_dtypes')}",
        str(entry.get("state", "?")),
        _caller(entry.get("frames")),
    )
    record.works[seq] = work
    record.enqueued = max(record.enqueued, seq)
    if work.state == "completed":
        record.completed = max(record.completed, seq)
    elif record.pending is None or seq < record.pending.seq:
        record.pending = work


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def _members(ranks: object) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(ranks or "")))


def _caller(frames: object) -> str:
    """The innermost frame that is not torch's own."""
    for frame in frames if isinstance(frames, list) else []:
        file = str(frame.get("filename", "")) if isinstance(frame, dict) else ""
        if file and not _INTERNAL.search(file):
            return f"{file}:{frame.get('line')} in {frame.get('name')}"
    return ""


def analyse(paths: Sequence[Path]) -> Recorded | None:
    """The process group whose collective did not end, or None where all ended. Raises UsageError."""
    groups: dict[str, dict[int, RankRecord]] = {}
    for path in paths:
        for name, record in records(path).items():
            groups.setdefault(name, {})[record.rank] = record
    stuck = [(name, ranks) for name, ranks in groups.items() if any(r.pending for r in ranks.values())]
    if not stuck:
        return None
    return _judge(*max(stuck, key=lambda item: len(item[1])))


def _judge(group: str, ranks: dict[int, RankRecord]) -> Recorded:
    waiting = min(
        (r for r in ranks.values() if r.pending), key=lambda r: (r.pending.seq if r.pending else 0, r.rank)
    )
    work = waiting.pending
    assert work is not None  # noqa: S101 - by the choice above
    members = sorted({*ranks, *waiting.members})
    silent = [rank for rank in members if rank not in ranks]
    behind = [r.rank for r in ranks.values() if r.enqueued < work.seq]
    kinds = {(w.op, w.sizes) for r in ranks.values() if (w := r.works.get(work.seq)) is not None}
    parts = [
        f"process group {group}: rank {waiting.rank} waits in collective {work.seq}, {work.op} of {work.sizes}"
        + (f", called at {work.caller}" if work.caller else "")
    ]
    if behind:
        told = ", ".join(f"{rank} (last {ranks[rank].enqueued})" for rank in sorted(behind)[:8])
        parts.append(f"missing from it: rank {told}")
    if silent:
        parts.append(f"no dump of rank(s) {', '.join(map(str, silent[:8]))}: they ended, or are missing too")
    if len(kinds) > 1:
        parts.append("ranks disagree on it: " + "; ".join(sorted(f"{op} of {sizes}" for op, sizes in kinds)))
    blocked = work.seq <= 1 and all(r.completed < 1 for r in ranks.values())
    subkind = "collective-mismatch" if len(kinds) > 1 else "missing-rank" if behind or silent else "stuck"
    return Recorded(group, ranks, work, waiting, subkind, blocked, "; ".join(parts))


def table(recorded: Recorded) -> str:
    """The per-rank sequence table as text."""
    rows = [f"{'rank':>5} {'completed':>9} {'enqueued':>8}  waits in"]
    for rank, record in sorted(recorded.ranks.items()):
        work = record.pending
        rows.append(
            f"{rank:>5} {record.completed:>9} {record.enqueued:>8}  "
            + (f"{work.seq} {work.op}" if work else "-")
        )
    return "\n".join(rows)


def result(found: Recorded, *, cause: Citation | None, **rest: Any) -> TriageResult:
    """The answer that the dumps give; without a ``cause`` it cites the dump of a rank that waits."""
    place = Where(file=str(found.waiting.file))
    return TriageResult(
        boundary=Boundary.HANG,
        verdict=Verdict.BLOCKED if found.blocked else Verdict.FAIL,
        subkind=found.subkind,
        confidence="medium" if found.subkind == "stuck" else "high",
        cause=cause or Citation(what=found.story, where=place, text=table(found)),
        remedy=f"{found.story}; {_REMEDY}",
        **rest,
    )


def only(found: Recorded | None, dumps: Sequence[Path]) -> TriageResult:
    """The answer where nothing but dumps was given."""
    if found is not None:
        return result(found, cause=None, stage="train_step")
    return TriageResult(
        boundary=Boundary.UNKNOWN,
        verdict=Verdict.INCOMPLETE,
        subkind="no-cause",
        stage="train_step",
        confidence="low",
        remedy="give the log of the run too",
        undecided_because=f"every collective in {len(dumps)} flight-recorder dump(s) ended",
    )
