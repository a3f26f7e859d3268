"""Sound runs of stand-ins pass, and what only looks as if it had passed does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import call
from tests.loops import standins

from proveout.domain.evidence import ImportRecord
from proveout.domain.verdict import Verdict

Prove = Callable[..., Any]
pytestmark = pytest.mark.real


def test_a_sound_nemo_rl_smoke_passes(prove: Prove) -> None:
    proof = prove("nemo-rl", 0)
    assert proof.last.verdict is Verdict.PASS, proof.last.attempts[-1].findings
    held = " ".join(cite.what for cite in proof.last.attempts[-1].held)
    assert "megatron.bridge in the worker comes from the tree under test" in held
    assert proof.last.attempts[-1].last_step == 2


def test_a_sound_verl_smoke_passes(prove: Prove) -> None:
    proof = prove("verl", 0)
    assert proof.last.verdict is Verdict.PASS, proof.last.attempts[-1].findings
    assert proof.last.attempts[-1].last_step == 1


def test_verl_resumes_what_it_saved(prove: Prove) -> None:
    proof = prove("verl", 1, variant="lora")
    assert [result.verdict for result in proof.results.values()] == [Verdict.PASS] * 2, proof.ids
    assert any(f.id.endswith("uncompared") for f in proof.last.attempts[-1].findings)


@pytest.mark.parametrize(
    ("fault", "finding"),
    [("restarts", "resume_parity.started-over"), ("optimizer-lost", "resume_parity.no-proof")],
)
def test_verl_resume_that_is_none_fails(prove: Prove, fault: str, finding: str) -> None:
    proof = prove("verl", 1, fault, variant="lora")
    first, second = proof.results.values()
    assert (first.verdict, second.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert finding in proof.ids


def test_a_step_whose_need_failed_is_skipped(prove: Prove) -> None:
    proof = prove("verl", 1, "raises", variant="lora")
    assert [result.verdict for result in proof.results.values()] == [Verdict.FAIL, Verdict.SKIPPED]
    assert "verl-L1-save" in proof.last.reason


def test_a_wrong_import_path_stops_the_loop(prove: Prove) -> None:
    proof = prove("verl", 2, "worker-import")
    first, second = proof.results.values()
    assert (first.verdict, second.verdict) == (Verdict.FAIL, Verdict.SKIPPED)
    assert "ran other code than that under test" in second.reason and not second.attempts


def test_nemo_rl_lora_counts_what_is_trainable(prove: Prove) -> None:
    proof = prove("nemo-rl", 1, variant="lora")
    assert proof.last.verdict is Verdict.PASS, proof.ids
    broken = prove("nemo-rl", 1, "nothing-trainable", variant="lora")
    assert "learning_signal.nothing-trainable" in broken.ids


def test_metrics_outlive_the_wrapper_and_the_next_run_of_it(prove: Prove, tmp_path: Path) -> None:
    path = tmp_path / "nemo/tests/functional/grpo_megatron.sh"
    text = path.read_text().replace("set -eou", 'trap "rm -rf $SCRIPT_DIR/grpo_megatron" EXIT\nset -eou')
    path.write_text(text)
    first = prove("nemo-rl", 0)
    assert first.last.verdict is Verdict.PASS, first.ids
    assert not (tmp_path / "nemo/tests/functional/grpo_megatron").exists()
    metrics = first.files().metrics
    before = json.loads(metrics.read_text())["train/loss"]
    prove("nemo-rl", 0, "nan")
    assert json.loads(metrics.read_text())["train/loss"] == before
    kept = list(first.files().kept.rglob("events.out.tfevents.*"))
    assert len(kept) == 1 and kept[0].stat().st_nlink == 1


def said(bridge: Path, core: str) -> tuple[ImportRecord, ...]:
    return (
        ImportRecord(
            module="megatron.bridge", path=f"{bridge}/src/megatron/bridge/__init__.py", importer="worker"
        ),
        ImportRecord(module="megatron.core", path=core, importer="worker"),
    )


def test_what_workers_said_before_the_run_is_evidence_where_the_run_is_silent(
    prove: Prove, tmp_path: Path
) -> None:
    bridge = tmp_path / "bridge"
    core = f"{bridge}/3rdparty/Megatron-LM/megatron/core/__init__.py"
    assert prove("verl", 0, "silent", imports=said(bridge, core)).last.verdict is Verdict.PASS
    other = prove("verl", 0, "silent", imports=said(bridge, "/opt/site/megatron/core/__init__.py"))
    assert other.last.verdict is Verdict.FAIL and other.ids == {"provenance.foreign"}


def test_nothing_said_anywhere_is_no_proof(prove: Prove) -> None:
    proof = prove("verl", 0, "silent")
    assert proof.last.verdict is Verdict.FAIL and proof.ids == {"provenance.unseen"}


def test_a_sparse_refit_tells_where_its_time_goes(
    stand_ins: dict[str, str], recording: Path, tmp_path: Path
) -> None:
    """Preparing the weights takes longest, so that is said, and not that sending them does."""
    env = {**standins.environment(tmp_path / "bin", recording), "TORCH_CUDA_ARCH_LIST": "9.0"}
    trees = ("--nemo-rl", stand_ins["nemo-rl"], "--bridge", stand_ins["bridge"])
    answer = call("run", *trees, "--level", "2/delta", "--json", cwd=tmp_path, env=env)
    report = json.loads(answer.out)
    step = next(step for step in report["steps"] if step["id"] == "nemo-rl-L2-delta")
    assert step["verdict"] == "Pass", step["attempts"]
    told = {item["what"]: item for item in report["evidence"]}
    dominates = next(what for what in told if what.startswith("encode dominates the transfer"))
    assert dominates.endswith("the limit is in preparing weights, not in sending them")
    assert told[dominates]["file"] is not None or told[dominates]["text"]
    assert any(what.startswith("refit takes ") and "of a step" in what for what in told)
    assert any(what.startswith("broadcast: sending the payload, 0.013 s") for what in told)
