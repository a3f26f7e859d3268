"""What is known besides the log: how it ended, metrics, planned steps; and a user's own rules."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from proveout.cli.main import main as _main  # noqa: F401 - the command line loads
from proveout.cli.triage import command
from proveout.domain.errors import UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.metrics import MetricTable, Series
from proveout.triage import triage
from proveout.triage.catalog import load
from proveout.triage.learn import learn, replay

CLEAN = "SETUP COMPLETE\n=== Step 1/2 ===\n  • Loss: 0.01\n=== Step 2/2 ===\n  • Loss: 0.01\n"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(CLEAN, encoding="utf-8")
    return path


def exited(code):
    return ExitRecord(end=End.EXITED, code=code)


def test_a_run_that_exited_0_is_given_no_invented_cause(log):
    log.write_text(CLEAN + "ValueError: printed by a test that expects it\n")
    result = triage([log], exit=exited(0), metrics=MetricTable({"train/lr": Series.of({1: 0.0, 2: 0.0})}))
    assert (result.boundary, result.cause) == ("unknown", None)
    assert "status 0" in result.undecided_because


def test_fewer_steps_than_planned_is_incomplete(log):
    result = triage([log], exit=exited(0), planned_steps=5)
    assert result.boundary == "incomplete"
    assert "2 of 5" in result.undecided_because


def test_signal_9_without_a_message_is_undecided(log):
    result = triage([log], exit=ExitRecord(end=End.SIGNALLED, signal=9))
    assert (result.boundary, result.verdict) == ("unknown", "Incomplete")
    assert "signal 9" in result.undecided_because
    assert "dmesg" in result.remedy


@pytest.mark.parametrize(
    ("name", "values", "subkind", "says"),
    [
        ("train/token_mult_prob_error", {1: 1.001, 2: 3.5, 3: 9.0}, "logprob-mismatch", "right until step 1"),
        ("train/token_mult_prob_error", {1: 7.5, 2: 8.0}, "logprob-mismatch", "wrong from the first step"),
        ("train/loss", {1: 0.1, 2: float("nan"), 3: float("nan")}, "nan-loss", "step 2"),
        ("train/grad_norm", {1: 0.1, 2: 4e9}, "exploding-grad-norm", "exceeds"),
    ],
)
def test_a_bad_metric_is_named_with_its_step(log, name, values, subkind, says):
    result = triage([log], exit=exited(0), metrics=MetricTable({name: Series.of(values)}))
    assert (result.boundary, result.verdict, result.subkind) == ("numerics", "Fail", subkind)
    assert says in result.cause.what
    assert result.cause.where.metric == name


def test_the_side_that_moved_is_told(log):
    tables = {
        "train/token_mult_prob_error": Series.of({1: 1.0, 2: 2.0}),
        "train/sampling_importance_ratio": Series.of({1: 1.0, 2: 0.4}),
    }
    assert "generation trusts" in triage([log], exit=exited(0), metrics=MetricTable(tables)).cause.what


def test_a_hard_cause_beats_the_metrics(log):
    log.write_text(CLEAN + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    bad = MetricTable({"train/loss": Series.of({1: float("nan"), 2: float("nan")})})
    assert triage([log], exit=exited(1), metrics=bad).boundary == "oom-gpu"


def test_the_json_object_has_exactly_the_published_keys(log):
    log.write_text("OSError: [Errno 28] No space left on device\n")
    done = CliRunner().invoke(command, [str(log), "--json"], standalone_mode=False)
    data = json.loads(done.output)
    assert list(data) == [
        "boundary", "subkind", "stage", "verdict", "confidence",
        "cause", "aftermath", "noise", "remedy", "undecided_because",
    ]  # fmt: skip
    assert data["cause"] == {
        "file": str(log),
        "line": 1,
        "text": "OSError: [Errno 28] No space left on device",
    }
    assert done.return_value == 3


def test_secrets_are_not_cited(log):
    log.write_text("OSError: [Errno 28] No space left on device HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123\n")
    done = CliRunner().invoke(command, [str(log)], standalone_mode=False)
    assert "abcdefghijklmnop" not in done.output


def test_rules_and_one_line_are_explained(log):
    listed = CliRunner().invoke(command, ["--rules", "--json"], standalone_mode=False)
    assert {rule["id"] for rule in json.loads(listed.output)} == {rule.id for rule in load().rules}
    why = CliRunner().invoke(
        command, ["--why", "OSError: [Errno 28] No space left on device"], standalone_mode=False
    )
    assert "env-disk-full" in why.output
    by_number = CliRunner().invoke(command, [str(log), "--why", "1"], standalone_mode=False)
    assert "SETUP COMPLETE" in by_number.output
    assert "no rule knows" in by_number.output


def test_a_corrected_case_becomes_a_rule_that_is_checked(log, tmp_path, monkeypatch):
    monkeypatch.setenv("PROVEOUT_RULES", str(tmp_path / "mine"))
    load.cache_clear()
    text = "the gantry of host 17 is jammed, giving up"
    log.write_text(f"=== Step 1/2 ===\n{text}\nexit 1\n")
    assert triage([log]).boundary == "unknown"
    stored = learn([log], "environment", subkind="gantry", cause="gantry", remedy="call the yard")
    assert stored.right
    log.write_text("the gantry of host 99 is jammed, giving up\nexit 1\n")
    result = triage([log])
    assert (result.boundary, result.subkind, result.remedy) == ("environment", "gantry", "call the yard")
    assert replay() == []
    load.cache_clear()


def test_wrong_labels_lines_and_user_rules_are_usage_errors(log, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    monkeypatch.setenv("PROVEOUT_RULES", str(mine))
    load.cache_clear()
    with pytest.raises(UsageError, match="no boundary"):
        learn([log], "enviroment")
    with pytest.raises(UsageError, match="no line"):
        learn([log], "trainer", cause="not there")
    with pytest.raises(UsageError, match="no line 99"):
        learn([log], "trainer", cause="99")
    mine.mkdir(exist_ok=True)
    (mine / "bad.yaml").write_text(
        "rules:\n- {id: a, pattern: x y z, explanation: e, source: s, positives: [nope],"
        " negatives: [{line: n, why: w}]}\n"
    )
    load.cache_clear()
    with pytest.raises(UsageError, match="does not match its positive"):
        triage([log])
    (mine / "bad.yaml").unlink()
    load.cache_clear()
