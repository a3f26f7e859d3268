"""From where a worker imports, as evidence; and whose environment that is."""

from __future__ import annotations

import sys
from pathlib import Path

from proveout.domain.preflight import PreflightContext, Worker
from proveout.domain.step import Command, Coverage, Step
from proveout.preflight import import_records


def test_a_worker_interpreter_says_where_it_finds_the_bridge(tmp_path: Path, env: dict[str, str]) -> None:
    package = tmp_path / "bridge/src/megatron/bridge"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    context = PreflightContext(
        run_dir=str(tmp_path / "run"),
        loops=("nemo-rl",),
        checkouts={"bridge": str(tmp_path / "bridge")},
        env={**env, "PYTHONPATH": str(tmp_path / "bridge/src")},
        workers=(Worker(name="a worker", argv=(sys.executable,), loop="nemo-rl"),),
    )
    records = {record.module: record for record in import_records(context)["nemo-rl"]}
    assert records["megatron.bridge"].path == str(package / "__init__.py")
    assert records["megatron.bridge"].importer == "worker"


def test_without_a_tree_under_test_nobody_is_asked(tmp_path: Path, env: dict[str, str]) -> None:
    assert import_records(PreflightContext(run_dir=str(tmp_path), loops=("nemo-rl",), env=env)) == {}


def test_the_environment_is_that_of_the_loop_and_not_of_tests_before_it(tmp_path: Path) -> None:
    def step(name: str, planned: int | None, value: str) -> Step:
        return Step(
            id=name,
            coverage=Coverage(loop="verl", level=0, variant=name),
            deliverable="",
            claim="",
            command=Command(argv=("x",), env={"PROFILE_STEPS": value}),
            planned_steps=planned,
        )

    context = PreflightContext(
        run_dir=str(tmp_path), steps=(step("tests", None, "[1]"), step("train", 1, "null"))
    )
    assert context.environment("verl")["PROFILE_STEPS"] == "null"
