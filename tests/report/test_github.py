"""What GitHub reads: annotations that cannot be forged, and a summary that fits."""

from __future__ import annotations

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from tests.report.samples import AGAINST, BLOCKED, FAIL, PASS, attempt, report

from proveout.domain.evidence import CheckRow
from proveout.domain.verdict import Verdict
from proveout.report import render


def kinds(text: str) -> list[str]:
    return [line.split("::")[1].split(" ")[0] for line in text.splitlines()]


def test_the_result_comes_first_and_errors_before_warnings() -> None:
    found = kinds(render(FAIL, "github"))
    assert found[0] == "error"
    assert found == sorted(found, key=["error", "warning", "notice"].index)


def test_a_pass_is_a_notice() -> None:
    assert set(kinds(render(PASS, "github"))) == {"notice"}


def test_blocked_names_the_cause() -> None:
    assert "disk full" in render(BLOCKED, "github")


@example("\u2028::error::forged")
@given(st.text())
def test_no_text_forges_a_command(text: str) -> None:
    hostile = f"{text}\n::error::forged\r::warning::forged"
    lines = render(report(Verdict.PASS, summary=hostile, limitations=(hostile,)), "github").splitlines()
    assert all(line.startswith("::notice title=") for line in lines if line)


def test_the_summary_has_steps_and_checks() -> None:
    text = render(AGAINST, "github-summary")
    assert "| bench level 0 \\(grpo\\) | Fail | 1 |" in text or "| bench level 0 (grpo) | Fail | 1 |" in text
    assert "**fails**" in text


def test_the_summary_stays_below_a_megabyte() -> None:
    rows = tuple(CheckRow(check="x" * 400, passed=True, value="1") for _ in range(6000))
    step = msgspec.structs.replace(PASS.steps[0], attempts=(attempt(Verdict.PASS, checks=rows),))
    text = render(report(Verdict.PASS, steps=(step,)), "github-summary")
    assert len(text.encode()) < 1_000_000
    assert "more in report.json" in text
