"""The catalogue as a whole: nothing is skipped in silence, nothing ends in a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.preflight.conftest import proveout

from proveout.domain.errors import UsageError
from proveout.domain.finding import Severity
from proveout.domain.preflight import PreflightContext
from proveout.preflight import CATALOGUE, Check, State, examine, preflight

DOCS = Path(__file__).parents[2] / "docs" / "preflight.md"


def test_a_check_that_crashes_is_a_finding_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(context: PreflightContext) -> tuple[()]:
        raise RuntimeError("wire cut, token=hf_abcdefghijklmnopqrstu")

    monkeypatch.setitem(CATALOGUE, "cores", Check(id="cores", proves="x", remedy="y", run=crash))
    (result,) = examine(PreflightContext(run_dir="."), only=["cores"])
    assert result.state is State.UNCHECKED
    (finding,) = result.findings
    assert finding.severity is Severity.WARNING and finding.id == "preflight.cores.unchecked"
    assert "could not be checked: RuntimeError: wire cut" in finding.what
    assert "hf_abc" not in finding.what


def test_unknown_checks_and_settings_name_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'python'"):
        examine(PreflightContext(run_dir="."), only=["pyton"])
    with pytest.raises(UsageError, match=r"did you mean 'memory\.small_gib'"):
        preflight(PreflightContext(run_dir=".", settings={"memory.smal_gib": "1"}))
    with pytest.raises(UsageError, match="'much' is not a number"):
        preflight(PreflightContext(run_dir=".", settings={"memory.small_gib": "much"}))


def test_every_check_says_what_it_proves_and_what_to_do() -> None:
    assert all(check.id == name and check.proves and check.remedy for name, check in CATALOGUE.items())


def test_the_documented_catalogue_is_the_real_one() -> None:
    shown = proveout("doctor", "--list", "--markdown").stdout
    assert DOCS.read_text() == shown, "write it again: proveout doctor --list --markdown > docs/preflight.md"


def test_doctor_blocks_with_status_3_and_prints_the_remedy() -> None:
    words = ("doctor", "--only", "disk", "--set", "disk.run_small_gib=1e12")
    plain = proveout(*words)
    assert plain.returncode == 3
    assert "Blocked" in plain.stdout and "free space there" in plain.stdout
    answer = json.loads(proveout(*words, "--json").stdout)
    assert answer["verdict"] == "Blocked"
    assert answer["findings"][0]["id"] == "preflight.disk.free"
    assert answer["checks"][0]["state"] == "found"


def test_doctor_is_ready_with_status_0() -> None:
    done = proveout("doctor", "--only", "disk", "--set", "disk.run_small_gib=0")
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "Ready")
