"""Whole runs in fresh processes: what they learn, print, write and how they end."""

from __future__ import annotations

import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bench.runs import Finished, bench, grpo

pytestmark = pytest.mark.real

NEMO_RL_TAGS = {
    *("loss", "reward", "grad_norm", "lr", "wd", "token_mult_prob_error", "gen_kl_error", "policy_kl_error"),
    *("js_divergence_error", "probs_ratio", "probs_ratio_clamped", "probs_ratio_clamped_min"),
    *(
        "probs_ratio_clamped_max",
        "sampling_importance_ratio",
        "approx_entropy",
        "kl_penalty",
        "advantages/mean",
    ),
    *(
        "advantages/max",
        "advantages/min",
        "mean_gen_tokens_per_sample",
        "global_valid_toks",
        "global_valid_seqs",
    ),
    *("zero_advantage_share", "trainable_params", "weight_delta"),
}
PHASES = {
    *(
        "total_step_time",
        "data_processing",
        "prepare_for_generation/total",
        "generation",
        "reward_calculation",
    ),
    *("prepare_for_generation/transfer_and_update_weights", "policy_and_reference_logprobs"),
    *("advantage_calculation", "policy_training"),
}
DONE = "Max number of steps has been reached"


def test_a_tiny_random_model_learns_the_default_task(learned: Finished) -> None:
    assert learned.status == 0, learned.err
    series = learned.series()
    reward = series["train/reward"]
    assert list(reward) == list(range(1, 61))
    assert reward[1] < 0.35
    assert min(reward[step] for step in range(51, 61)) > 0.8
    assert max(series["train/token_mult_prob_error"].values()) < 1.0001
    assert min(series["train/weight_delta"].values()) > 0
    assert all(math.isfinite(value) for points in series.values() for value in points.values())


def test_the_same_seed_gives_the_same_numbers(learned: Finished, tmp_path: Path) -> None:
    def numbers(run: Finished) -> dict[str, dict[int, float]]:
        return {tag: points for tag, points in run.series().items() if tag.startswith("train/")}

    first = {tag: dict(list(points.items())[:15]) for tag, points in numbers(learned).items()}
    assert numbers(grpo(tmp_path / "same", "max_steps=15")) == first


def test_the_events_have_the_documented_tags_at_every_step(learned: Finished) -> None:
    series = learned.series()
    for tag in {f"train/{name}" for name in NEMO_RL_TAGS} | {f"timing/train/{name}" for name in PHASES}:
        assert list(series[tag]) == list(range(1, 61)), tag
    setup = {tag: points for tag, points in series.items() if tag.startswith("timing/setup/")}
    assert "timing/setup/total_setup_time_s" in setup
    assert all(list(points) == [0] for points in setup.values())


def test_phases_add_up_to_no_more_than_the_step(learned: Finished) -> None:
    series = learned.series()
    parts = PHASES - {"total_step_time", "prepare_for_generation/transfer_and_update_weights"}
    for step, total in series["timing/train/total_step_time"].items():
        assert sum(series[f"timing/train/{part}"][step] for part in parts) <= total * 1.001


def test_the_console_shows_what_a_real_loop_shows_in_order(learned: Finished) -> None:
    words = [
        *("Final config:", "Provenance: python", "Provenance: torch", "Setting up model and training..."),
        *(
            "SETUP COMPLETE",
            "=== Step 1/60 ===",
            "Preparing batch...",
            "Generating responses for batch of size 32",
        ),
        *(
            "Computing logprobs...",
            "Training policy...",
            "Training Results:",
            "Loss:",
            "Generation KL Error:",
        ),
        *("Avg Reward:", "Timing:", "=== Step 60/60 ===", DONE),
    ]
    places = [learned.out.index(word) for word in words]
    assert places == sorted(places)
    shown = [float(value) for value in re.findall(r"^  - Avg Reward: (\S+)$", learned.out, re.MULTILINE)]
    assert shown == pytest.approx(list(learned.series()["train/reward"].values()), abs=5e-5)


def test_the_resolved_configuration_is_printed_and_saved(learned: Finished) -> None:
    saved = json.loads((learned.folder / "config.json").read_text())
    assert (saved["max_steps"], saved["seed"], saved["output_dir"]) == (60, 0, str(learned.folder))
    printed = learned.out[learned.out.index("{") : learned.out.index("Provenance")]
    assert json.loads(printed) == saved


def test_provenance_names_the_files_that_were_imported(learned: Finished) -> None:
    record = json.loads((learned.folder / "provenance.json").read_text())
    assert record["python"]["file"] == sys.executable
    for name in ("torch", "transformers", "proveout_bench"):
        assert Path(record["modules"][name]["file"]).is_file()
        assert f"from {record['modules'][name]['file']}" in learned.out


def test_nan_in_the_loss_is_logged_at_its_step_and_the_run_goes_on(tmp_path: Path) -> None:
    done = grpo(tmp_path / "run", "max_steps=4", "fault.nan_loss_at_step=3")
    assert done.status == 0
    assert DONE in done.out
    series = done.series()
    for tag in ("train/loss", "train/grad_norm"):
        assert [math.isnan(value) for value in series[tag].values()] == [False, False, True, False]
    assert series["train/weight_delta"][3] == 0 < series["train/weight_delta"][4]


@pytest.fixture(scope="module")
def unmoved(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Another seed than the long run's, and no learning rate."""
    return grpo(tmp_path_factory.mktemp("unmoved"), "max_steps=3", "lr=0", "seed=1")


def test_a_learning_rate_of_zero_moves_nothing(unmoved: Finished) -> None:
    assert unmoved.status == 0
    series = unmoved.series()
    assert set(series["train/weight_delta"].values()) == {0.0}
    assert min(series["train/grad_norm"].values()) > 0
    assert set(series["train/lr"].values()) == {0.0}


def test_another_seed_gives_other_numbers_from_the_first_step(learned: Finished, unmoved: Finished) -> None:
    for tag in ("train/loss", "train/reward", "train/approx_entropy"):
        assert unmoved.series()[tag][1] != learned.series()[tag][1]


def test_an_early_stop_exits_0_without_claiming_the_last_step(tmp_path: Path) -> None:
    done = grpo(tmp_path / "run", "max_steps=5", "stop_after_step=2", "task.name=arithmetic")
    assert done.status == 0
    assert DONE not in done.out
    assert max(done.series()["train/loss"]) == 2


def test_a_checkpoint_directory_trains_like_the_model_that_it_holds(
    learned: Finished, tmp_path: Path
) -> None:
    assert bench("init-model", str(tmp_path / "model")).status == 0
    done = grpo(tmp_path / "run", f"model={tmp_path / 'model'}", "max_steps=2")
    assert done.status == 0, done.err
    for step in (1, 2):
        assert done.series()["train/reward"][step] == pytest.approx(learned.series()["train/reward"][step])


def test_a_directory_that_cannot_be_made_is_status_3(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = grpo(tmp_path / "file" / "run", "max_steps=2")
    assert done.status == 3
    assert str(tmp_path / "file") in done.err
    assert "Traceback" not in done.err + done.out


def test_no_more_space_during_the_run_is_status_3(tmp_path: Path) -> None:
    limit = 6000
    done = grpo(
        tmp_path / "run",
        "max_steps=20",
        prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.status == 3
    assert "cannot write" in done.err
    assert "Traceback" not in done.err + done.out
    assert DONE not in done.out


def test_ctrl_c_ends_the_run_with_its_events_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = [sys.executable, "-m", "proveout_bench", "grpo", f"output_dir={folder}", "max_steps=100000"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if "Step 3/" in line:
                child.send_signal(signal.SIGINT)
                break
        _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "Traceback" not in err
    assert max(Finished(130, "", err, folder).series()["train/loss"]) >= 2
