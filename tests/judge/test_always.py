"""The criteria that are applied to every step."""

import os
import time

import pytest

from proveout.domain.evidence import ArtifactState
from proveout.domain.step import Artifact, Criterion
from proveout.domain.verdict import Verdict
from proveout.judge import judge
from proveout.judge.criteria.false_pass import rules

NAN, INF = float("nan"), float("inf")

LINES = {
    "refit-failed": "Error: Updating weights for the generation policy failed during refit.",
    "async-loop-error": "(x pid=1) Error in async loop: KeyError",
    "nan-grad": "RuntimeError: found NaN in local grad norm for bucket #0",
    "legacy-mbridge": "FutureWarning: The legacy mbridge backend selected by vanilla_mbridge=True",
    "fused-fallback": "WARNING Falling back to non-fused cross entropy",
    "import-skipped": "Checkpoint already exists at /m/iter_0000000. Skipping import.",
    "container-mismatch": "!! Container/Code Version Mismatch Detected",
    "tp-accuracy-ignored": "+ export NRL_IGNORE_TP_ACCURACY_CHECK=1",
    "no-tests": "No tests collected; skipping.",
    "no-tests-ran": "============ no tests ran in 0.05s ============",
    "all-deselected": "=========== 169 deselected in 0.13s ===========",
    "all-skipped": "=========== 4 skipped, 2 warnings in 0.13s ===========",
}


def ids(judgement):
    return [finding.id for finding in judgement.findings]


class TestCompletion:
    def test_a_run_that_stops_short_fails_though_it_exits_0(self, attempt):
        judgement = judge(attempt({"train/loss": {1: 0.5, 2: 0.4}}))
        assert ids(judgement) == ["judge.completion.short"]
        assert "ends at step 2, step 3 was planned" in judgement.findings[0].what

    def test_one_series_that_stops_short_is_named(self, attempt):
        judgement = judge(attempt({"train/loss": {1: 1, 2: 1, 3: 1}, "train/grad_norm": {1: 1, 2: 1}}))
        assert ids(judgement) == ["judge.completion.short"]
        assert judgement.findings[0].where.metric == "train/grad_norm"

    def test_no_metrics_fail(self, attempt):
        judgement = judge(attempt({"ray/node.0.gpu.0.util": {30: 1.0}}))
        assert ids(judgement) == ["judge.completion.no-metrics"]

    def test_metrics_of_a_longer_run_fail(self, attempt):
        judgement = judge(attempt({"train/loss": dict.fromkeys(range(1, 6), 0.5)}))
        assert ids(judgement) == ["judge.completion.beyond"]

    def test_records_older_than_the_attempt_fail(self, attempt):
        judgement = judge(attempt(walls=time.time() - 3600))
        assert set(ids(judgement)) == {"judge.completion.stale"}

    def test_without_wall_times_the_file_tells_the_age(self, attempt):
        evidence = attempt(walls=NAN)
        source = attempt.directory / "m.json"
        source.write_text("{}")
        assert judge(evidence).verdict is Verdict.PASS
        os.utime(source, (1.0, 1.0))
        assert set(ids(judge(evidence))) == {"judge.completion.stale"}

    def test_the_loops_own_timeout_fails_with_its_line(self, attempt):
        judgement = judge(attempt(log="step 1\nTimeout has been reached, stopping training early\n"))
        assert ids(judgement) == ["judge.completion.timeout"]
        assert judgement.findings[0].where.line == 2

    @pytest.mark.parametrize(
        ("line", "fails"),
        [
            ("Training Progress: 100%|##########| 1/1 [00:00<?, ?it/s]", True),
            ("\x1b[36m(TaskRunner pid=9)\x1b[0m Training Progress: 100%|█| 2/2 [00:00<?, ?it/s]", True),
            ("100%|██████████| 3/3 [00:00<?, ?it/s]", True),
            ("Training Progress:   0%|          | 0/1 [00:00<?, ?it/s]", False),
            ("Training Progress:  50%|█████     | 1/2 [00:00<?, ?it/s]", False),
            ("Training Progress: 100%|██████████| 4/4 [00:20<00:00,  3.95s/it]", False),
            ("Loading weights: 100%|██████████| 50/50 [00:00<?, ?it/s]", False),
            ("  0%|          | 0/3 [00:00<?, ?it/s]", False),
            ("Map: 100%|##| 9/9 [00:01<00:00]Training Progress:   0%|  | 0/9 [00:00<?, ?it/s]", False),
        ],
    )
    def test_a_bar_that_is_full_when_first_drawn_means_nothing_was_trained(self, attempt, line, fails):
        found = ids(judge(attempt(log=f"{line}\n")))
        assert found == (["judge.completion.nothing-left"] if fails else [])

    def test_a_step_without_training_needs_no_metrics(self, attempt):
        assert judge(attempt({"other": {}}, planned=None)).verdict is Verdict.PASS


class TestArtifacts:
    DECLARED = (Artifact(path="checkpoints/step_3", what="the checkpoint", min_bytes=100),)

    def state(self, **different):
        fields = {"exists": True, "modified": time.time(), "size": 500, "min_bytes": 100} | different
        return ArtifactState(path="checkpoints/step_3", what="the checkpoint", **fields)

    def test_a_new_artifact_holds(self, attempt):
        judgement = judge(attempt(declared=self.DECLARED, artifacts=(self.state(),)))
        assert judgement.verdict is Verdict.PASS
        assert "500 bytes" in judgement.results[2].held[0].text

    @pytest.mark.parametrize(
        ("different", "what"),
        [
            ({"exists": False}, "missing"),
            ({"modified": 1000.0}, "stale"),
            ({"size": 99}, "small"),
        ],
    )
    def test_missing_old_and_small_ones_fail(self, attempt, different, what):
        judgement = judge(attempt(declared=self.DECLARED, artifacts=(self.state(**different),)))
        assert ids(judgement) == [f"judge.artifacts.{what}"]

    def test_one_that_nobody_looked_for_fails(self, attempt):
        assert ids(judge(attempt(declared=self.DECLARED))) == ["judge.artifacts.not-examined"]


class TestFinite:
    @pytest.mark.parametrize("value", [NAN, INF, -INF])
    def test_a_late_value_fails_naming_series_and_step(self, attempt, value):
        judgement = judge(
            attempt({"train/loss": {1: 1, 2: 1, 3: 1}, "train/new": {1: 1.0, 2: 2.0, 3: value}})
        )
        assert ids(judgement) == ["judge.finite.non-finite"]
        assert "train/new is not finite at step 3" in judgement.findings[0].what
        assert judgement.findings[0].evidence[0].where.step == 3

    def test_the_series_that_broke_first_is_named_first(self, attempt):
        late, early = {1: 0.5, 2: 0.5, 3: NAN}, {1: 0.5, 2: NAN, 3: NAN}
        judgement = judge(attempt({"train/loss": late, "train/zeta": early}))
        assert [finding.what.split()[0] for finding in judgement.findings] == ["train/zeta", "train/loss"]

    def test_a_machine_series_only_warns(self, attempt):
        judgement = judge(attempt({"train/loss": {3: 1}, "perf/mfu/actor": {3: NAN}}))
        assert judgement.verdict is Verdict.PASS
        assert ids(judgement) == ["judge.finite.measurement"]

    @pytest.mark.parametrize(
        ("points", "padding"),
        [
            ({1: NAN, 2: 0.5, 3: NAN, 4: 0.6, 5: NAN, 6: 0.7}, True),
            ({1: NAN, 2: NAN, 3: NAN, 4: NAN, 5: 0.5, 6: NAN}, True),
            ({1: NAN, 2: 0.5, 3: NAN, 4: 0.6, 5: NAN, 6: NAN}, False),
            ({1: NAN, 2: 0.5, 3: NAN, 4: 0.6, 5: INF, 6: 0.7}, False),
            ({1: 0.5, 2: 0.5, 3: NAN, 4: 0.6, 5: NAN, 6: 0.7}, False),
            ({1: NAN, 2: NAN, 3: NAN, 4: NAN, 5: NAN, 6: NAN}, False),
            ({1: 0.5, 2: NAN, 3: NAN, 4: NAN, 5: NAN, 6: NAN}, False),
        ],
    )
    def test_padding_between_evaluations_is_no_alarm(self, attempt, points, padding):
        loss = dict.fromkeys(range(1, 7), 0.5)
        judgement = judge(attempt({"train/loss": loss, "validation/accuracy": points}, planned=6))
        assert ids(judgement) == ["judge.finite.padding" if padding else "judge.finite.non-finite"]

    def test_padding_of_a_training_series_is_an_alarm(self, attempt):
        points = {1: NAN, 2: 0.5, 3: NAN, 4: 0.5}
        judgement = judge(attempt({"train/reward": points}, planned=4))
        assert judgement.verdict is Verdict.FAIL


class TestFalsePass:
    HARMLESS = (
        "known batch-variant issue, set NRL_IGNORE_TP_ACCURACY_CHECK=1 to bypass it",
        "====== 3 passed, 166 deselected in 1.13s ======",
        "====== 3 passed, 4 skipped in 1.13s ======",
        "Skipping import.",
    )

    def test_every_rule_has_a_line_here(self):
        assert {rule.id for rule in rules()} == set(LINES)

    @pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
    def test_each_line_is_found_and_cited(self, attempt, rule):
        log = f"first\n\x1b[31m{LINES[rule.id]}\x1b[0m\nlast\n"
        judgement = judge(attempt(log=log))
        assert ids(judgement) == [f"judge.false_pass.{rule.id}"]
        assert (judgement.findings[0].where.file, judgement.findings[0].where.line) == ("run.log", 2)
        assert judgement.verdict is (Verdict.FAIL if rule.severity == "error" else Verdict.PASS)

    @pytest.mark.parametrize("line", HARMLESS)
    def test_lines_that_only_look_alike_are_left_alone(self, attempt, line):
        assert ids(judge(attempt(log=f"{line}\n"))) == []

    def test_a_step_can_make_a_warning_decide(self, attempt):
        criteria = (Criterion(kind="false_pass", params={"fatal": ["import-skipped"]}),)
        judgement = judge(attempt(log=LINES["import-skipped"], criteria=criteria))
        assert judgement.verdict is Verdict.FAIL

    def test_without_a_log_nothing_is_excluded(self, attempt):
        assert ids(judge(attempt(log=None))) == ["judge.false_pass.no-log"]

    def test_a_pipe_into_tee_without_pipefail_loses_the_exit_status(self, attempt):
        script = ("bash", "-c", "python train.py 2>&1 | tee run.log")
        assert ids(judge(attempt(argv=script))) == ["judge.false_pass.tee"]
        safe = ("bash", "-o", "pipefail", "-c", "python train.py 2>&1 | tee run.log")
        assert ids(judge(attempt(argv=safe))) == []

    def test_the_waved_accuracy_check_is_no_evidence(self, attempt):
        judgement = judge(attempt(env={"NRL_IGNORE_TP_ACCURACY_CHECK": "1"}))
        assert ids(judgement) == ["judge.false_pass.tp-accuracy-ignored"]

    def test_secrets_in_a_cited_line_are_masked(self, attempt):
        judgement = judge(attempt(log="Error in async loop: token=hf_abcdefghijklmnopqrstuvwx\n"))
        assert "hf_abc" not in judgement.findings[0].evidence[0].text


class TestChecks:
    def test_checks_that_hold_pass_with_their_values(self, attempt):
        criteria = (Criterion(kind="checks", params={"expressions": ['max(data["train/reward"]) > 0.2']}),)
        judgement = judge(attempt(criteria=criteria))
        assert judgement.verdict is Verdict.PASS
        assert [(row.passed, row.value) for row in judgement.results[-1].checks] == [(True, "0.3")]

    def test_a_check_that_fails_says_its_value(self, attempt):
        criteria = (Criterion(kind="checks", params={"expressions": ['max(data["train/reward"]) > 0.5']}),)
        judgement = judge(attempt(criteria=criteria))
        assert ids(judgement) == ["judge.checks.failed"]
        assert "value 0.3" in judgement.findings[0].what

    def test_checks_that_cannot_fail_show_nothing(self, attempt):
        ratio = {"train/loss": {3: 1.0}, "train/probs_ratio_clamped_min": {3: 1.0}}
        clamped = 'min(data["train/probs_ratio_clamped_min"]) > 0.79'
        only = (Criterion(kind="checks", params={"expressions": [clamped]}),)
        judgement = judge(attempt(ratio, criteria=only))
        assert ids(judgement) == ["judge.checks.cannot-fail", "judge.checks.none-can-fail"]
        assert judgement.verdict is Verdict.FAIL
        both = (Criterion(kind="checks", params={"expressions": [clamped, 'data["train/loss"]["3"] < 2']}),)
        judgement = judge(attempt(ratio, criteria=both))
        assert ids(judgement) == ["judge.checks.cannot-fail"]
        assert judgement.verdict is Verdict.PASS
