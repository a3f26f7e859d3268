"""Which code ran, which backend was on, where the refit time went."""

import pytest

from proveout.domain.evidence import ImportRecord
from proveout.domain.step import Criterion
from proveout.domain.verdict import Verdict
from proveout.judge import judge


def found(judgement):
    return [f.id.removeprefix("judge.") for f in judgement.findings]


class TestProvenance:
    @pytest.fixture
    def tree(self, tmp_path):
        package = tmp_path / "bridge" / "megatron" / "bridge"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (tmp_path / "bridge-old").mkdir()
        return tmp_path

    def judged(self, attempt, tree, records, **params):
        asked = {"expected": {"megatron.bridge": str(tree / "bridge")}} | params
        imports = tuple(ImportRecord(module="megatron.bridge", path=str(p), importer=by) for p, by in records)
        return judge(attempt(criteria=(Criterion(kind="provenance", params=asked),), imports=imports))

    def test_the_tree_under_test_holds(self, attempt, tree):
        path = tree / "bridge/megatron/bridge/__init__.py"
        judgement = self.judged(attempt, tree, [(path, "worker")], by=["worker"])
        assert judgement.verdict is Verdict.PASS
        assert str(path) in judgement.results[-1].held[0].text

    @pytest.mark.parametrize("other", ["bridge-old/megatron/__init__.py", "elsewhere.py", ""])
    def test_another_tree_fails_also_one_with_a_like_name(self, attempt, tree, other):
        path = tree / other if other else ""
        assert found(self.judged(attempt, tree, [(path, "worker")])) == ["provenance.foreign"]

    def test_a_link_into_the_tree_is_the_tree_and_one_out_of_it_is_not(self, attempt, tree):
        (tree / "link").symlink_to(tree / "bridge")
        inside = tree / "link/megatron/bridge/__init__.py"
        assert found(self.judged(attempt, tree, [(inside, "driver")])) == []
        (tree / "bridge" / "out").symlink_to(tree / "bridge-old")
        outside = tree / "bridge/out/__init__.py"
        assert found(self.judged(attempt, tree, [(outside, "driver")])) == ["provenance.foreign"]

    def test_a_driver_does_not_speak_for_the_workers(self, attempt, tree):
        path = tree / "bridge/megatron/bridge/__init__.py"
        judgement = self.judged(attempt, tree, [(path, "driver")], by=["worker"])
        assert found(judgement) == ["provenance.unseen"]
        assert "only driver did" in judgement.findings[0].what

    def test_a_driver_that_differs_limits_and_a_single_worker_that_differs_decides(self, attempt, tree):
        path = tree / "bridge/megatron/bridge/__init__.py"
        other = tree / "bridge-old/x.py"
        judgement = self.judged(attempt, tree, [(path, "worker"), (other, "driver")], by=["worker"])
        assert (judgement.verdict, found(judgement)) == (Verdict.PASS, ["provenance.elsewhere"])
        judgement = self.judged(attempt, tree, [(path, "worker"), (other, "worker")], by=["worker"])
        assert judgement.verdict is Verdict.FAIL

    def test_nothing_seen_fails(self, attempt, tree):
        assert found(self.judged(attempt, tree, [])) == ["provenance.unseen"]


class TestBackend:
    CONFIG = ({"policy.megatron_cfg.enabled": "True", "a.tp": 2, "a.names": ["x"], "a.off": None},)

    @pytest.mark.parametrize(
        ("key", "value", "expected"),
        [
            ("policy.megatron_cfg.enabled", True, []),
            ("policy.megatron_cfg.enabled", "true", []),
            ("policy.megatron_cfg.enabled", False, ["backend.differs"]),
            ("policy.megatron_cfg.enabled", 1, ["backend.differs"]),
            ("a.tp", "2", []),
            ("a.tp", 4, ["backend.differs"]),
            ("a.names", ["x"], []),
            ("a.off", "null", []),
            ("policy.megatron.enabled", True, ["backend.missing"]),
        ],
    )
    def test_values_are_compared_as_they_mean(self, attempt, key, value, expected):
        criteria = (Criterion(kind="backend", params={"expected": {key: value}}),)
        judgement = judge(attempt(criteria=criteria, config=self.CONFIG[0]))
        assert found(judgement) == expected
        if not expected:
            assert key in judgement.results[-1].held[0].text

    def test_no_configuration_shows_nothing(self, attempt):
        criteria = (Criterion(kind="backend", params={"expected": {"a": 1}}),)
        assert found(judge(attempt(criteria=criteria))) == ["backend.no-config"]


class TestRefitTiming:
    PREFIX = "timing/train/prepare_for_generation"

    def judged(self, attempt, tables, log="x\n", **params):
        points = {"train/loss": {1: 1.0, 2: 0.9, 3: 0.8}} | tables
        return judge(attempt(points, criteria=(Criterion(kind="refit_timing", params=params),), log=log))

    def tables(self, **seconds):
        return {tag: dict.fromkeys((1, 2, 3), value) for tag, value in seconds.items()}

    def test_old_names_say_which_boundary_dominates(self, attempt):
        transfer = f"{self.PREFIX}/weight_transfer"
        tables = self.tables(
            **{
                f"{self.PREFIX}/total": 2.0,
                "timing/train/total_step_time": 8.0,
                f"{transfer}/producer/sparse_encode": 1.2,
                f"{transfer}/producer/collect_tensors": 0.2,
                f"{transfer}/broadcast": 0.01,
                f"{transfer}/consumer/decode_sparse": 0.3,
                f"{transfer}/consumer/load_delta": 0.2,
            }
        )
        judgement = self.judged(attempt, tables)
        assert judgement.verdict is Verdict.PASS
        (finding,) = judgement.findings
        assert finding.what.startswith("encode dominates the transfer")
        assert "73% of 1.91 s" in finding.what
        assert "not in sending them" in finding.what
        assert "refit takes 2 s (median), 25% of a step" in judgement.results[-1].held[0].what

    def test_log_lines_say_it_too(self, attempt):
        log = (
            "REFIT_ZMQ_TIMING total_s=2.0 export_pull_s=0.1 encode_s=0.2 serialize_s=0.1 payloads=3 "
            "receiver_zmq_decode_s=0.9 receiver_sparse_apply_s=0.3\n"
        )
        judgement = self.judged(attempt, {}, log)
        (finding,) = judgement.findings
        assert finding.what.startswith("decode dominates")
        assert finding.evidence[0].where.line == 1

    def test_verl_names_and_the_limit(self, attempt):
        tables = self.tables(**{"timing_s/update_weights": 3.0, "timing_s/step": 10.0})
        assert found(self.judged(attempt, tables, max_share=0.4)) == []
        assert found(self.judged(attempt, tables, max_share=0.2)) == ["refit_timing.share"]
        only = self.tables(**{"timing_s/update_weights": 3.0})
        assert found(self.judged(attempt, only, max_share=0.2)) == ["refit_timing.no-step-time"]

    def test_no_timing_is_an_error(self, attempt):
        assert found(self.judged(attempt, {})) == ["refit_timing.missing"]
