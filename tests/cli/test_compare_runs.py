"""``proveout compare`` of two runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.flow.made_runs import METRICS, a_step, make_run

from proveout.cli import main
from proveout.domain.checkout import Checkout
from proveout.domain.verdict import Verdict
from proveout.flow.indexing import catch_up
from proveout.store.runs import Run

PASS, FAIL, BLOCKED = Verdict.PASS, Verdict.FAIL, Verdict.BLOCKED
Compare = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".proveout" / "runs"


@pytest.fixture
def compare(root: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    def ask(run: Run, baseline: Run, *words: str) -> tuple[int, str, str]:
        status = main.run(["compare", run.layout.id, baseline.layout.id, *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return ask


def standing(compare: Compare, run: Run, baseline: Run) -> tuple[int, str]:
    status, out, _ = compare(run, baseline, "--json")
    (step,) = json.loads(out)["steps"]
    return status, step["standing"]


@pytest.mark.parametrize(
    ("verdicts", "baseline", "expected"),
    [
        ([PASS], [PASS], (0, "same")),
        ([FAIL], [PASS], (1, "new")),
        ([PASS], [FAIL], (0, "fixed")),
        ([FAIL], [FAIL], (0, "pre-existing")),
        ([FAIL, PASS], [PASS], (1, "flaky")),
        ([BLOCKED], [PASS], (1, "environment")),
        ([FAIL], [BLOCKED], (1, "environment")),
        ([], [PASS], (1, "undecided")),
    ],
)
def test_standing(
    root: Path, compare: Compare, verdicts: list[Verdict], baseline: list[Verdict], expected: tuple[int, str]
) -> None:
    assert standing(compare, make_run(root, *verdicts), make_run(root, *baseline)) == expected


def test_a_failure_with_another_cause_is_new(root: Path, compare: Compare) -> None:
    run = make_run(root, FAIL, cause="judge.exit_status.nonzero")
    assert standing(compare, run, make_run(root, FAIL, cause="judge.finite.nan")) == (1, "new")


def test_the_history_knows_that_a_step_is_flaky(root: Path, compare: Compare) -> None:
    here = [Checkout(role="bridge", path="/b", commit="1a2b")]
    there = [Checkout(role="bridge", path="/b", commit="9f9f")]
    run, baseline = make_run(root, FAIL, checkouts=here), make_run(root, PASS, checkouts=there)
    catch_up(root)
    assert standing(compare, run, baseline) == (1, "new")
    make_run(root, PASS, checkouts=here)
    catch_up(root)
    assert standing(compare, run, baseline) == (1, "flaky")


def test_a_step_that_only_one_run_has_is_undecided(root: Path, compare: Compare) -> None:
    run = make_run(root, PASS, step=a_step(level=6))
    status, out, _ = compare(run, make_run(root, PASS), "--json")
    assert (status, {step["standing"] for step in json.loads(out)["steps"]}) == (1, {"undecided"})


def test_metrics_have_absolute_and_relative_error_and_a_tolerance(root: Path, compare: Compare) -> None:
    run = make_run(root, PASS, metrics={**METRICS, "train/reward": (0.2, 0.4, 0.75)})
    baseline = make_run(root, PASS)
    status, out, _ = compare(run, baseline, "--json")
    (step,) = json.loads(out)["steps"]
    (reward,) = [tag for tag in step["metrics"]["tags"] if tag["tag"] == "train/reward"]
    assert status == 1
    assert (reward["max_abs"], reward["max_rel"]) == pytest.approx((0.15, 0.25))
    assert compare(run, baseline, "--rtol", "0.3")[0] == 0


def test_configuration_and_environment_that_differ(root: Path, compare: Compare) -> None:
    run = make_run(root, PASS, config={"lr": 0.0, "a": {"b": 1}}, env={"NEW": "1", "PWD": "/x"})
    baseline = make_run(root, PASS, config={"lr": 0.001, "a": {"b": 1}}, env={"PWD": "/y"})
    status, out, _ = compare(run, baseline, "--json")
    (step,) = json.loads(out)["steps"]
    assert status == 0
    assert step["config"] == [{"key": "lr", "run": "0.0", "baseline": "0.001"}]
    assert step["environment"] == [{"key": "NEW", "run": "1", "baseline": None}]
    assert "configuration: lr: 0.001 -> 0.0" in compare(run, baseline)[1]


def test_where_an_attempt_lay_is_no_difference(root: Path, compare: Compare) -> None:
    runs = [make_run(root, PASS), make_run(root, PASS)]
    for run in runs:
        (attempt,) = run.layout.attempts.iterdir()
        place = f"/elsewhere/runs/{run.layout.id}/attempts/{attempt.name}"
        (attempt / "config.json").write_text(json.dumps({"output_dir": place, "log": f"file={place}/log"}))
    (step,) = json.loads(compare(*runs, "--json")[1])["steps"]
    assert step["config"] == []


def test_a_secret_of_the_configuration_is_not_shown(root: Path, compare: Compare) -> None:
    secrets = {"wandb": {"api_key": "hunter2hunter2"}, "url": "https://me:hunter2hunter2@host/"}
    run, baseline = make_run(root, PASS, config=secrets), make_run(root, PASS)
    for words in ((), ("--json",), ("--format", "markdown")):
        out = compare(run, baseline, *words)[1]
        assert "wandb" in out
        assert "hunter2" not in out


def test_markdown(root: Path, compare: Compare, snapshot: object) -> None:
    run = make_run(root, FAIL, metrics={"train/reward": (0.2, 0.9)}, config={"lr": 0.0, "x|y": "a`b"})
    baseline = make_run(root, PASS)
    _, out, _ = compare(run, baseline, "--format", "markdown")
    assert out.replace(run.layout.id, "RUN").replace(baseline.layout.id, "BASELINE") == snapshot


def test_what_a_log_says_is_text_in_markdown(root: Path, compare: Compare) -> None:
    run = make_run(root, FAIL, config={"<script>": "<img src=x>"}, cause="judge.x")
    attempt = next(run.layout.attempts.iterdir())
    result = (attempt / "result.json").read_text().replace("loss is NaN", "<script>alert(1)</script> | x")
    (attempt / "result.json").write_text(result)
    out = compare(run, make_run(root, PASS), "--format", "markdown")[1]
    cells = [line for line in out.splitlines() if "alert" in line]
    assert cells
    assert all("<script>" not in line for line in cells)


def test_an_unknown_step_is_wrong_usage(root: Path, compare: Compare) -> None:
    status, _, err = compare(make_run(root, PASS), make_run(root, PASS), "--step", "bench-L0-grop")
    assert status == 2
    assert "did you mean 'bench-L0-grpo'" in err


def test_html_is_the_report_with_the_baseline_beside_it(root: Path, compare: Compare) -> None:
    ours, theirs = make_run(root, PASS), make_run(root, PASS)
    status, out, _ = compare(ours, theirs, "--format", "html")
    assert status == 0
    assert out.lstrip().lower().startswith("<!doctype html>")
    assert theirs.layout.id in out
