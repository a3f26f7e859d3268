"""What a script does to the machine besides its run is said before it is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plan.conftest import NEMO, VERL, script, write

from proveout import loops
from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding, Severity
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Step
from proveout.domain.tree import Tree
from proveout.loops import nemo_rl, verl
from proveout.loops.nemo_rl.side_effects import side_effects

SAFE = "# ray stop and pip install stand in a comment\n"
EFFECTS = {
    "uv run ray stop --force || true\n": ("script.ray-stop", 2),
    "uv pip install --no-config torchcodec\n": ("script.installs", 2),
    'bash "$PROJECT_ROOT/tools/more.sh"\n': ("script.installs", 1),
    'grep -q "array stopped" log\n': None,
}


@pytest.mark.parametrize("line", EFFECTS)
def test_a_script_that_changes_the_machine_is_named(line: str, tmp_path: Path) -> None:
    more = {"tools/more.sh": "apt-get update && apt-get install -y --no-install-recommends ffmpeg\n"}
    tree = Tree(str(write(tmp_path, {"run.sh": SAFE + line, **more})))
    (step,) = the_steps("nemo-rl", tmp_path / "nemo", {"grpo_megatron": script()})
    found = [(f.id.removeprefix("plan."), f.where.line) for f in side_effects(step, tree, "run.sh")]
    assert found == ([EFFECTS[line]] if EFFECTS[line] else [])


def the_steps(loop: str, root: Path, scripts: dict[str, str]) -> tuple[Step, ...]:
    nemo_rl._tree.cache_clear()
    files = {f"tests/functional/{name}.sh": text for name, text in scripts.items()}
    context = LoopContext(python="python", checkouts={loop: str(write(root, {**NEMO, **files}))})
    request = LevelRequest(loop=loop, level=0, requested=True, reason="", variant="default")
    return tuple(step for step in loops.get(loop).steps(request, context) if step.planned_steps)


def test_the_plan_says_it_as_a_warning(tmp_path: Path) -> None:
    text = script().replace("cd $PROJECT_ROOT", "cd $PROJECT_ROOT\nuv run ray stop --force || true")
    (step,) = the_steps("nemo-rl", tmp_path, {"grpo_megatron": text})
    context = LoopContext(python="python", checkouts={"nemo-rl": str(tmp_path)})
    found: tuple[Finding, ...] = nemo_rl.LOOP.verify(step, context)
    assert [(f.id, f.severity) for f in found] == [("plan.script.ray-stop", Severity.WARNING)]


def test_a_script_that_needs_a_variable_is_skipped_until_it_is_set(tmp_path: Path) -> None:
    verl._tree.cache_clear()
    name = "examples/grpo_trainer/run_nemotron_nano_v3_30b_a3b_megatron.sh"
    text = "set -u\npython3 -m verl.trainer.main_ppo data.train_files=${RAY_DATA_HOME}/a data.train_batch_size=8 $@\n"
    root = str(write(tmp_path, {**VERL, name: text}))
    request = LevelRequest(loop="verl", level=4, requested=True, reason="", variant="hybrid")
    without = LoopContext(python="python", checkouts={"verl": root})
    (step,) = verl.LOOP.steps(request, without)
    assert step.skip_reason == f"{name} needs RAY_DATA_HOME (--set RAY_DATA_HOME=VALUE)"
    given = LoopContext(python="python", checkouts={"verl": root}, options={"RAY_DATA_HOME": "/data"})
    verl.LOOP.check(given)
    (step,) = verl.LOOP.steps(request, given)
    assert not step.skip_reason and step.command.env["RAY_DATA_HOME"] == "/data"
    assert not [f for f in verl.LOOP.verify(step, given) if f.severity is Severity.ERROR]
    with pytest.raises(UsageError, match="has no variable RAY_DATA_HOMES"):
        verl.LOOP.check(
            LoopContext(python="python", checkouts={"verl": root}, options={"RAY_DATA_HOMES": "/"})
        )
