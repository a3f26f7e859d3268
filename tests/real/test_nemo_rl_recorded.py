"""Runs of NeMo-RL as recorded, most of them really broken: each is judged as it deserves, for its own reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from proveout import loops
from proveout.domain.evidence import AttemptResult, ExitRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.loop import LoopContext
from proveout.domain.step import ATTEMPT_DIR, LevelRequest, Step
from proveout.flow.attempt import conclude
from tests.loops.conftest import full_trees  # noqa: F401 - a fixture, used by name
from tests.real.records import as_expected, names_no_machine

HERE = Path(__file__).parent / "nemo_rl_cpu"
CASES = {case["id"]: case for case in yaml.safe_load((HERE / "cases.yaml").read_text())}
RECORDED = sorted(path.name.removesuffix(".log.gz") for path in (HERE / "data").glob("*.log.gz"))


def step_of(case: dict[str, Any], trees: dict[str, str]) -> Step:
    level, _, variant = case["level"].partition("/")
    context = LoopContext(
        python="python",
        options={"platform": "cpu", "python": "/stacks/nemo-rl-cpu/bin/python"},
        checkouts={role: trees[role] for role in ("nemo-rl", "bridge")},
    )
    request = LevelRequest(loop="nemo-rl", level=int(level), requested=True, reason="", variant=variant)
    return next(step for step in loops.get("nemo-rl").steps(request, context) if step.id.endswith(variant))


@pytest.fixture
def judged(tmp_path: Path, full_trees: dict[str, str]) -> Any:  # noqa: F811
    def judge(name: str) -> AttemptResult:
        kept = json.loads((HERE / "data" / f"{name}.json").read_text())
        files = AttemptLayout(tmp_path / "attempts" / "01-nemo-rl")
        files.root.mkdir(parents=True)
        log = gzip.decompress((HERE / "data" / f"{name}.log.gz").read_bytes()).decode()
        for role in ("nemo-rl", "bridge"):
            log = log.replace(f"/trees/{role}", full_trees[role])
        files.log.write_text(log)
        (files.root / "refit.jsonl").write_text("".join(f"{line}\n" for line in kept["refit"]))
        step = step_of(CASES[name], full_trees)
        if events := gzip.decompress((HERE / "data" / f"{name}.events.gz").read_bytes()):
            place = files.root / step.metrics[0].path / "exp_001" / "tensorboard"
            place.mkdir(parents=True)
            (place / "events.out.tfevents.1.node.1.0").write_bytes(events)
        for artifact in step.artifacts:
            path = artifact.path.replace(ATTEMPT_DIR, str(files.root))
            target = files.root / path
            if kept["verdict"] == "Pass" and "*" not in path and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("there")
        ended = msgspec.structs.replace(msgspec.convert(kept["exit"], ExitRecord), started=1.0)
        return conclude(step, 1, files, ended, {})

    return judge


@pytest.mark.parametrize("name", RECORDED)
def test_a_real_run_is_judged_for_its_own_reason(judged: Any, name: str) -> None:
    case, result = CASES[name], judged(name)
    as_expected(case, result, json.dumps(msgspec.to_builtins(result)))


def test_every_record_is_of_a_case_that_there_is() -> None:
    assert set(RECORDED) <= set(CASES)
    assert any(CASES[name]["verdict"] != "Pass" for name in RECORDED)


@pytest.mark.parametrize("path", sorted((HERE / "data").glob("*")), ids=lambda path: path.name)
def test_no_record_names_the_machine_that_made_it(path: Path) -> None:
    names_no_machine(path)
