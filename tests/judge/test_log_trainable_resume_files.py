"""Lines that must or must not be printed, trainable parameters, and a resume inside one attempt."""

import json

import pytest

from proveout.domain.step import Criterion
from proveout.domain.verdict import Verdict
from proveout.judge import judge

SERIES = {"train/loss": {"rtol": 0.05}, "train/lr": {"rtol": 1e-5}}
LOSS, RATE = {"1": 0.5, "2": 0.4}, {"1": 1e-3, "2": 1e-3}


def ids(judgement):
    return [finding.id.removeprefix("judge.") for finding in judgement.findings]


class TestLog:
    @pytest.mark.parametrize(
        ("params", "wanted"),
        [
            ({"requires": ["step 3"]}, []),
            ({"excludes": ["Falling back"]}, []),
            ({"requires": ["step 4"]}, ["log.missing"]),
            ({"excludes": ["step 3"]}, ["log.excluded"]),
            ({"requires": [""]}, ["log.params"]),
            ({}, ["log.params"]),
        ],
    )
    def test_words_on_the_log(self, attempt, params, wanted):
        assert ids(judge(attempt(criteria=(Criterion(kind="log", params=params),)))) == wanted

    def test_an_excluded_line_is_cited(self, attempt):
        asked = (Criterion(kind="log", params={"excludes": ["bad"]}),)
        judgement = judge(attempt(log="fine\nsomething bad here\n", criteria=asked))
        assert judgement.verdict is Verdict.FAIL and judgement.findings[0].where.line == 2

    def test_a_log_that_is_not_there_shows_nothing(self, attempt):
        asked = (Criterion(kind="log", params={"excludes": ["bad"]}),)
        assert "log.unreadable" in ids(judge(attempt(log=None, criteria=asked)))


class TestTrainable:
    ASKED = (Criterion(kind="trainable"),)

    def test_a_count_above_zero_holds(self, attempt):
        log = "(MegatronPolicyWorker pid=1)   Trainable parameters: 131,072\n"
        judgement = judge(attempt(log=log, criteria=self.ASKED))
        assert judgement.verdict is Verdict.PASS and judgement.results[-1].held[0].where.line == 1

    def test_none_trainable_fails(self, attempt):
        log = "  Trainable parameters: 0\n"
        assert ids(judge(attempt(log=log, criteria=self.ASKED))) == ["learning_signal.nothing-trainable"]

    def test_silence_fails(self, attempt):
        assert ids(judge(attempt(criteria=self.ASKED))) == ["learning_signal.trainable-unknown"]


class TestResumeFiles:
    PROOF = "[two] successfully loaded checkpoint from /ck/step_1/policy/weights [ t 0/1 ]\n"

    @pytest.fixture
    def judged(self, attempt, tmp_path):
        def build(*, saved=None, resumed=None, log=None):
            whole = {"train/loss": LOSS, "train/lr": RATE}
            half = {tag: {"1": points["1"]} for tag, points in whole.items()}
            for name, table in (("a", saved or half), ("b", resumed or whole), ("c", whole)):
                (tmp_path / f"{name}.json").write_text(json.dumps(table))
            files = {key: str(tmp_path / f"{name}.json") for key, name in
                     (("saved", "a"), ("resumed", "b"), ("baseline", "c"))}  # fmt: skip
            params = {**files, "resumed_after": 1, "series": SERIES}
            criteria = (Criterion(kind="resume_files", params=params),)
            return judge(attempt(log=log or self.PROOF, loop="nemo-rl", criteria=criteria))

        return build

    def test_a_sound_resume_passes_though_one_step_is_little(self, judged):
        judgement = judged()
        assert judgement.verdict is Verdict.PASS and ids(judgement) == ["resume_parity.one-step"]

    def test_a_second_run_that_loads_nothing_fails(self, judged):
        assert "resume_parity.no-proof" in ids(judged(log="training\n"))

    def test_a_first_run_that_did_not_stop_leaves_nothing_to_resume(self, judged):
        assert "resume_files.not-stopped" in ids(judged(saved={"train/loss": LOSS, "train/lr": RATE}))

    def test_other_numbers_than_the_uninterrupted_run_fail(self, judged):
        other = {"train/loss": {"1": 0.5, "2": 0.9}, "train/lr": RATE}
        assert "resume_parity.differs" in ids(judged(resumed=other))

    def test_a_missing_file_is_no_pass(self, attempt, tmp_path):
        files = {key: str(tmp_path / "none.json") for key in ("saved", "resumed", "baseline")}
        params = {**files, "resumed_after": 1, "series": SERIES}
        criteria = (Criterion(kind="resume_files", params=params),)
        judgement = judge(attempt(log=self.PROOF, loop="nemo-rl", criteria=criteria))
        assert judgement.verdict is Verdict.FAIL


def test_refit_series_that_were_asked_for_must_be_there(attempt):
    metrics = {"train/loss": {3: 1.0}, "timing/train/prepare_for_generation/total": {3: 1.0}}
    asked = {"series": ["refit/delta/changed_pct"]}
    judgement = judge(attempt(metrics, criteria=(Criterion(kind="refit_timing", params=asked),)))
    assert ids(judgement) == ["refit_timing.missing"]
