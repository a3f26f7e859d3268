"""The scan of large pieces finds what a look at every single line with every single rule finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.triage.catalog import load
from proveout.triage.scan import Scanner

RULES = load().rules
SCANNER = Scanner(load())
LINES = [rule.positives[0].split("\n")[0] for rule in RULES if "Traceback" not in rule.positives[0]]
HARMLESS = ["", "(W pid=8) step:3 - loss:0.5", "x" * 5000, "  • Generation KL Error: 0.001", "é│\r 3%|"]


def one_by_one(lines):
    return {
        (RULES[index].id, number)
        for number, line in enumerate(lines, start=1)
        for index in range(len(RULES))
        if SCANNER.catalog.matcher(index).search(line.encode())
    }


def _without_numbers(line):
    """What two lines share that count as one event, seen twice."""
    return re.sub(r"[0-9a-fx]+", "0", line)


@pytest.mark.parametrize("gap", [0, 1, 50])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_hits_are_those_of_a_look_at_every_line(tmp_path_factory, gap, data):
    drawn = st.lists(st.sampled_from(LINES), min_size=1, max_size=6, unique_by=_without_numbers)
    chosen = data.draw(drawn)
    lines = []
    for line in chosen:
        lines += data.draw(st.lists(st.sampled_from(HARMLESS), max_size=4)) + [HARMLESS[1]] * gap + [line]
    log = tmp_path_factory.mktemp("scan") / "run.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    found = {(e.rule.id, e.line.number) for e in SCANNER.scan(log).events if e.rule}
    assert found == one_by_one(lines)


@pytest.mark.parametrize(
    "line",
    ["a" * 1_000_000, "[" * 500_000 + "]" * 500_000, "Error" * 200_000, "CUDA out of " * 80_000],
    ids=["one character", "nested", "words", "beginnings"],
)
def test_hostile_lines_end_soon(tmp_path, monkeypatch, line):
    searched = []

    def counted(piece):
        searched.append(len(piece))
        return which(piece)

    which = SCANNER.which
    monkeypatch.setattr(SCANNER, "which", counted)
    log = tmp_path / "run.log"
    log.write_text(f"{line}\n" * 3)
    SCANNER.scan(log)
    assert 0 < sum(searched) < 8 * log.stat().st_size
