"""Really broken runs of verl, as recorded: each is judged as it deserves, for its own reason."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from proveout import loops
from proveout.capture.metrics import read_any
from proveout.domain.claims import claim
from proveout.domain.evidence import AttemptResult, ExitRecord, StepResult
from proveout.domain.layout import AttemptLayout
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Step
from proveout.flow.attempt import conclude
from tests.real.records import as_expected, names_no_machine

HERE = Path(__file__).parent / "verl_cpu"
CASES = {case["id"]: case for case in yaml.safe_load((HERE / "cases.yaml").read_text())}
RECORDED = sorted(path.name.removesuffix(".log.gz") for path in (HERE / "data").glob("*.log.gz"))
WITH_EVENTS = sorted(path.name.removesuffix(".events.gz") for path in (HERE / "data").glob("*.events.gz"))


def step_of(case: dict[str, Any]) -> Step:
    level, _, variant = case["level"].partition("/")
    context = LoopContext(
        python="python",
        options={"platform": "cpu", "python": "/stacks/verl-cpu/bin/python"},
        checkouts={"bridge": "/run/bridge"} if "mapping" in case["id"] or "bridge" in case["id"] else {},
        overrides=tuple(word for word in case.get("words", ()) if "total_training_steps" in word),
    )
    request = LevelRequest(loop="verl", level=int(level), requested=True, reason="", variant=variant)
    (step,) = loops.get("verl").steps(request, context)
    return step


@pytest.fixture
def judged(tmp_path: Path) -> Any:
    def judge(name: str) -> AttemptResult:
        kept = json.loads((HERE / "data" / f"{name}.json").read_text())
        files = AttemptLayout(tmp_path / "attempts" / "01-verl")
        files.root.mkdir(parents=True)
        files.log.write_bytes(gzip.decompress((HERE / "data" / f"{name}.log.gz").read_bytes()))
        (files.root / "refit.jsonl").write_text("".join(f"{line}\n" for line in kept["refit"]))
        step = step_of(CASES[name])
        for artifact in step.artifacts:
            target = Path(
                os.path.normpath(files.root / artifact.path.replace("{attempt_dir}", str(files.root)))
            )
            if kept["verdict"] == "Pass" and not target.exists():
                target.mkdir(parents=True)
                (target / "saved").write_text("there")
        ended = msgspec.structs.replace(msgspec.convert(kept["exit"], ExitRecord), started=1.0)
        return conclude(step, 1, files, ended, {})

    return judge


@pytest.mark.parametrize("name", RECORDED)
def test_a_real_run_is_judged_for_its_own_reason(judged: Any, name: str) -> None:
    case, result = CASES[name], judged(name)
    step = step_of(case)
    whole = StepResult(id=step.id, coverage=step.coverage, verdict=result.verdict, attempts=(result,))
    as_expected(case, result, json.dumps([claim(step, whole), msgspec.to_builtins(result)]))


@pytest.mark.parametrize("name", WITH_EVENTS)
def test_console_and_event_file_of_a_run_say_the_same(tmp_path: Path, name: str) -> None:
    tables = []
    for kind, file in (("log", "run.log"), ("events", "events.out.tfevents.1.node")):
        (tmp_path / file).write_bytes(gzip.decompress((HERE / "data" / f"{name}.{kind}.gz").read_bytes()))
        tables.append(read_any(tmp_path / file)[0])
    console, events = tables
    assert set(console.tags()) == set(events.tags())
    for tag in console.tags():
        one, other = dict(console.series[tag]), dict(events.series[tag])
        # Event files hold numbers of 32 bits.
        assert one == pytest.approx(other, rel=1e-6, nan_ok=True), tag


def test_every_record_is_of_a_case_that_there_is() -> None:
    assert set(RECORDED) <= set(CASES)
    assert any(CASES[name]["verdict"] != "Pass" for name in RECORDED)


@pytest.mark.parametrize("path", sorted((HERE / "data").glob("*")), ids=lambda path: path.name)
def test_no_record_names_the_machine_that_made_it(path: Path) -> None:
    names_no_machine(path)
