"""Every rule holds against its own examples, and the check itself finds what is wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from proveout.domain.errors import UsageError
from proveout.triage.catalog import (
    RULES_DIR,
    Catalog,
    Rule,
    compile_pattern,
    gate,
    line_pattern,
    load,
    parse_rules,
    problems,
)

FILES = sorted(RULES_DIR.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_rule_matches_its_positives_and_none_of_its_negatives(file):
    assert problems(parse_rules(file.read_text(encoding="utf-8"), file.name)) == []


def test_ids_are_unique_and_the_catalogue_is_wide():
    rules = load().rules
    assert [name for name, times in Counter(rule.id for rule in rules).items() if times > 1] == []
    assert len([rule for rule in rules if rule.role == "cause"]) >= 130
    assert {rule.role for rule in rules} == {"cause", "wrapper", "aftermath", "noise"}


def test_a_gate_word_is_in_every_positive():
    for rule in load().rules:
        words = gate(rule.pattern)
        for line in rule.positives:
            assert not words or any(word in line for word in words), (rule.id, words, line)


def rule(**changes):
    base = {
        "id": "r",
        "pattern": "disk gone",
        "explanation": "x",
        "source": "y",
        "positives": ("the disk gone",),
        "negatives": ({"line": "the disk is there", "why": "it is there"},),
        "subkind": "k",
        "remedy": "z",
    }
    import msgspec

    return msgspec.convert(base | changes, Rule)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"positives": ()}, "at least one positive"),
        ({"negatives": ()}, "at least one positive and one negative"),
        ({"negatives": ({"line": "disk gone", "why": "x"},)}, "matches its negative"),
        ({"positives": ("the disk is there",)}, "does not match its positive"),
        ({"negatives": ({"line": "a", "why": " "},)}, "says no reason"),
        ({"pattern": "disk gone|loss"}, "harmless line"),
        ({"remedy": ""}, "needs a sub-kind and a remedy"),
    ],
)
def test_the_check_finds_an_unsound_rule(changes, says):
    assert problems([rule()]) == []
    assert any(says in problem for problem in problems([rule(**changes)]))


def test_two_rules_with_one_id_are_refused():
    with pytest.raises(UsageError, match="two rules"):
        Catalog([rule(), rule()])


def test_a_pattern_that_re2_cannot_run_is_named():
    with pytest.raises(UsageError, match="RE2"):
        compile_pattern("(?=a)b")


@pytest.mark.parametrize(
    "text", ["rules: 3", "rules:\n  - {id: a}", "rules: [", "rules:\n  - {id: a, unknown: 1}", "- a"]
)
def test_a_broken_rule_file_is_a_usage_error(text):
    with pytest.raises(UsageError):
        parse_rules(text, "mine.yaml")


def test_blanks_in_a_pattern_stay_within_a_line():
    assert line_pattern(r"a\s+b[\s\]x]\\s") == r"(?m)a[ \t]+b[ \t\]x]\\s"
    assert compile_pattern(r"x[^\s]y").search(b"x-y")
    assert not compile_pattern(r"x\sy").search(b"x\ny")
