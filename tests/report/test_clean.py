"""What is hidden by default, and what must stay readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.samples import report

from proveout.domain.verdict import Verdict
from proveout.report import FORMATS, render
from proveout.report.clean import plain, redactor

HIDE = redactor(
    {"MY_SERVICE_TOKEN": "correct-horse-battery", "PATH": "/usr/bin-of-mine"}, "marguerite", "gpu17.corp"
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cat /home/ada/x/y.log", "cat ~/x/y.log"),
        ("'/root'", "'~'"),
        ("/Users/Ada Lovelace", "~ Lovelace"),
        ("/home/ada:/mnt", "~:/mnt"),
        ("mail ada.b+c@example.co.uk now", "mail [e-mail] now"),
        ("ssh marguerite@gpu17.corp", "ssh [user]@[host]"),
        ("ssh otto@gpu17", "ssh [user]@[host]"),
        ("on gpu17: ok", "on [host]: ok"),
        ("rank 3 on 10.4.5.6:29500", "rank 3 on [host]:29500"),
        ("MASTER_ADDR=node-a4.x", "MASTER_ADDR=[host]"),
        ('"hostname": "abc"', '"hostname": "[host]"'),
        ("ip-10-0-3-4.ec2.internal", "[host]"),
        ("events.out.tfevents.1795971201.vm.28025.0", "events.out.tfevents.1795971201.[host].28025.0"),
        ("said correct-horse-battery aloud", "said [redacted] aloud"),
        ("/data/marguerite/run", "/data/[user]/run"),
    ],
)
def test_people_machines_and_secrets_are_hidden(text: str, shown: str) -> None:
    assert HIDE(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "the root cause",
        "/opt/home/x",
        "data/home/x",
        "version 1.10.4.5.6",
        "MASTER_ADDR=127.0.0.1",
        "hostname: localhost",
        "node: 3 of 4",
        "torch 2.13.0 from /usr/lib/python3/x.py",
        "/usr/bin-of-mine",
        'max(data["train/loss"]) < 1.0001',
        "@decorator",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert HIDE(text) == text


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
def test_hiding_twice_hides_no_more(text: str) -> None:
    assert HIDE(HIDE(text)) == HIDE(text)


@given(st.text())
def test_nothing_steers_a_terminal(text: str) -> None:
    assert not set(plain(text)) & {chr(code) for code in (*range(9), *range(11, 32), 127, 0x202E, 0x2066)}


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_it_is_the_default_of_every_format_and_can_be_turned_off(form: str) -> None:
    home = report(Verdict.PASS, limitations=("in /home/ada/run",))
    assert "/home/ada" not in render(home, form)
    assert "/home/ada" in render(home, form, redacted=False)
