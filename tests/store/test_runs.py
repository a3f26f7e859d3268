"""Run directories: whole or absent, found by name, held by one process, unfinished until they say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.step import Command, Coverage, Plan, Step
from proveout.store.runs import Run, create, find, identifiers, runs_root


def plan() -> Plan:
    step = Step(
        id="s",
        coverage=Coverage(loop="bench", level=0),
        deliverable="smoke",
        claim="updates completed",
        command=Command(argv=("true",)),
    )
    return Plan(model="m", levels=(), steps=(step,))


def test_a_new_run_holds_its_plan_and_is_unfinished(tmp_path: Path) -> None:
    run = create(tmp_path, plan())
    assert run.plan == plan()
    assert not run.finished
    run.journal.append("run_finished")
    assert Run(run.layout).finished


def test_runs_are_found_by_name_prefix_path_and_latest(tmp_path: Path) -> None:
    first, second = sorted((create(tmp_path, plan()) for _ in range(2)), key=lambda run: run.layout.id)
    assert identifiers(tmp_path) == [first.layout.id, second.layout.id]
    assert find(tmp_path, first.layout.id).layout.id == first.layout.id
    assert find(tmp_path, str(first.layout.root)).layout.id == first.layout.id
    assert find(tmp_path, "latest").layout.id == second.layout.id
    assert find(tmp_path, second.layout.id[:-1]).layout.id == second.layout.id
    with pytest.raises(UsageError, match="fits 2 runs"):
        find(tmp_path, first.layout.id[:4])
    with pytest.raises(UsageError, match="did you mean"):
        find(tmp_path, "x" + first.layout.id)


def test_what_a_kill_left_half_made_is_no_run(tmp_path: Path) -> None:
    create(tmp_path, plan())
    (tmp_path / ".new-20260101-000000-abcdef").mkdir()
    (tmp_path / "20260101-000000-abcdef").mkdir()
    assert len(identifiers(tmp_path)) == 1


def test_one_process_holds_a_run(tmp_path: Path) -> None:
    run = create(tmp_path, plan())
    assert not run.active
    with run.held():
        assert run.active
        with pytest.raises(BlockedError, match="another proveout"), Run(run.layout).held():
            pass
    assert not run.active


def test_no_directory_can_be_made_is_blocked_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BlockedError, match=str(tmp_path / "file")):
        create(runs_root(tmp_path / "file"), plan())


def test_a_damaged_plan_names_the_file(tmp_path: Path) -> None:
    run = create(tmp_path, plan())
    run.layout.plan.write_text("{")
    with pytest.raises(UsageError, match=r"plan\.json"):
        find(tmp_path, run.layout.id).plan  # noqa: B018


def test_a_damaged_result_counts_as_not_judged(tmp_path: Path) -> None:
    run = create(tmp_path, plan())
    run.journal.append("attempt_started", number=1, step="s", directory="01-x")
    _, _, files = run.attempts()[0]
    files.root.mkdir()
    files.result.write_bytes(b"\x00garbage")
    assert run.results() == {}
