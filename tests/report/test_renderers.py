"""Every format over every report model: the text is pinned, and nothing of a report is lost or let through."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.report.samples import HOSTILE, SAMPLES, report

from proveout.domain.errors import UsageError
from proveout.domain.finding import Citation
from proveout.report import FORMATS, render
from proveout.report.json_document import schema

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "report.json"


def without_own_files(page: str) -> str:
    """The page without its style and script, which are files of their own, and their digests."""
    page = re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256-of-own-file", page)
    return re.sub(
        r"<(style|script)>\n?(?::root|\"use strict\").*?</\1>", r"<\1>own file</\1>", page, flags=re.DOTALL
    )


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_format_is_pinned(form: str, name: str, snapshot) -> None:
    text = render(SAMPLES[name], form)
    assert (without_own_files(text) if form == "html" else text) == snapshot


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_format_names_result_and_limits(form: str, name: str) -> None:
    text, report = render(SAMPLES[name], form), SAMPLES[name]
    assert report.result.value in text
    for limitation in report.limitations:
        assert limitation in text


def test_json_has_the_promised_keys() -> None:
    document = json.loads(render(SAMPLES["fail"], "json"))
    promised = "result summary requested_coverage model deliverables evidence limitations follow_ups steps"
    assert set(promised.split()) <= set(document)
    assert set(document["requested_coverage"][0]) == {"loop", "level", "variant"}
    assert set(document["deliverables"][0]) == {"name", "verdict", "detail"}
    assert {"what", "file", "line", "text"} <= set(document["evidence"][0])
    assert {"loop", "level", "variant", "verdict", "attempts"} <= set(document["steps"][0])


def test_the_published_schema_is_current() -> None:
    assert json.loads(SCHEMA.read_text()) == json.loads(json.dumps(schema()))


def test_markdown_lets_no_markup_through() -> None:
    text = render(HOSTILE, "markdown")
    assert "<b>" not in text
    assert "<script>" not in text
    assert "@everyone" not in text
    assert text.count("</details>") == 1


def test_terminal_control_bytes_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in render(HOSTILE, "text")


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_secret_in_a_report_is_in_no_format(form: str) -> None:
    secret = "hf_" + "abcdefghijklmnop" * 2
    planted = report(
        SAMPLES["fail"].result, evidence=(Citation(what="line", text=f"token={secret}"),), summary=secret
    )
    assert secret not in render(planted, form)


def test_an_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'markdown'"):
        render(HOSTILE, "markdwon")
