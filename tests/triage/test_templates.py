"""Leaving out repeated lines never changes what is found."""

from __future__ import annotations

from pathlib import Path

import pytest
import re2
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.triage import scan
from proveout.triage.catalog import compile_pattern, line_pattern, load
from proveout.triage.relax import without_digits
from proveout.triage.templates import Searches, Templates, search

HERE = Path(__file__).parent
CASES = [
    case for name in ("cases_a.yaml", "cases_b.yaml") for case in yaml.safe_load((HERE / name).read_text())
]
NO_DIGITS = str.maketrans("", "", "0123456789")
RULES = load().rules


def seen(found):
    return [
        (e.rule.id if e.rule else "", e.line.number, e.offset, e.count, e.last_line, e.stage, e.step)
        for e in found.events
    ]


@pytest.fixture(scope="module")
def scanners():
    return scan.Scanner(load()), scan.Scanner(load(), skip_repeats=False)


def test_the_same_events_with_and_without_on_every_case(tmp_path, scanners, monkeypatch):
    monkeypatch.setattr(scan, "SMALL", 0)
    monkeypatch.setattr(scan, "COARSE", 4096)
    healthy = "".join(
        f"(W pid=8) step:{n} - loss:0.{n} - grad_norm:1.{n} - KL Error: 0.00{n}\n" for n in range(500)
    )
    log = tmp_path / "all.log"
    log.write_text(healthy + healthy.join(case["log"] for case in CASES) + healthy, encoding="utf-8")
    quick, plain = (scanner.scan(log) for scanner in scanners)
    assert seen(quick) == seen(plain)
    assert len(seen(quick)) > 50
    assert [t.exception_line for t in quick.traces] == [t.exception_line for t in plain.traces]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_widened_rule_matches_its_examples_without_their_digits(rule):
    wide = re2.compile("(?m)" + without_digits(line_pattern(rule.pattern)))
    for line in rule.positives:
        assert wide.search(line.translate(NO_DIGITS)), line


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(
        [
            r"a\d+b",
            r"x[0-9a-f]{2,3}y",
            r"\bstep (?:4\d\d|none)\b",
            r"^e\.(?:0[2-9]|[1-9])\d*$",
            r"p[^q]{1,3}z",
        ]
    ),
    st.text("ab0123456789xyef.stepnonq z", max_size=12),
)
def test_a_widened_pattern_never_matches_less(pattern, text):
    if compile_pattern(pattern).search(text.encode()):
        wide = re2.compile("(?m)" + without_digits(line_pattern(pattern)))
        assert wide.search(text.translate(NO_DIGITS))


def test_a_number_that_turns_bad_is_seen_in_a_line_that_was_harmless_before():
    searches = Searches([r"value: [1-9]"], search([r"value: [1-9]"]))
    templates = Templates(searches)
    assert [templates.hit(b"a: 1\nvalue: 0\nb: 2\n") for _ in range(3)] == [False] * 3
    assert templates.hit(b"a: 1\nvalue: 7\nb: 2\n")
    assert templates.hit(b"a: 1\nva9lue: 0\nvalue: 7\n")


def test_a_log_whose_lines_never_repeat_is_searched_directly():
    searches = Searches(["needle"], search(["needle"]))
    templates = Templates(searches)
    words = [
        "".join(chr(97 + (n * k) % 26) for k in range(1, 40)) + chr(97 + n % 26) * (n // 26)
        for n in range(60)
    ]
    assert not any(templates.hit(f"{word}\n".encode() * 2) for word in words)
    assert templates.hit(b"one needle\n")
