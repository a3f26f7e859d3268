"""Console logs of verl, transformers and TRL, as they look through Ray and on a terminal."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proveout.capture.metrics import read_any, read_metrics
from proveout.domain.metrics import MetricTable
from proveout.domain.step import MetricSource

CYAN, RESET = "\x1b[36m", "\x1b[0m"
RAY = f"{CYAN}(TaskRunner pid=2092, ip=10.0.0.7){RESET} "


def table_of(path: Path, text: str) -> MetricTable:
    path.write_bytes(text.encode())
    return read_any(path)[0]


def test_verl_through_ray(tmp_path: Path) -> None:
    log = (
        f"{RAY}step:0 is not a step line\n"
        f"{RAY}step:1 - actor/grad_norm:1.5 - num_turns/mean:np.float64(2.0) - num_turns/max:np.int64(3)"
        f" - val-core/openai/gsm8k/reward/mean@1:1e-05 - actor/lr:-.5 - flag:True\n"
        f"Training Progress:  50%|#####     | 1/2 [00:04<00:04]\r{RAY}step:2 - actor/grad_norm:nan"
        f" - actor/kl:-inf - actor/x:inf{CYAN} [repeated 7x across cluster]{RESET}\r\n"
    )
    table = table_of(tmp_path / "run.log", log)
    assert {tag: series.as_dict() for tag, series in table.series.items() if tag != "actor/grad_norm"} == {
        "num_turns/mean": {1: 2.0},
        "num_turns/max": {1: 3.0},
        "val-core/openai/gsm8k/reward/mean@1": {1: 1e-05},
        "actor/lr": {1: -0.5},
        "flag": {1: 1.0},
        "actor/kl": {2: -math.inf},
        "actor/x": {2: math.inf},
    }
    assert table.series["actor/grad_norm"].non_finite_steps() == [2]


def test_verl_value_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("hello\nstep:3 - a:1.0 - b:__import__('os') - loose - c:2.0\n")
    table, findings = read_any(path)
    assert {tag: s.as_dict() for tag, s in table.series.items()} == {"a": {3: 1.0}, "c": {3: 2.0}}
    assert [(f.id, f.where.line, f.where.step) for f in findings] == [("capture.console.value", 2, 3)] * 2


def test_verl_last_line_without_an_end_may_be_cut(tmp_path: Path) -> None:
    """1.37 may be the beginning of 1.3706e-05."""
    path = tmp_path / "run.log"
    path.write_text("step:1 - a:1.0\nstep:2 - a:2.0 - b:1.37")
    table, findings = read_any(path)
    assert {tag: s.as_dict() for tag, s in table.series.items()} == {"a": {1: 1.0, 2: 2.0}}
    assert findings[0].id == "capture.console.truncated"


def test_verl_log_of_two_attempts(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    first = "".join(f"step:{n} - a:{n}.0\n" for n in (1, 2, 3))
    path.write_text(first + "step:1 - a:7.0\nstep:2 - a:8.0\n")
    table, findings = read_any(path)
    assert table.series["a"].as_dict() == {1: 7.0, 2: 8.0}
    assert "steps 1 to 3" in table.left_out[0]
    assert [f.id for f in findings] == ["capture.metrics.other-attempt"]
    path.write_text(first + "step:3 - a:9.0\nstep:2 - a:8.0\nstep:4 - a:4.0\n")
    table, findings = read_any(path)
    assert table.series["a"].as_dict() == {1: 1.0, 2: 8.0, 3: 9.0, 4: 4.0}
    assert {f.id for f in findings} == {"capture.metrics.conflict", "capture.metrics.trained-again"}


def bar(done: int, total: int) -> str:
    return f"\r{done * 100 // total:3d}%|{'#' * done}| {done}/{total} [00:01<00:00, 8.47it/s]"


def logged(**values: object) -> str:
    return "\r        \r" + str({key: str(value) for key, value in values.items()}) + "\n"


def test_trainer_dicts_belong_to_the_step_that_the_next_bar_shows(tmp_path: Path) -> None:
    """The bar painted before a dict may lag behind; the one after it is right."""
    log = (
        "\rLoading weights: 100%|##########| 50/50 [00:00<00:00]\n"
        + bar(0, 6)
        + logged(loss=0.5, epoch=0.1)
        + bar(2, 6)
        + bar(3, 6)
        + logged(loss="nan", grad_norm=1e-9, epoch=0.2)
        + bar(4, 6)
        + logged(eval_loss=0.25, epoch=0.2)
        + bar(4, 6)
        + logged(train_runtime=1.5, epoch=0.3)
        + bar(6, 6)
    )
    table = table_of(tmp_path / "run.log", log)
    loss = table.series["loss"]
    assert (list(loss.steps), loss.values[0], math.isnan(loss.values[1])) == ([2, 4], 0.5, True)
    assert table.series["grad_norm"].as_dict() == {4: 1e-9}
    assert table.series["eval_loss"].as_dict() == {4: 0.25}
    assert table.series["train_runtime"].as_dict() == {6: 1.5}


def test_trainer_through_ray(tmp_path: Path) -> None:
    log = bar(0, 4) + logged(loss=0.5, epoch=0.1) + bar(2, 4) + logged(loss=0.25, epoch=0.2) + bar(4, 4)
    through = "".join(RAY + piece + "\n" for piece in log.replace("\r", "\n").split("\n") if piece.strip())
    assert table_of(tmp_path / "run.log", through).series["loss"].as_dict() == {2: 0.5, 4: 0.25}


def test_an_evaluation_bar_is_no_new_run(tmp_path: Path) -> None:
    nested = "\n" + bar(0, 2) + "\x1b[A\n" + bar(1, 2) + "\x1b[A"
    log = (
        bar(0, 4)
        + logged(loss=1.0, epoch=0.1)
        + bar(2, 4)
        + nested
        + logged(eval_loss=3.0, epoch=0.1)
        + bar(2, 4)
        + logged(loss=2.0, epoch=0.2)
        + bar(4, 4)
        + "\n"
        + bar(0, 9)
        + logged(eval_loss=4.0, epoch=0.2)
        + bar(9, 9)
    )
    table = table_of(tmp_path / "run.log", log)
    assert table.series["loss"].as_dict() == {2: 1.0, 4: 2.0}
    assert table.series["eval_loss"].as_dict() == {2: 3.0, 4: 4.0}
    assert table.left_out == []


def test_a_second_training_in_the_log(tmp_path: Path) -> None:
    one = bar(0, 2) + logged(loss=1.0, epoch=0.1) + bar(1, 2) + logged(loss=2.0, epoch=0.2) + bar(2, 2) + "\n"
    again = bar(0, 2) + logged(loss=5.0, epoch=0.1) + bar(1, 2)
    table = table_of(tmp_path / "run.log", one + again)
    assert table.series["loss"].as_dict() == {1: 5.0}
    assert len(table.left_out) == 1
    resumed = bar(0, 3) + logged(loss=5.0, epoch=0.3) + bar(3, 3)
    table = table_of(tmp_path / "run.log", one + resumed)
    assert table.series["loss"].as_dict() == {1: 1.0, 2: 2.0, 3: 5.0}


def test_trainer_without_a_bar_is_counted_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(
        "{'loss': 0.5, 'epoch': 0.1}\n{'loss': nan, 'epoch': 0.2}\n{'eval_loss': 1, 'epoch': 0.2}\n"
    )
    table, findings = read_any(path)
    assert list(table.series["loss"].steps) == [1, 2]
    assert table.series["loss"].non_finite_steps() == [2]
    assert table.series["eval_loss"].as_dict() == {2: 1.0}
    assert [f.id for f in findings] == ["capture.console.counted"]


@pytest.mark.parametrize("name", ["verl-console", "trl-console"])
@pytest.mark.parametrize(
    "text",
    [
        "{'" * 200_000,
        "step:1 - " * 100_000,
        " " * 500_000 + "[repeated 2x across cluster]",
        "\x1b]" * 200_000,
        "step:1" + " " * 500_000 + "x",
        "'a': " * 200_000 + "{'loss': }",
        "  1%|" * 100_000,
        "x" * 3_000_000,
    ],
    ids=range(8),
)
def test_hostile_lines_end_soon(name: str, text: str, tmp_path: Path) -> None:
    """The child is killed once it has used far more processor time than a reader that goes over a line once."""
    path = tmp_path / "run.log"
    path.write_text(text)
    read = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n"
        "from pathlib import Path\n"
        "from proveout.capture.registry import READERS\n"
        "READERS[sys.argv[1]].read(Path(sys.argv[2]))\n"
    )
    assert subprocess.run([sys.executable, "-c", read, name, str(path)], check=False).returncode == 0


def test_a_log_older_than_the_attempt_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("step:1 - a:1.0\n")
    os.utime(path, (1e9, 1e9))
    source = [MetricSource(format="verl-console", path="run.log")]
    assert read_metrics(source, tmp_path, not_before=1e9)[0].tags() == ["a"]
    table, findings = read_metrics(source, tmp_path, not_before=1e9 + 1)
    assert table.tags() == []
    assert table.left_out == [f"{path}: written before this attempt began"]
    assert [f.id for f in findings] == ["capture.metrics.other-attempt"]
