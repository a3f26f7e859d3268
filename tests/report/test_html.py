"""The HTML page as a file: needs nothing else, stays small, lets only its own script in."""

from __future__ import annotations

import base64
import hashlib
import html
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.samples import AGAINST, PASS, SAMPLES, SMOKE, attempt, report, series

from proveout.domain.evidence import CheckRow, StepResult
from proveout.domain.finding import Citation, Where
from proveout.domain.report import Report
from proveout.domain.verdict import Verdict
from proveout.report import render


def page(model: Report) -> str:
    return render(model, "html")


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_it_asks_for_nothing_from_anywhere(name: str) -> None:
    text = page(SAMPLES[name])
    tags = re.findall(r"<[a-z][^>]*>", text)
    assert not [tag for tag in tags if re.search(r"\s(?:src|srcset|action|data|poster|background)=", tag)]
    links = [html.unescape(link) for link in re.findall(r'\shref="([^"]*)"', text)]
    assert links
    assert not [link for link in links if not link.startswith(("#", "attempts/"))]
    assert "@import" not in text
    assert "url(" not in text


def test_the_policy_lets_in_its_own_style_and_script_and_nothing_else() -> None:
    text = page(AGAINST)
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for kind in ("style", "script"):
        (own,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert rules.pop(f"{kind}-src") == f"'sha256-{digest}'"
    assert rules == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}


@settings(max_examples=30)
@given(st.text(alphabet="<>&\"'/ =scriptonxj\\u00e9\n`{}%#"))
def test_no_text_adds_an_element(text: str) -> None:
    hostile = text + "</script><script>x</script>\"'><b>"
    made = report(
        Verdict.FAIL,
        summary=hostile,
        model=hostile,
        limitations=(hostile,),
        evidence=(Citation(what=hostile, where=Where(file=f"attempts/{hostile}"), text=hostile),),
        plots=(series(hostile, (1.0, 2.0), hostile, unit=hostile),),
    )
    count = re.compile(r"<(?:script|b)\b").findall
    assert len(count(page(made))) == 1


def huge(steps: int, points: int, checks: int) -> Report:
    rows = tuple(CheckRow(check="y" * 300, passed=True, value="1") for _ in range(checks))
    held = tuple(Citation(what="z" * 200, text="t" * 200) for _ in range(checks))
    values = tuple(float(i % 17) for i in range(points))
    return report(
        Verdict.PASS,
        steps=tuple(
            StepResult(
                id=f"s{i}",
                coverage=SMOKE,
                verdict=Verdict.PASS,
                attempts=(attempt(Verdict.PASS, checks=rows, held=held),),
            )
            for i in range(steps)
        ),
        plots=tuple(
            series(f"t{k}", values, f"P{k}", step_id=f"s{i}") for i in range(steps) for k in range(8)
        ),
    )


@pytest.mark.parametrize(("steps", "points", "checks"), [(2, 5000, 50), (40, 200, 60), (300, 20, 2)])
def test_it_stays_below_a_megabyte_and_says_what_is_left_out(steps: int, points: int, checks: int) -> None:
    text = page(huge(steps, points, checks))
    assert len(text.encode()) < 1_000_000
    assert "not drawn" in text or "more" in text


def test_a_deliverable_links_to_the_files_of_its_attempt() -> None:
    text = page(PASS)
    for name in ("run.log", "metrics.json", "config.json", "command.sh"):
        assert f'href="attempts/01-bench-L0-grpo/{name}"' in text


def test_files_outside_of_the_run_directory_are_no_links() -> None:
    places = ("javascript:alert(1)", "attempts/../../etc/passwd", "/etc/passwd", "attempts/javascript:x")
    cites = tuple(Citation(what="w", where=Where(file=place)) for place in places)
    text = page(msgspec.structs.replace(PASS, evidence=cites, steps=()))
    assert list(re.findall(r'href="([^"#]+)"', text)) == []
