"""What the model holds for plots and timelines, from metric tables."""

from __future__ import annotations

import math
from array import array
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.samples import attempt

from proveout.domain.evidence import End, ExitRecord
from proveout.domain.finding import Citation, Finding, Severity, Where
from proveout.domain.metrics import MetricTable, Series
from proveout.domain.verdict import Verdict
from proveout.flow.plots import offending, plots, thinned
from proveout.flow.timeline import timeline

STRANGE = (math.nan, math.inf, -math.inf)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 1500),
    most=st.integers(20, 200),
    keep=st.sets(st.integers(0, 1499), max_size=5),
    strange=st.sampled_from([0.0, 0.05, 1.0]),
)
def test_thinning_keeps_ends_marks_and_extremes(
    seed: int, count: int, most: int, keep: set[int], strange: float
) -> None:
    random = Random(seed)
    values = [
        random.choice(STRANGE) if random.random() < strange else random.gauss(0, 1) for _ in range(count)
    ]
    series = Series(array("q", range(len(values))), array("d", values))
    kept = thinned(series, most, keep)
    assert kept == sorted(set(kept))
    assert {0, len(values) - 1} <= set(kept)
    assert {step for step in keep if step < len(values)} <= set(kept)
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        assert {min(finite), max(finite)} <= {values[i] for i in kept}
    assert len(kept) <= 2 * most + len(keep) + 2
    if any(not math.isfinite(value) for value in values):
        assert any(not math.isfinite(values[i]) for i in kept)


def test_offending_steps_come_from_findings_their_evidence_and_the_cause() -> None:
    wrong = Finding(
        id="a.b.c",
        severity=Severity.ERROR,
        what="w",
        where=Where(metric="train/loss", step=3),
        evidence=(Citation(what="e", where=Where(metric="train/reward", step=2)),),
    )
    notice = Finding(id="a", severity=Severity.NOTICE, what="w", where=Where(metric="train/lr", step=1))
    found = offending(attempt(Verdict.FAIL, findings=(wrong, notice)))
    assert found == {"train/loss": {3}, "train/reward": {2}}


def test_a_baseline_is_plotted_under_the_tags_of_the_run() -> None:
    ours = MetricTable({"train/reward": Series.of({1: 0.1, 2: math.inf})})
    theirs = MetricTable({"train/reward": Series.of({1: 0.2}), "train/loss": Series.of({1: 1.0})})
    found = list(plots("s", "bench", attempt(Verdict.PASS), ours, theirs))
    assert [(one.tag, one.role, one.values) for one in found] == [
        ("train/reward", "candidate", (0.1, None)),
        ("train/reward", "baseline", (0.2,)),
    ]


def timed(count: int, *, began: float = 100.0, wall: bool = True) -> MetricTable:
    """Steps of 2 s, of which generation takes 0.5 s, after 1 s of set-up that begins 3 s after the start."""
    known = array("d", [began + 4 + 2 * step if wall else math.nan for step in range(1, count + 1)])
    steps = array("q", range(1, count + 1))
    setup = Series(array("q", [0]), array("d", [1.0]), array("d", [began + 4 if wall else math.nan]))
    return MetricTable(
        {
            "timing/setup/total_setup_time_s": setup,
            "timing/train/total_step_time": Series(steps, array("d", [2.0] * count), known),
            "timing/train/generation": Series(steps, array("d", [0.5] * count), known),
        }
    )


def ended(length: float, began: float = 100.0) -> ExitRecord:
    return ExitRecord(end=End.EXITED, code=0, started=began, finished=began + length)


def test_phases_lie_end_to_end_over_the_whole_attempt() -> None:
    found = timeline(timed(2), ended(9.0))
    assert [(phase.name, phase.start, phase.end, phase.of) for phase in found] == [
        ("start-up", 0.0, 3.0, ""),
        ("set-up", 3.0, 4.0, ""),
        ("generation", 4.0, 4.5, "step 1"),
        ("other", 4.5, 6.0, "step 1"),
        ("generation", 6.0, 6.5, "step 2"),
        ("other", 6.5, 8.0, "step 2"),
        ("end", 8.0, 9.0, ""),
    ]


def test_a_long_run_is_shown_in_groups_that_lose_no_time() -> None:
    found = timeline(timed(1000), ended(2010.0))
    assert len(found) < 100
    assert sum(phase.end - phase.start for phase in found if phase.name == "generation") == 500.0
    assert found[2].of == "steps 1 to 25"


def test_without_wall_times_nothing_is_made_up() -> None:
    assert [(p.name, p.end) for p in timeline(timed(3, wall=False), ended(9.0))] == [("attempt", 9.0)]
    assert timeline(timed(3), ExitRecord(end=End.LOST)) == ()


def test_clocks_that_disagree_give_no_negative_span() -> None:
    for phase in timeline(timed(3, began=0.0), ended(9.0)):
        assert phase.end >= phase.start >= 0
