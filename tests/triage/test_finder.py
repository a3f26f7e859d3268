"""Both searches name the same patterns, and what one of them compiled is kept."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.triage.strings import lines

from proveout.triage import finder
from proveout.triage.catalog import compile_pattern, line_pattern, load

HERE = Path(__file__).parent
CASES = [
    case["log"]
    for name in ("cases_a.yaml", "cases_b.yaml", "cases_c.yaml")
    for case in yaml.safe_load((HERE / name).read_text())
]
PATTERNS = [line_pattern(rule.pattern) for rule in load().rules]
LINES = [line for rule in load().rules for line in (*rule.positives, *(n.line for n in rule.negatives))]
PLAIN = finder.plain(PATTERNS)
AMOUNT = int(os.environ.get("PROVEOUT_TEST_STRINGS", "100"))


@pytest.fixture(scope="module")
def quick():
    search = finder.kept(PATTERNS) or finder.compiled(PATTERNS)
    assert search is not None, "Hyperscan is a dependency here"
    return search


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "proveout"


def test_the_same_patterns_in_every_case_and_every_example(quick):
    for text in (*CASES, *LINES, "\n".join(LINES)):
        data = text.encode()
        assert sorted(set(quick(data))) == sorted(set(PLAIN(data))), text[:300]


def test_the_same_patterns_in_what_each_of_them_matches(quick):
    """Hyperscan misses a second literal straight after a first one in some patterns: none of ours may be such."""
    chance, hits = random.Random(AMOUNT), 0
    for index, pattern in enumerate(PATTERNS):
        for line in lines(pattern, AMOUNT, chance):
            data = b"step 12\n" + line.encode() + b"\nstep 13\n"
            wanted = sorted(set(PLAIN(data)))
            assert sorted(set(quick(data))) == wanted, (load().rules[index].id, line)
            hits += index in wanted
    assert hits > 0.9 * AMOUNT * len(PATTERNS)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(LINES).map(str.encode), st.binary(max_size=60)), max_size=5))
def test_the_same_patterns_in_any_bytes(quick, parts):
    data = b"\n".join(parts)
    assert sorted(set(quick(data))) == sorted(set(PLAIN(data)))


def test_bytes_are_counted_and_not_letters(home):
    pattern = line_pattern("a.{3}b")
    broken, letters = b"a\xff\xfe\xfdb", "a\u00e9\u00e9\u00e9b".encode()
    for search in (finder.plain([pattern]), finder.compiled([pattern])):
        assert search is not None
        assert list(search(broken)) == [0] and not list(search(letters))
    assert compile_pattern("a.{3}b").search(broken) and not compile_pattern("a.{3}b").search(letters)


def test_what_was_compiled_is_read_back(home):
    assert finder.kept(["abc", "x.z$"]) is None
    first = finder.compiled(["abc", "x.z$"])
    again = finder.kept(["abc", "x.z$"])
    assert first and again
    assert list(first(b"see xyz")) == list(again(b"see xyz")) == [1]
    assert finder.kept(["abc", "x.z"]) is None
    (file,) = home.iterdir()
    file.write_bytes(file.read_bytes()[:40])
    assert finder.kept(["abc", "x.z$"]) is None


def test_a_home_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    search = finder.compiled(["abc"])
    assert search is not None and list(search(b"xabcx")) == [0]
    assert finder.kept(["abc"]) is None


def test_what_hyperscan_does_not_take_is_searched_for_with_re2(home, monkeypatch):
    engine = finder._engine()
    taken = finder._compile

    def refuses(used, texts, which):
        if 1 in which:
            raise engine.error("pattern too large")
        return taken(used, texts, which)

    monkeypatch.setattr(finder, "_compile", refuses)
    patterns = ["abc", "fary+", "x.z"]
    for search in (finder.compiled(patterns), finder.kept(patterns)):
        assert search is not None
        assert sorted(search(b"xyz far fary")) == [1, 2]


def test_what_hyperscan_misses_in_an_example_is_searched_for_with_re2(home):
    """A real miss of Hyperscan 5.4: the second literal stands straight behind the first."""
    patterns, line = ["abc", r"make: .*\.(?:o|so).*\] Error \d"], "make: " + 30 * "q" + ".o] Error 1"
    examples = [(0, "abc"), (1, line)]
    for search in (finder.compiled(patterns, examples), finder.kept(patterns, examples)):
        assert search is not None
        assert list(search(line.encode())) == [1]
    assert finder.kept(patterns) is None, "what was compiled for other examples is of no use"


def test_without_hyperscan_re2_does_it_all(monkeypatch):
    monkeypatch.setattr(finder, "_engine", lambda: None)
    assert finder.kept(PATTERNS) is None and finder.compiled(PATTERNS) is None


def test_the_command_prepares_the_next_one_and_answers_the_same(home, tmp_path, proveout):
    log = tmp_path / "run.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    first = proveout("triage", str(log), env={"XDG_CACHE_HOME": str(home.parent)})
    assert len(list(home.glob("triage-finder-*"))) == 1
    again = proveout("triage", str(log), env={"XDG_CACHE_HOME": str(home.parent)})
    assert (first.status, first.out) == (again.status, again.out)
    assert "oom-gpu" in first.out


def test_the_rules_can_be_prepared_before_any_log(home, proveout):
    done = proveout("triage", "--prepare", env={"XDG_CACHE_HOME": str(home.parent)})
    assert (done.status, done.out) == (0, "")
    assert len(list(home.glob("triage-finder-*"))) == 1
