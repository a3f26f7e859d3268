"""Metric expressions: right on finite data, never fooled by NaN, and nothing else evaluates."""

import math
import statistics
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.domain.metrics import MetricTable, Series
from proveout.judge.expressions import Data
from proveout.judge.expressions.check import check_one
from proveout.judge.expressions.errors import RefusedError
from proveout.judge.expressions.helpers import HELPERS
from proveout.judge.expressions.syntax import parse

NAN, INF = float("nan"), float("inf")


def data(other=None, **series):
    return Data(MetricTable({tag: Series.of(points) for tag, points in series.items()}), other)


def outcome(check, other=None, **series):
    return check_one(data(other, **series), check)


class TestDefectsOfCheckMetrics:
    """Each was executed against NeMo-RL's check_metrics.py, which answers otherwise."""

    @pytest.mark.parametrize(
        ("check", "points"),
        [
            ('max(data["x"]) < 1.05', {1: 1.0, 2: NAN, 3: 0.5}),
            ('min(data["x"]) > 0.2', {1: 1.0, 2: NAN, 3: 0.5}),
            ('ratio_above(data["x"], 1.05) < 0.5', {1: 1.0, 2: NAN, 3: 0.5}),
            ('median(data["x"]) < 1.05', {1: 1.0, 2: NAN, 3: 0.5}),
            ('data["x"]["3"] < 1.05', {1: 1.0, 2: NAN, 3: 0.5}),
            ('not (max(data["x"]) > 1.05)', {1: 1.0, 2: NAN, 3: 0.5}),
            ('len(data["x"]) == 3', {1: 1.0, 2: NAN, 3: 0.5}),
            ('1 < 2 or max(data["x"]) < 0', {1: 1.0, 2: NAN, 3: 0.5}),
            ('mean(data["x"], -1) < 9', {1: 1.0, 2: INF, 3: 0.5}),
        ],
    )
    def test_nan_fails_wherever_it_stands_and_whatever_is_asked(self, check, points):
        found = outcome(check, x=points)
        assert not found.passed
        assert "x is not finite at step 2" in found.message
        assert found.offending["x"] == (2,)

    def test_not_equal_shows_the_measured_value(self):
        found = outcome('max(data["x"]) != 3', x={1: 1.0, 2: 2.0})
        assert (found.passed, found.value) == (True, "2.0")

    def test_chained_comparisons_show_every_side(self):
        found = outcome('0.5 < max(data["x"]) < 1.5', x={1: 1.0, 2: 2.0})
        assert (found.passed, found.value) == (False, "0.5 < 2.0 < 1.5")

    def test_not_shows_what_it_negates(self):
        found = outcome('not (max(data["x"]) > 1.5)', x={1: 1.0, 2: 1.25})
        assert (found.passed, found.value) == (True, "not (1.25 > 1.5)")

    def test_and_or_show_every_part(self):
        check = 'max(data["x"]) < 1 and min(data["x"]) > 0 or data["x"]["1"] == 1'
        assert outcome(check, x={1: 1.0, 2: 1.25}).value == "(1.25 < 1 and 1.0 > 0) or 1.0 == 1"

    def test_all_shows_how_many_hold_and_the_first_that_does_not(self):
        found = outcome('all(v > 0.3 for v in data["x"].values())', x={1: 1.0, 2: 0.25, 3: 0.1})
        assert not found.passed
        assert found.value == "False: 1 of 3 hold, the first that does not: v = 0.25"

    def test_a_value_that_is_compared_with_nothing_fails(self):
        found = outcome('max(data["x"])', x={1: 1.0})
        assert not found.passed
        assert "compares nothing" in found.message

    def test_a_string_with_a_comparison_sign_in_it_is_no_comparison(self):
        assert outcome('"a<b" in data', {"a<b": 1.0}).passed

    def test_a_sparse_series_cut_by_steps_is_pointed_out(self):
        found = outcome('mean(data["x"], -2) < 4', x={10: 1.0, 20: 2.0, 30: 3.0})
        assert found.value == "3.0"
        assert "takes 1 of 3 values" in found.notes[0]

    def test_step_0_that_is_left_out_is_pointed_out(self):
        found = outcome('mean(data["x"]) < 4', x={0: 100.0, 1: 3.0})
        assert found.passed
        assert "leaves out step 0" in found.notes[0]
        assert outcome('mean(data["x"], 0) > 50', x={0: 100.0, 1: 3.0}).passed

    def test_code_is_refused_and_not_run(self, tmp_path):
        target = tmp_path / "made"
        found = outcome(f'__import__("pathlib").Path({str(target)!r}).touch() is None or 1 < 2')
        assert found.refused
        assert not target.exists()

    def test_clamped_checks_are_pointed_out_as_unable_to_fail(self):
        tag = "train/probs_ratio_clamped_min"
        table = Data(MetricTable({tag: Series.of({1: 0.8, 2: 1.0})}))
        assert "ratio_clip" in check_one(table, f'min(data["{tag}"]) > 0.79').vacuous
        assert check_one(table, f'min(data["{tag}"]) > 0.9').vacuous == ""
        wide = {"loss_fn.ratio_clip_min": 0.4, "loss_fn.ratio_clip_max": 0.4}
        assert check_one(table, f'min(data["{tag}"]) > 0.79', wide).vacuous == ""

    def test_the_sentinel_of_no_valid_token_is_pointed_out(self):
        table = Data(MetricTable({"train/probs_ratio_clamped_max": Series.of({1: 1.0, 2: -1.0})}))
        found = check_one(table, 'max(data["train/probs_ratio_clamped_max"]) < 1.21')
        assert "no valid token" in found.notes[0]


class TestMissing:
    def test_a_missing_tag_fails_naming_the_nearest(self):
        table = Data(MetricTable({"train/reward": Series.of({1: 1.0}), "train/loss": Series.of({1: 1.0})}))
        found = check_one(table, 'max(data["train/rewards"]) > 0')
        assert not found.passed
        assert "nearest: train/reward" in found.message

    def test_a_missing_step_fails_naming_the_steps_there_are(self):
        found = outcome('data["x"]["9"] < 1', x={1: 0.5, 4: 0.25})
        assert not found.passed
        assert "its steps are 1 to 4" in found.message

    def test_an_optional_series_can_be_asked_for(self):
        check = '"y" not in data or max(data["y"]) < 1'
        assert outcome(check, x={1: 1.0}).passed
        assert not outcome(check, y={1: 2.0}).passed

    def test_an_empty_series_fails(self):
        assert not outcome('ratio_above(data["x"], 1) < 0.5', x={}).passed
        assert not outcome('all(v > 0 for v in data["x"].values())', x={}).passed

    def test_an_empty_range_fails(self):
        found = outcome('mean(data["x"], 5, 9) < 1', x={1: 0.0, 2: 0.0})
        assert "no value in steps 5 to 8 (its last is 2)" in found.message


POINTS = st.dictionaries(st.integers(0, 60), st.floats(-1e6, 1e6), min_size=1, max_size=40)
BOUND = st.integers(-15, 40)


def chosen(points, start, end):
    """The documented ranges: 1-indexed steps, exclusive end, 0 through the last, negative from the last.

    ``offset`` is what a resumed run lacks at its beginning.
    """
    offset = max(points) - len(points)
    start = start + len(points) + 1 + offset if start < 0 else start
    end = end + len(points) + 1 + offset if end <= 0 else end
    return [value for step, value in sorted(points.items()) if start <= step < end]


class TestSameMeaningOnFiniteData:
    def value(self, check, points):
        found = outcome(check, x=points)
        return found.value, found.message

    @settings(max_examples=150, deadline=None)
    @given(POINTS, BOUND, BOUND)
    def test_mean_and_median_over_ranges_also_of_resumed_runs(self, points, start, end):
        values = chosen(points, start, end)
        for name, function in (("mean", statistics.mean), ("median", statistics.median)):
            shown, message = self.value(f'{name}(data["x"], {start}, {end}) < 1', points)
            if values:
                assert float(shown) == pytest.approx(function(values), rel=1e-12, abs=1e-12)
            else:
                assert "no value in steps" in message

    @settings(max_examples=80, deadline=None)
    @given(POINTS.filter(lambda points: max(points) > 0), st.floats(0, 1))
    def test_mean_without_the_top_share(self, points, share):
        values = sorted(chosen(points, 1, 0))
        kept = values[: int(len(values) * (1.0 - share))] or values[:1] if share else values
        shown, _ = self.value(f'mean(data["x"], ignore_top_p={share!r}) < 1', points)
        assert float(shown) == pytest.approx(statistics.mean(kept), rel=1e-12, abs=1e-12)

    @settings(max_examples=80, deadline=None)
    @given(POINTS, st.floats(-1e6, 1e6))
    def test_extremes_and_ratio(self, points, threshold):
        assert self.value('min(data["x"]) < 1', points)[0] == repr(min(points.values()))
        assert self.value('max(data["x"]) < 1', points)[0] == repr(max(points.values()))
        share = sum(value >= threshold for value in points.values()) / len(points)
        assert self.value(f'ratio_above(data["x"], {threshold!r}) < 1', points)[0] == repr(share)


X = {2: 1.0, 4: 3.0, 6: 2.0}


class TestFurtherHelpers:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("last(data['x'])", 2.0),
            ("first(data['x'])", 1.0),
            ("std(data['x'])", 1.0),
            ("percentile(data['x'], 50)", 2.0),
            ("percentile(data['x'], 25)", 1.5),
            ("slope(data['x'])", 0.25),
            ("ema(data['x'], 0.5)", 2.0),
            ("at(data['x'], 4)", 3.0),
            ("count(data['x'])", 3),
            ("sum(v * v for v in data['x'].values())", 14.0),
            ("sum([data['x']['2'], data['x'][4]])", 4.0),
            ("list(data['x'].values())[-1]", 2.0),
            ("sorted(data['x'].values())[-1]", 3.0),
            ("abs(first(data['x']) - last(data['x'])) / 2 ** 3", 0.125),
            ("max(first(data['x']), 1.5)", 1.5),
            ("7 // 2 % 2 + -1", 0),
        ],
    )
    def test_values(self, expression, value):
        found = outcome(f"{expression} == {value}", x=X)
        assert found.passed, found
        assert float(found.value) == value

    @pytest.mark.parametrize(
        ("check", "holds"),
        [
            ("all_finite(data['x'])", True),
            ("exists('x')", True),
            ("exists('x', 4)", True),
            ("exists('x', 5)", False),
            ("exists('y')", False),
            ("monotonic(data['x'])", False),
            ("monotonic(data['y'], 'decreasing')", True),
            ("within(data['x'], data['x'])", True),
            ("within(data['x'], data['z'])", False),
            ("within(data['x'], data['z'], rtol=0.2)", True),
            ("within(first(data['x']), 1.2, atol=0.2)", True),
            ("within(data['x'], 2, atol=1)", True),
            ("'4' in data['x']", True),
            ("5 not in data['x']", True),
            ("last(data['x']) in (1, 2)", True),
            ("all(s % 2 == 0 for s in data['x'])", True),
            ("all(v < 3 for s, v in data['x'].items() if s > 2)", False),
            ("any(v > 2.5 for v in data['x'].values())", True),
            ("isclose(last(data['x']), 2)", True),
        ],
    )
    def test_truth(self, check, holds):
        series = {"x": X, "y": {1: 3.0, 2: 1.0}, "z": {2: 1.1, 4: 3.1, 6: 2.1}}
        series = series if "data['y']" in check or "data['z']" in check else {"x": X}
        assert outcome(check, **series).passed is holds

    def test_results_files_without_steps(self):
        from proveout.judge.expressions.data import View

        other = {"score": 0.15, "succeed": "yes", "f1": View("f1", ["a", "b"], [0.5, 0.75])}
        for check in ("data['score'] >= 0.1", "data['succeed'] == 'yes'", "min(data['f1']) >= 0.5"):
            assert outcome(check, other).passed
        assert "has names" in outcome("mean(data['f1']) > 0", other).message

    @pytest.mark.parametrize(
        ("check", "words"),
        [
            ("data['x'] < 2", "cannot be compared"),
            ("max(data['x']) / 0 < 2", "division by zero"),
            ("last(data['x']) ** 0.5 ** -900000 < 2", "exponent"),
            ("9.9 ** 999 < 2", "range"),
            ("data['x'] + 1 < 2", "needs a number"),
            ("max('abc') > 0", "needs a series or numbers"),
            ("mean(data['x'], nonsense=1) < 2", "called wrongly"),
            ("mean(data['x'], ignore_top_p=2) < 2", "between 0 and 1"),
            ("max < 2", "call it"),
            ("first(data['x']) < 'a'", "needs a number"),
        ],
    )
    def test_what_cannot_be_judged_fails_with_a_reason(self, check, words):
        found = outcome(check, x=X)
        assert not found.passed
        assert words in found.message


HOSTILE = [
    ("().__class__", 1),
    ("data.__class__ == 1", 1),
    ("data['x'].source == 1", 1),
    ("__import__('os').system('id') == 0", 1),
    ("open('/etc/passwd') == 1", 1),
    ("(lambda: 1)() == 1", 1),
    ("f'{data}' == 1", 1),
    ("(y := 1) == 1", 2),
    ("[x for x in data for y in data] == 1", 1),
    ("all(all(v > 0 for v in data['x']) for w in data) == 1", 4),
    ("{1: 2} == 1", 1),
    ("{v for v in data} == 1", 1),
    ("data['x'][0:2] == 1", 11),
    ("max(*data) == 1", 5),
    ("max(**data) == 1", 1),
    ("1 if data else 2", 1),
    ("b'1' == 1", 1),
    ("1j == 1", 1),
    ("... == 1", 1),
    ("1 << 900", 1),
    ("~1 == 1", 1),
    ("1 is 1", 1),
    ("1e999 > 0", 1),
    ("max(data['x'], key=print) > 0", 20),
    ("getattr(data, 'x') == 1", 1),
    ("data['x'].values.__self__ == 1", 1),
    ("[data for data in data] == 1", 11),
    ("print == 1", 1),
    ("import os", 1),
    ("x = 1", 3),
    ("max(data['x']", 4),
    ("", 0),
    ("  open(1) < 2", 3),
    ("(" * 90 + "1" + ")" * 90, 25),
    ("-" * 1500 + "1 < 2", 25),
    ("not " * 400 + "1 < 2", 101),
    ("+".join(["1"] * 900) + " < 2", 1),
    ("1" * 2001, None),
    ("data['x']\x00 < 1", None),
    ("yield 1", 1),
    ("await data", 1),
]


class TestHostile:
    @pytest.mark.parametrize(("text", "column"), HOSTILE, ids=lambda value: str(value)[:30])
    def test_it_is_refused_with_its_place(self, text, column):
        with pytest.raises(RefusedError) as refused:
            parse(text)
        assert refused.value.column == column
        if column:
            assert str(refused.value).endswith(f"(column {column})")

    def test_a_long_walk_is_stopped(self):
        points = dict.fromkeys(range(1, 200_001), 1.0)
        check = "all(" + " and ".join(["v > 0"] * 40) + " for v in data['x'].values())"
        begin = time.monotonic()
        found = outcome(check, x=points)
        assert "stopped after" in found.message
        assert time.monotonic() - begin < 30

    @settings(max_examples=300, deadline=None)
    @given(st.text(alphabet="dataxmin()[]{}'\"<>=!.,:+-*/ 0123456789_\n\t\\lambdforinotr", max_size=60))
    def test_any_text_gives_an_outcome(self, text):
        found = outcome(text, x={1: 1.0, 2: 2.0})
        assert found.check == text
        assert found.passed or found.message

    @settings(max_examples=200, deadline=None)
    @given(st.text(max_size=40))
    def test_any_unicode_text_gives_an_outcome(self, text):
        found = outcome(text, x={1: 1.0})
        assert found.passed or found.message

    def test_helpers_never_reach_builtins(self):
        import builtins

        assert not [name for name, function in HELPERS.items() if function is getattr(builtins, name, None)]


class TestVacuous:
    @pytest.mark.parametrize(
        "check",
        [
            "1 < 2",
            "True",
            'max(data["x"]) <= max(data["x"])',
            'ratio_above(data["x"], 1) >= 0',
            'ratio_above(data["x"], 1) <= 1',
            'len(data["x"]) >= 0',
            'abs(last(data["x"])) >= 0',
            'std(data["x"]) > -1',
            'max(data["x"]) < 1 or 1 < 2',
            'max(data["x"]) < 1 or not max(data["x"]) < 1',
            'not (ratio_above(data["x"], 1) > 1)',
            '0 <= ratio_above(data["x"], 1) <= 1',
            'min(data["train/grad_norm"]) >= 0.0',
            'max(data["train/token_mult_prob_error"]) > 0',
            'max(data["train/probs_ratio_clamped_max"]) - 1 < 0.3',
        ],
    )
    def test_a_check_that_cannot_fail_is_found(self, check):
        assert outcome(check, x={1: 1.0}).vacuous

    @pytest.mark.parametrize(
        "check",
        [
            'max(data["x"]) < 1.05',
            'ratio_above(data["x"], 1) < 1',
            'len(data["x"]) >= 1',
            'max(data["x"]) < 1 and 1 < 2',
            'min(data["train/grad_norm"]) > 0.0',
            'max(data["x"]) != max(data["y"])',
            'max(data["train/token_mult_prob_error"]) < 1.05',
            'all_finite(data["x"])',
            '"3" in data["x"]',
            'min(data["train/probs_ratio_clamped_min"]) > 0.85',
        ],
    )
    def test_a_check_that_can_fail_is_left_alone(self, check):
        assert outcome(check, x={1: 1.0}).vacuous == ""

    @settings(max_examples=200, deadline=None)
    @given(
        st.sampled_from(["max", "min", "mean", "last", "std", "abs"]),
        st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
        st.integers(-2, 2),
        st.lists(st.integers(-3, 3), min_size=2, max_size=4),
    )
    def test_what_is_called_unable_to_fail_holds_on_any_data(self, helper, sign, limit, values):
        inner = 'data["x"]' if helper != "abs" else 'last(data["x"])'
        found = outcome(f"{helper}({inner}) {sign} {limit}", x={s: float(v) for s, v in enumerate(values, 1)})
        assert found.passed or not found.vacuous


def test_the_steps_that_break_a_check_are_named():
    assert outcome('max(data["x"]) < 2', x={1: 1.0, 2: 2.5, 3: 3.0}).offending == {"x": (2, 3)}
    assert outcome('2 > max(data["x"])', x={1: 1.0, 2: 2.5, 3: 3.0}).offending == {"x": (2, 3)}
    assert outcome('data["x"]["3"] < 2', x={1: 1.0, 2: 2.5, 3: 3.0}).offending == {"x": (3,)}
    assert outcome('max(data["x"]) < 4', x={1: 1.0, 2: 2.5, 3: 3.0}).offending == {}


def test_values_keep_every_digit():
    value = math.nextafter(1.05, 2)
    found = outcome('max(data["x"]) < 1.05', x={1: value})
    assert found.value == "1.0500000000000003"
    assert "1.0500000000000003" in found.value
