"""Steps run side by side as far as the budget goes, in the order of their needs, and stop together."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from tests.flow.small_runs import Told, small, small_run

from proveout import launch
from proveout.domain.step import Resources, Step
from proveout.flow.execute import Budget, Policy, execute

MEET = (
    "import pathlib, sys, time\n"
    "me, other = {me!r}, {other!r}\n"
    "pathlib.Path('..', me).touch()\n"
    "while not pathlib.Path('..', other).exists(): time.sleep(0.01)\n"
)
ALONE = (
    "import pathlib, time\nmark = pathlib.Path('..', 'busy'); mark.mkdir()\ntime.sleep(0.2); mark.rmdir()\n"
)


def policy(**budget: int) -> Policy:
    return Policy(launch=launch.launch_for(), budget=Budget(**budget))


def meeting(me: str, other: str, minutes: float = 1.0) -> Step:
    return small(me, MEET.format(me=me, other=other), resources=Resources(timeout_minutes=minutes))


def test_two_steps_that_wait_for_each_other_pass_only_side_by_side(tmp_path: Path) -> None:
    together = Told()
    execute(small_run(tmp_path, [meeting("a", "b"), meeting("b", "a")]), policy(jobs=2), together)
    assert together.verdicts == {"a": "Pass", "b": "Pass"}
    alone = Told()
    execute(small_run(tmp_path, [meeting("a", "b", 0.01), small("b", "pass")]), policy(jobs=1), alone)
    assert alone.verdicts == {"a": "Fail", "b": "Pass"}


@pytest.mark.parametrize("budget", [{"max": {"gpus": 1}}, {"max": {"nodes": 1}}])
def test_a_budget_of_one_keeps_steps_apart(tmp_path: Path, budget: dict[str, dict[str, int]]) -> None:
    one = Resources(gpus=1, nodes=1, timeout_minutes=1)
    steps = [small(f"s{n}", ALONE, resources=one) for n in range(3)]
    told = Told()
    execute(small_run(tmp_path, steps), policy(jobs=3, **budget["max"]), told)
    assert set(told.verdicts.values()) == {"Pass"}


def test_steps_of_one_machine_that_use_its_gpus_run_one_after_the_other(tmp_path: Path) -> None:
    steps = [small(f"s{n}", ALONE, resources=Resources(gpus=1, timeout_minutes=1)) for n in range(2)]
    told = Told()
    execute(small_run(tmp_path, steps), policy(jobs=2), told)
    assert set(told.verdicts.values()) == {"Pass"}


def test_a_step_starts_after_those_that_it_needs_and_not_without_them(tmp_path: Path) -> None:
    steps = [
        small("base", "import time; time.sleep(0.3)"),
        small("broken", "raise SystemExit(3)"),
        small("after", "pass", needs=("base",)),
        small("never", "pass", needs=("broken",)),
        small("free", "pass"),
    ]
    told = Told()
    results = execute(small_run(tmp_path, steps), policy(jobs=5), told)
    expected = {"base": "Pass", "broken": "Fail", "after": "Pass", "never": "Skipped", "free": "Pass"}
    assert told.verdicts == expected == {result.id: result.verdict.value for result in results}
    assert told.begun.index("free") < told.begun.index("after")
    ends = {result.id: result.attempts[-1].exit for result in results if result.attempts}
    assert ends["after"].started >= ends["base"].finished - 0.01


def test_what_can_never_fit_is_blocked_and_keeps_nothing_else(tmp_path: Path) -> None:
    steps = [small("large", "pass", resources=Resources(gpus=8)), small("small", "pass")]
    told = Told()
    results = execute(small_run(tmp_path, steps), policy(jobs=2, gpus=4), told)
    assert told.verdicts == {"large": "Blocked", "small": "Pass"}
    assert results[0].reason == "it needs 8 gpus, 4 may be used"


def test_stopping_at_the_first_failure_lets_running_steps_end_and_starts_no_more(tmp_path: Path) -> None:
    steps = [meeting("a", "b"), small("b", MEET.format(me="b", other="a") + "raise SystemExit(1)")]
    told = Told()
    stop = Policy(launch=launch.launch_for(), budget=Budget(jobs=2), keep_going=False)
    execute(small_run(tmp_path, [*steps, small("c", "pass", needs=("a",))]), stop, told)
    assert told.verdicts["b"] == "Fail" and told.verdicts["a"] == "Pass"
    assert told.begun == ["a", "b"] or told.begun == ["a", "b", "c"]


def test_ctrl_c_stops_every_attempt_and_leaves_them_incomplete(tmp_path: Path) -> None:
    told, code = Told(), "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    run = small_run(tmp_path, [small(f"s{n}", code) for n in range(3)])

    def interrupt(_step: Step) -> None:
        if len([path for path in run.layout.attempts.glob("*/pid") if path.read_text()]) == 3:
            told.on_progress = lambda _step: None  # type: ignore[method-assign]
            raise KeyboardInterrupt

    told.on_progress = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        execute(run, policy(jobs=3), told)
    pids = [int(path.read_text()) for path in run.layout.attempts.glob("*/pid")]
    assert len(pids) == 3 and not any(psutil.pid_exists(pid) for pid in pids)
    assert {result[-1].verdict.value for result in run.results().values()} == {"Incomplete"}


def test_steps_that_write_the_same_files_elsewhere_never_run_at_once(tmp_path: Path) -> None:
    import msgspec

    from proveout.domain.step import Artifact

    shared = Artifact(what="its metrics", path=str(tmp_path / "out" / "metrics.json"))
    steps = [msgspec.structs.replace(small(f"s{n}", ALONE), artifacts=(shared,)) for n in range(2)]
    run = small_run(tmp_path, steps)
    results = execute(run, policy(jobs=2), Told())
    spans = [(r.attempts[-1].exit.started, r.attempts[-1].exit.finished) for r in results]
    assert spans[1][0] >= spans[0][1] - 0.01
