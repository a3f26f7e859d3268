"""What the history keeps of one run."""

from __future__ import annotations

import msgspec


class MetricRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One series of one step, summed up over its training steps.

    ``tail`` is the mean of its last 10 values. ``low``, ``high`` and the rest are of finite values only and None
    where there is none; ``non_finite`` counts the others. ``machine`` says that it measures the machine.
    """

    tag: str
    points: int
    non_finite: int = 0
    first: float | None = None
    last: float | None = None
    tail: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    machine: bool = False


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a run, judged by its last attempt.

    ``seconds`` is how long that attempt ran, None where it did not. ``verdicts`` are those of all attempts, oldest
    first. ``command`` is a hash of the command without where things lie, ``recipe`` the same without seeds,
    ``cause`` the id of the finding that decided.
    """

    step: str
    loop: str
    level: int
    variant: str
    verdict: str
    reason: str = ""
    verdicts: tuple[str, ...] = ()
    seconds: float | None = None
    command: str = ""
    recipe: str = ""
    boundary: str = ""
    cause: str = ""
    metrics: tuple[MetricRecord, ...] = ()


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Times are seconds since the epoch, ``finished`` 0 while it is incomplete.

    ``change`` tells what was under test, for people (``bridge 1a2b3c4d5+3``: three changed files), '' where no
    checkout is recorded; ``state`` is a hash of every checkout's commit and difference, equal only for equal code.
    ``journal`` is the size of the journal in bytes when the run was indexed.
    """

    id: str
    directory: str
    verdict: str
    started: float
    finished: float = 0.0
    model: str = ""
    version: str = ""
    change: str = ""
    commits: tuple[str, ...] = ()
    state: str = ""
    summary: str = ""
    journal: int = 0
    steps: tuple[StepRecord, ...] = ()


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are asked for; what is empty or None leaves all.

    ``model`` is a part of the model's name, ``commit`` the beginning of a commit of any checkout, ``since`` seconds
    since the epoch.
    """

    loop: str = ""
    level: int | None = None
    variant: str = ""
    model: str = ""
    commit: str = ""
    verdict: str = ""
    since: float | None = None


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one run as the index holds it."""

    run: str
    started: float
    model: str
    change: str
    state: str
    version: str
    step: str
    loop: str
    level: int
    variant: str
    verdict: str
    verdicts: tuple[str, ...]
    seconds: float | None
    command: str
    recipe: str
    boundary: str
    cause: str


class MetricRow(msgspec.Struct, frozen=True, kw_only=True):
    """One series of one step of one run as the index holds it."""

    run: str
    started: float
    model: str
    change: str
    step: str
    loop: str
    level: int
    variant: str
    verdict: str
    command: str
    recipe: str
    tag: str
    points: int
    non_finite: int
    first: float | None
    last: float | None
    tail: float | None
    median: float | None
    low: float | None
    high: float | None
    machine: bool


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run as the index holds it, with its steps as ``loop Lnumber variant: verdict``."""

    id: str
    directory: str
    verdict: str
    started: float
    finished: float
    model: str
    version: str
    change: str
    summary: str
    coverage: tuple[str, ...]
