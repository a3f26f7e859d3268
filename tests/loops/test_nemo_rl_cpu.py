"""Loop nemo-rl on platform cpu: what it plans in a tree that has every script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from proveout import loops
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Step
from proveout.judge.validate import wrong
from proveout.loops.nemo_rl import cpu


@pytest.fixture(autouse=True)
def _stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVEOUT_STACKS", str(tmp_path / "stacks"))


def context(trees: dict[str, str], **more: Any) -> LoopContext:
    options = {"platform": "cpu", "python": sys.executable, **more.pop("options", {})}
    return LoopContext(python="python", checkouts=trees, options=options, **more)


def steps(trees: dict[str, str], level: int, variant: str = "default", **more: Any) -> list[Step]:
    request = LevelRequest(loop="nemo-rl", level=level, requested=True, reason="", variant=variant)
    return list(loops.get("nemo-rl").steps(request, context(trees, **more)))


def criterion(step: Step, kind: str) -> dict[str, Any]:
    return next(item.params for item in step.criteria if item.kind == kind)


def test_the_script_is_started_unmodified_by_the_launcher(full_trees: dict[str, str]) -> None:
    step = steps(full_trees, 0)[0]
    argv = step.command.argv
    assert argv[1:3] == ("-m", "proveout_cpu.nemo_rl.launch") and "--tiny" in argv
    assert argv[argv.index("--") + 1 :][:2] == ("bash", "tests/functional/grpo_megatron.sh")
    assert step.command.cwd == full_trees["nemo-rl"]
    first, *rest = step.command.env["PYTHONPATH"].split(":")
    assert [file.name for file in Path(first).iterdir()] == ["proveout_cpu"]
    assert f"{full_trees['bridge']}/src" in rest
    assert step.resources.gpus == 0 and not step.skip_reason


def test_the_users_words_come_last_and_a_given_model_is_not_made(full_trees: dict[str, str]) -> None:
    step = steps(full_trees, 0, model="/models/mine", overrides=("grpo.seed=9",))[0]
    assert step.command.argv[-1] == "grpo.seed=9" and "--tiny" not in step.command.argv
    assert "policy.model_name=/models/mine" in step.command.argv


def test_a_tiny_model_runs_in_the_place_of_one_on_the_hub_and_that_is_said(
    full_trees: dict[str, str],
) -> None:
    """A plan made from a change names the changed family's model; nothing is fetched on this platform."""
    (step,) = steps(full_trees, 0, "moving", model="Qwen/Qwen2.5-0.5B")
    assert "--tiny" in step.command.argv
    assert not any("Qwen/" in word for word in step.command.argv)
    assert "a tiny Qwen2 ran in the place of Qwen/Qwen2.5-0.5B" in step.limitations


def test_the_smoke_has_a_second_run_whose_updates_can_be_seen(full_trees: dict[str, str]) -> None:
    default, moving = steps(full_trees, 0)
    assert criterion(default, "refit_proof")["moved"] is False and "5e-7" in " ".join(default.limitations)
    assert criterion(moving, "refit_proof")["moved"] is True
    assert "policy.megatron_cfg.optimizer.lr=1e-3" in moving.command.argv
    assert "policy.megatron_cfg.optimizer.lr=1e-3" not in default.command.argv


def test_every_limitation_of_the_platform_is_on_every_step(full_trees: dict[str, str]) -> None:
    for level in (0, 1, 2, 3, 4, 6):
        for step in steps(full_trees, level, "all"):
            assert set(cpu.table().limitations) <= set(step.limitations), step.id
    assert cpu.table().megatron_limitation in steps(full_trees, 3)[0].limitations


def test_a_resume_brings_the_run_that_saves_and_takes_its_checkpoint(full_trees: dict[str, str]) -> None:
    save, resume = steps(full_trees, 1, "resume")
    assert resume.needs == (save.id,) and save.id == "nemo-rl-L1-save"
    at = resume.command.argv.index("--resume")
    saved = save.artifacts[-1].path.rpartition("/")[0]
    assert resume.command.argv[at + 1] == f"{saved}/step_2"
    words = [w for w in resume.command.argv if w.startswith("checkpointing.checkpoint_dir=")]
    assert words[-1].endswith(resume.command.argv[at + 2]) and saved not in words[-1]
    assert resume.command.argv[-1] != "checkpointing.enabled=false"
    last = [w for w in resume.command.argv if w.startswith("checkpointing.enabled=")][-1]
    assert last == "checkpointing.enabled=true"
    assert criterion(resume, "refit_proof")["fresh"] is False
    assert criterion(resume, "resume_parity")["resumed_after"] == 2


def test_every_criterion_is_known(full_trees: dict[str, str]) -> None:
    for level in (0, 1, 2, 3, 4, 6):
        for step in steps(full_trees, level, "all"):
            assert [what for item in step.criteria if (what := wrong(item))] == [], step.id
            assert step.planned_steps and step.claim.endswith("(platform cpu)")


def test_a_level_that_needs_gpus_is_skipped_with_the_reason(full_trees: dict[str, str]) -> None:
    (step,) = steps(full_trees, 5)
    assert "platform cpu has nothing for level 5" in step.skip_reason


def test_what_is_wrong_is_said_before_anything_runs(full_trees: dict[str, str]) -> None:
    loop = loops.get("nemo-rl")
    with pytest.raises(UsageError, match="no platform 'gpu'"):
        loop.check(context(full_trees, options={"platform": "gpu"}))
    with pytest.raises(UsageError, match="no option 'pyton'; did you mean 'python'"):
        loop.check(context(full_trees, options={"pyton": "x"}))
    with pytest.raises(UsageError, match="needs a Megatron-Bridge checkout"):
        loop.check(context({"nemo-rl": full_trees["nemo-rl"]}))
    with pytest.raises(BlockedError, match="no environment to run in"):
        loop.check(context(full_trees, options={"python": "/nowhere/python"}))
    with pytest.raises(UsageError, match="no variant 'tp3' on platform cpu; did you mean 'tp2'"):
        steps(full_trees, 4, "tp3")
