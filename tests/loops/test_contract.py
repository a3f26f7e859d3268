"""What the loops ask for is what the judge and the readers know: every step of every level and variant."""

from __future__ import annotations

import pytest

from proveout import loops
from proveout.capture.configs.registry import CONFIG_READERS
from proveout.capture.registry import READERS
from proveout.domain.loop import LoopContext
from proveout.domain.step import Criterion, LevelRequest, Step
from proveout.judge.validate import wrong

WITHOUT_A_RUN = {
    "verl-L0-dummy": "needs DUMMY_MODEL_CONFIG_PATH",
    "bench-L5-vlm": "token ids alone",
    "verl-L4-audio": "no maintained",
    "verl-L4-hybrid": "needs RAY_DATA_HOME",
}


def every_step(name: str, checkouts: dict[str, str], **options: str) -> list[Step]:
    loop = loops.get(name)
    context = LoopContext(python="python", checkouts=checkouts, options=options)
    return [
        step
        for level in loop.levels
        for variant in ("default", *(("all",) if name != "bench" else ()))
        for step in loop.steps(
            LevelRequest(loop=name, level=level, requested=True, reason="", variant=variant), context
        )
    ]


@pytest.mark.parametrize("name", sorted(loops.LOOPS))
def test_every_criterion_and_format_is_known(name: str, full_trees: dict[str, str]) -> None:
    steps = every_step(name, full_trees, **({"python": "python"} if name == "bench" else {}))
    assert len({step.coverage.level for step in steps}) == len(loops.get(name).levels)
    problems = [
        f"{step.id}: {what}" for step in steps for item in step.criteria if (what := wrong(item))
    ]  # fmt: skip
    problems += [
        f"{step.id}: metrics {source.format}"
        for step in steps
        for source in step.metrics
        if source.format not in READERS
    ]
    problems += [
        f"{step.id}: configuration {step.config.format}"
        for step in steps
        if step.config and step.config.format not in CONFIG_READERS
    ]
    assert problems == []
    skipped = {step.id: step.skip_reason for step in steps if step.skip_reason}
    for step_id, reason in skipped.items():
        assert WITHOUT_A_RUN.get(step_id, "?").split()[-1] in reason, (step_id, reason)
    trained = [step for step in steps if step.planned_steps and not step.skip_reason]
    assert trained and all(step.criteria for step in trained)


@pytest.mark.parametrize("name", ["nemo-rl", "verl"])
def test_a_step_that_trains_must_show_backend_and_import(name: str, full_trees: dict[str, str]) -> None:
    for step in every_step(name, full_trees):
        if step.planned_steps and not step.skip_reason and "examples/" not in " ".join(step.command.argv[:2]):
            kinds = {item.kind for item in step.criteria}
            assert {"backend", "provenance"} <= kinds, step.id


def test_criteria_that_nobody_knows_are_named() -> None:
    assert "no criterion 'chekcs'; did you mean" in wrong(Criterion(kind="chekcs"))
    assert "expect" in wrong(Criterion(kind="backend", params={"expect": {"a": 1}}))
    assert "at least one" in wrong(Criterion(kind="log", params={}))
    assert wrong(Criterion(kind="log", params={"excludes": ["a"]})) == ""


def test_two_variants_that_save_and_resume_name_each_other(full_trees: dict[str, str]) -> None:
    for step in every_step("verl", full_trees):
        for item in step.criteria:
            for key in ("saved", "baseline"):
                if item.kind == "resume_parity" and item.params.get(key):
                    assert item.params[key] in step.needs
