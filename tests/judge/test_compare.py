"""Two tables compared, golden files, and the baseline criterion that reads them."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.domain.errors import UsageError
from proveout.domain.metrics import MetricTable, Series
from proveout.domain.step import Criterion
from proveout.domain.verdict import Verdict
from proveout.judge import judge
from proveout.judge.compare import compare_tables
from proveout.judge.metricfile import load, save_golden
from proveout.judge.tolerance import Tolerance

NAN, INF = float("nan"), float("inf")


def table(**series):
    return MetricTable({tag.replace("__", "/"): Series.of(points) for tag, points in series.items()})


def test_errors_are_absolute_and_relative_and_name_their_steps():
    found = compare_tables(table(x={1: 1.0, 2: 2.0, 3: 33.0}), table(x={1: 1.1, 2: 1.0, 3: 30.0}))
    (tag,) = found.tags
    assert (tag.max_abs, tag.max_abs_step) == (3.0, 3)
    assert (tag.max_rel, tag.max_rel_step) == (1.0, 2)
    assert tag.offending == (1, 2, 3)
    assert tag.values == (1.0, 2.0, 33.0)
    assert tag.baseline == (1.1, 1.0, 30.0)


def test_the_last_bit_counts_and_nothing_is_rounded():
    value = math.nextafter(1.0, 2)
    assert not compare_tables(table(x={1: value}), table(x={1: 1.0})).ok
    assert compare_tables(table(x={1: value}), table(x={1: value})).ok


def test_lengths_that_differ_are_named_and_no_crash():
    found = compare_tables(table(x={1: 1.0, 2: 1.0}), table(x={2: 1.0, 3: 1.0}))
    (tag,) = found.tags
    assert (tag.only_run, tag.only_baseline, tag.steps) == ((1,), (3,), (2,))
    assert not found.ok
    apart = compare_tables(table(x={1: 1.0}), table(x={2: 1.0}))
    assert not apart.ok


@pytest.mark.parametrize(
    ("value", "baseline"), [(NAN, NAN), (NAN, 1.0), (1.0, NAN), (INF, INF), (INF, 1.0), (-INF, INF)]
)
def test_what_is_not_finite_never_agrees(value, baseline):
    wide = Tolerance(rtol=1e9, atol=1e9)
    assert not compare_tables(table(x={1: value}), table(x={1: baseline}), default=wide).ok


def test_a_zero_baseline_has_an_infinite_relative_error():
    (tag,) = compare_tables(table(x={1: 1e-12}), table(x={1: 0.0})).tags
    assert tag.max_rel == INF


def test_tolerances_are_by_tag_then_glob_then_default():
    run, baseline = table(a={1: 1.04}, b={1: 1.04}, c={1: 1.04}), table(a={1: 1.0}, b={1: 1.0}, c={1: 1.0})
    named = {"a": Tolerance(rtol=0.05), "[ab]": Tolerance(rtol=0.01)}
    found = compare_tables(run, baseline, named, Tolerance(atol=0.1))
    assert [tag.ok for tag in found.tags] == [True, False, True]


def test_tags_that_only_one_side_holds():
    found = compare_tables(table(a={1: 1.0}, b={1: 1.0}), table(a={1: 1.0}, c={1: 1.0}))
    assert (found.only_run, found.only_baseline, found.ok) == (("b",), ("c",), False)
    machine = compare_tables(table(a={1: 1.0}), table(a={1: 1.0}, timing__x={1: 1.0}))
    assert machine.ok


def test_timing_is_compared_but_not_judged_unless_it_is_named():
    run = table(a={1: 1.0}, perf__mfu={1: 1.0})
    baseline = table(a={1: 1.0}, perf__mfu={1: 9.0})
    assert compare_tables(run, baseline).ok
    assert not compare_tables(run, baseline, {"perf/mfu": Tolerance()}).ok
    only = compare_tables(table(perf__mfu={1: 1.0}), table(perf__mfu={1: 1.0}))
    assert not only.ok


VALUE = st.floats(allow_nan=True, allow_infinity=True)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8), st.dictionaries(st.integers(0, 10**9), VALUE, min_size=1)
    )
)
def test_a_golden_file_is_valid_json_and_keeps_every_bit(tmp_path_factory, tables):
    path = tmp_path_factory.mktemp("golden") / "golden.json"
    given_table = MetricTable({tag: Series.of(points) for tag, points in tables.items()})
    tolerances = {tag: Tolerance(rtol=0.125) for tag in list(tables)[:1]}
    save_golden(path, given_table, tolerances, "run")

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    json.loads(path.read_text(), parse_constant=refuse)
    read = load(path)
    assert read.tolerances == tolerances
    assert read.table.tags() == given_table.tags()
    for tag in tables:
        ours, theirs = list(read.table.series[tag]), list(given_table.series[tag])
        assert str(ours) == str(theirs)


class TestMetricFile:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{", "not JSON"),
            ("[1]", "an object of tags"),
            ('{"a": {"1": "x"}}', "a holds 'x', which is no number"),
            ('{"a": {"1": 1, "1": 2}}', "'1' stands twice"),
            ('{"a": {"1": {"b": 1}}}', "which is no number"),
            ("[" * 100_000, "nested too deeply"),
            ('{"format": "proveout golden metrics", "version": 9, "tags": {}}', "version 9"),
        ],
    )
    def test_what_is_no_metrics_file_is_said_with_its_place(self, tmp_path, text, words):
        path = tmp_path / "m.json"
        path.write_text(text)
        with pytest.raises(UsageError) as error:
            load(path)
        assert words in str(error.value)
        assert str(path) in str(error.value)

    def test_bare_and_written_nan_are_read(self, tmp_path):
        path = tmp_path / "m.json"
        path.write_text(
            '{"a": {"1": NaN, "2": "NaN", "3": "-Infinity", "4": Infinity, "5": null, "6": "1.5"}}'
        )
        values = list(load(path).table.series["a"].values)
        assert str(values) == "[nan, nan, -inf, inf, nan, 1.5]"


class TestBaselineCriterion:
    def judged(self, attempt, tmp_path, metrics, **params):
        golden = tmp_path / "golden.json"
        save_golden(golden, table(train__loss={1: 0.5, 2: 0.4, 3: 0.25}), {}, "run")
        asked = {"golden": str(golden)} | params
        return judge(attempt(metrics, criteria=(Criterion(kind="baseline", params=asked),)))

    def test_agreement_holds(self, attempt, tmp_path):
        judgement = self.judged(attempt, tmp_path, {"train/loss": {1: 0.5, 2: 0.4, 3: 0.25}})
        assert judgement.verdict is Verdict.PASS
        assert "train/loss agrees with golden.json at 3 steps" in judgement.results[-1].held[0].what

    def test_a_difference_shows_both_series(self, attempt, tmp_path):
        judgement = self.judged(attempt, tmp_path, {"train/loss": {1: 0.5, 2: 0.4, 3: 0.26}})
        assert [f.id for f in judgement.findings] == ["judge.baseline.differs"]
        assert "step 3: 0.26 against 0.25" in judgement.findings[0].evidence[0].text
        near = {"train/loss": {"rtol": 0.05}}
        assert (
            self.judged(
                attempt, tmp_path, {"train/loss": {1: 0.5, 2: 0.4, 3: 0.26}}, tolerances=near
            ).findings
            == ()
        )

    def test_another_step_can_be_the_baseline(self, attempts):
        other = attempts("main")({"train/loss": {1: 0.5, 2: 0.4, 3: 0.3}})
        criteria = (Criterion(kind="baseline", params={"related": "main"}),)
        evidence = attempts("here")({"train/loss": {1: 0.5, 2: 0.4, 3: 0.3}}, criteria=criteria)
        evidence.related = {"main": other}
        assert judge(evidence).verdict is Verdict.PASS
        evidence.related = {}
        assert judge(evidence).findings[0].id == "judge.baseline.params"

    def test_a_missing_golden_file_is_an_error(self, attempt, tmp_path):
        judgement = self.judged(attempt, tmp_path, None, golden="no-such.json")
        assert [f.id for f in judgement.findings] == ["judge.baseline.params"]

    def test_missing_tags_and_unknown_tags_fail(self, attempt, tmp_path):
        judgement = self.judged(attempt, tmp_path, {"train/reward": {1: 1.0, 2: 1.0, 3: 1.5}})
        assert {f.id for f in judgement.findings} == {
            "judge.baseline.missing",
            "judge.baseline.nothing-common",
        }
        judgement = self.judged(attempt, tmp_path, None, tags=["train/nothing"])
        assert [f.id for f in judgement.findings] == ["judge.baseline.params"]
