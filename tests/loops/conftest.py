"""The stand-in trees of the planner's tests, with every script that the level tables name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.loops import standins
from tests.plan.conftest import BRIDGE, NEMO, SMALL, VERL, WRAPPER, script, write

from proveout import launch, loops
from proveout.capture.metrics import read_metrics
from proveout.capture.metrics_json import write_metrics_json
from proveout.domain.attribution import Against, Attribution
from proveout.domain.checkout import ROLES, Checkout
from proveout.domain.evidence import ImportRecord, StepResult
from proveout.domain.files import write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Plan, Source, Step
from proveout.flow.against import attribute, attributions, request
from proveout.flow.execute import Policy, execute
from proveout.loops import nemo_rl, verl
from proveout.loops.nemo_rl.variants import table as nemo_table
from proveout.loops.verl.variants import table as verl_table
from proveout.plan.base_tree import commit_of
from proveout.store.runs import create, find


@pytest.fixture
def full_trees(tmp_path: Path) -> dict[str, str]:
    """Role -> a tree in which no script of any variant is missing."""
    nemo_rl._tree.cache_clear()
    verl._tree.cache_clear()
    scripts = {f"tests/functional/{v.script}.sh": script(SMALL) for v in nemo_table().variants if v.script}
    recipes = {
        "examples/configs/recipes/llm/" + name: "defaults: ../../grpo_megatron.yaml\ncluster: {gpus_per_node: 8}\n"
        "policy: {megatron_cfg: {expert_model_parallel_size: 2, pipeline_model_parallel_size: 2}}\n"
        for name in (
            "grpo-a-1n8g-megatron-tp2pp2cp2.yaml", "grpo-b-1n8g-megatron-fp8.yaml", "grpo-nano-1n8g-megatron.yaml")
    }  # fmt: skip
    examples = {v.script: WRAPPER for v in verl_table().variants if v.script}
    dummy = {v.dummy_config: "{}" for v in verl_table().variants if v.dummy_config}
    return {
        "bridge": str(write(tmp_path / "bridge", BRIDGE)),
        "nemo-rl": str(write(tmp_path / "nemo", {**scripts, **recipes, **NEMO})),
        "verl": str(write(tmp_path / "verl", {**examples, **dummy, **VERL})),
    }


class Silent:
    """An observer that says nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told: None


class Proof:
    """What came of the steps of one level, run in stand-in trees."""

    def __init__(self, results: tuple[StepResult, ...], root: Path) -> None:
        self.results = {result.id: result for result in results}
        self.last = results[-1]
        self.root = root

    def of(self, result: StepResult) -> Proof:
        """The same, seen from one of the steps."""
        return Proof((result,), self.root)

    @property
    def ids(self) -> set[str]:
        """Ids of the findings that decide the last step, without the room."""
        return {f.id.removeprefix("judge.") for f in self.last.attempts[-1].findings if f.decides}

    @property
    def cited(self) -> str:
        """Every line that the last step's findings and triage cite, with its file's name and line."""
        attempt = self.last.attempts[-1]
        cites = [cite for finding in attempt.findings for cite in finding.evidence]
        cites += [attempt.triage.cause] if attempt.triage and attempt.triage.cause else []
        return "\n".join(f"{Path(c.where.file or '').name}:{c.where.line}: {c.text}" for c in cites)

    def files(self, step: str = "") -> AttemptLayout:
        """The files of a step's last attempt."""
        result = self.results[step] if step else self.last
        return AttemptLayout(self.root / "attempts" / result.attempts[-1].directory)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """metrics.json of a real GRPO run of the bench loop."""
    place = tmp_path_factory.mktemp("recording")
    words = (
        "tiny.hidden_size=64",
        "tiny.intermediate_size=128",
        "rollout.max_new_tokens=8",
        "runtime.threads=1",
    )
    subprocess.run(
        [sys.executable, "-m", "proveout_bench", "grpo", f"output_dir={place}", "max_steps=20", *words],
        check=True, capture_output=True,
    )  # fmt: skip
    table, _ = read_metrics((Source(format="tensorboard", path="tensorboard"),), place)
    write_metrics_json(table, place / "metrics.json")
    return place / "metrics.json"


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Role -> a stand-in tree; the tools are on PATH."""
    nemo_rl._tree.cache_clear()
    verl._tree.cache_clear()
    for name in (*ROLES.values(), "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(loops.__file__).parents[2]))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PROVEOUT_LIMITS", "disk.run_stack_gib=0.2")  # stand-ins write little
    standins.tools(tmp_path / "bin")
    return {
        "bridge": str(standins.bridge(tmp_path / "bridge")),
        "nemo-rl": str(standins.nemo_rl(tmp_path / "nemo", **standins.core_scripts())),
        "verl": str(standins.verl(tmp_path / "verl")),
    }


@pytest.fixture
def verl_data(tmp_path: Path) -> None:
    """GSM8K in the shape that verl reads, where its wrapper looks by default."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = tmp_path / "data/gsm8k"
    data.mkdir(parents=True)
    row = {"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "1+1?"}],
           "reward_model": {"style": "rule", "ground_truth": "2"}}  # fmt: skip
    for name in ("train", "test"):
        parquet.write_table(pyarrow.Table.from_pylist([row]), data / f"{name}.parquet")


@pytest.fixture
def prove_against(prove: Callable[..., Proof], stand_ins: dict[str, str]) -> Callable[..., Attribution]:
    """Runs and judges the training steps of a level, then answers for the last of them against the first commit."""

    def answer(loop: str, level: int, *faults: str, **more: str) -> Attribution:
        run = find(prove(loop, level, *faults, **more).root.parent, "latest")
        checkouts = tuple(Checkout(role=role, path=path) for role, path in stand_ins.items())
        write_json(run.layout.checkouts, checkouts)
        path = stand_ins["bridge"]
        commit = commit_of(Path(path), "HEAD")
        request(run, Against(role="bridge", path=path, revision="HEAD", commit=commit))
        attribute(run, launch.launch_for(), Silent())  # type: ignore[arg-type]
        return attributions(run)[-1]

    return answer


@pytest.fixture
def prove(
    stand_ins: dict[str, str], recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Proof]:
    """Runs the training steps of a level under real launchers and judges them: ``prove(loop, level, fault...)``."""

    def build(
        loop: str,
        level: int,
        *faults: str,
        variant: str = "default",
        change: Callable[[Step], Step] = lambda step: step,
        imports: tuple[ImportRecord, ...] = (),
    ) -> Proof:
        for name, value in standins.environment(tmp_path / "bin", recording, *faults).items():
            monkeypatch.setenv(name, value)
        context = LoopContext(python=sys.executable, checkouts=stand_ins)
        request = LevelRequest(loop=loop, level=level, requested=True, reason="asked", variant=variant)
        steps = tuple(change(step) for step in loops.get(loop).steps(request, context) if step.planned_steps)
        run = create(tmp_path / "runs", Plan(model="tiny", levels=(request,), steps=steps))
        write_json(run.layout.imports, {loop: imports})
        policy = Policy(launch=launch.launch_for())
        results = execute(run, policy, Silent())  # type: ignore[arg-type]
        return Proof(results, run.layout.root)

    return build
