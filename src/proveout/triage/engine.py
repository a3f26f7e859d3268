"""From logs to one answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from proveout.domain.errors import UsageError
from proveout.domain.evidence import ExitRecord, TriageResult
from proveout.domain.finding import Boundary
from proveout.domain.metrics import MetricTable
from proveout.triage import decide, hang, numerics, recorder
from proveout.triage.answers import Answers
from proveout.triage.catalog import Catalog, load
from proveout.triage.decide import Candidate, Sorted
from proveout.triage.ranking import earliest, rank
from proveout.triage.scan import Event, LogScan, Scanner

_STOPS = ("interrupted", "cancelled")


@lru_cache(maxsize=2)
def _built(catalog: Catalog) -> Scanner:
    return Scanner(catalog)


def scanner() -> Scanner:
    """The scanner of the shipped and the user's rules; built once for each catalogue."""
    return _built(load())


def triage(
    logs: Sequence[Path],
    *,
    exit: ExitRecord | None = None,  # noqa: A002 - the name of the interface
    metrics: MetricTable | None = None,
    planned_steps: int | None = None,
    loop: str = "",
) -> TriageResult:
    """Say which boundary failed, from the logs and whatever else is known of the attempt.

    ``logs``: the main console first, then worker, Slurm or kernel logs, plain or gzip, and torch's
    flight-recorder dumps. ``exit`` is how the
    attempt ended, ``metrics`` its metric table, ``planned_steps`` the last training step that was planned,
    ``loop`` the loop's name (only told, never needed). Raises UsageError for a log that cannot be read.
    """
    if not logs:
        raise UsageError("no log to read", remedy="name at least one log file")
    paths = [Path(path) for path in logs]
    dumps = [path for path in paths if recorder.is_dump(path)]
    recorded = recorder.analyse(dumps) if dumps else None
    texts = [path for path in paths if path not in dumps]
    if not texts:
        return recorder.only(recorded, dumps)
    tool = scanner()
    scans = [tool.scan(path, index) for index, path in enumerate(texts)]
    return answer(
        scans, exit=exit, metrics=metrics, planned_steps=planned_steps, loop=loop, recorded=recorded
    )


def answer(
    scans: Sequence[LogScan],
    *,
    exit: ExitRecord | None = None,  # noqa: A002
    metrics: MetricTable | None = None,
    planned_steps: int | None = None,
    loop: str = "",
    recorded: recorder.Recorded | None = None,
) -> TriageResult:
    """The same for logs that were scanned already."""
    del loop
    main = scans[0]
    found, end = decide.sort(scans), decide.ending(main)
    if exit is not None and exit.ok and end.exit_zero < 0:
        end.exit_zero = main.size
    end.failed = exit is not None and not exit.ok
    decide.outlive(found, end)
    ranked = rank(found, scans, end)
    alive = [c for c in ranked if c.score >= 0 and not (exit is not None and exit.ok)]
    answers = Answers(scans, found, end, alive, [c for c in ranked if c not in alive])
    if main.binary:
        return answers.unreadable()
    answers.forget_survived()
    return _choose(answers, exit, metrics, planned_steps, recorded)


def _choose(
    answers: Answers,
    exit_: ExitRecord | None,
    metrics: MetricTable | None,
    planned: int | None,
    recorded: recorder.Recorded | None,
) -> TriageResult:
    """A hard cause before a number, a number before a hang, a hang before what merely looks like a cause."""
    found = answers.found
    best: Candidate | None = answers.alive[0] if answers.alive else None
    best = None if best is not None and _stopped_before(found, best) else best
    reading = numerics.from_log(found.metrics, answers.scans)
    stuck = hang.analyse(found.hangs, hang.world_size(answers.scans[0].tail)) if found.hangs else None
    weak = best is not None and stuck is not None and not _before(best, stuck.first)
    known = best is not None and best.boundary is not Boundary.UNKNOWN and not weak
    firm = best is not None and best.hard and best.rule is not None and not _shown_before(reading, best)
    if best is not None and known and (reading is None or firm):
        return answers.cause(earliest(best, answers.alive))
    if reading is not None:
        return answers.reading(reading)
    if not (exit_ is not None and exit_.ok) and (recorded is not None or stuck is not None):
        return answers.stuck(recorded, stuck)
    told = numerics.from_metrics(metrics) if metrics is not None else None
    if told is not None:
        return answers.metric(told)
    if found.incomplete and not _died_before(found):
        rule = found.incomplete[0].rule
        return answers.incomplete(
            rule.explanation if rule else "the run was interrupted", found.incomplete[0]
        )
    return answers.rest(best, exit_, planned, metrics)


def _stopped_before(found: Sorted, best: Candidate) -> bool:
    """Whether somebody stopped the run before anything failed: what fails afterwards does so because of that."""
    named = best.rule is not None and best.rule.strength > 2
    if not found.incomplete or named or _died_before(found):
        return False
    first = found.incomplete[0]
    told = first.rule is not None and first.rule.subkind in _STOPS and first.trace is None
    return told and first.file == best.event.file == 0 and first.offset < best.event.offset


def _shown_before(reading: Event | None, best: Candidate) -> bool:
    """Whether the numbers themselves showed a numeric failure before something complained of it."""
    if (
        reading is None
        or best.boundary is not Boundary.NUMERICS
        or best.rule is None
        or best.rule.strength > 2
    ):
        return False
    return (reading.file, reading.offset) < (best.event.file, best.event.offset)


def _before(best: Candidate, stuck: Event) -> bool:
    """Whether a failure is why others waited in vain: a rule names it as a root, or it was raised before that."""
    if best.hard or (best.rule is not None and best.rule.strength >= 2):
        return True
    event = best.event
    first = event.file == stuck.file == 0 and event.offset < stuck.offset
    return first and decide.is_exception(event)


def _died_before(found: Sorted) -> bool:
    """Whether a worker had died, nobody knows of what, before somebody interrupted the rest."""
    first = found.incomplete[0]
    return any(
        event.rule is not None
        and event.rule.subkind == "worker-died"
        and (event.file, event.order) < (first.file, first.order)
        for event in found.wrappers
    )
