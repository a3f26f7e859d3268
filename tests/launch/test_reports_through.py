"""Level 0 of the bench loop through each engine ends in the same report as a plain process, but for launcher lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Answer, call
from tests.launch.engines import IMAGE, ray_program, require

pytestmark = pytest.mark.real
LEVEL_0 = ("run", "--level", "bench:0")
NUMBERS = re.compile(
    r"tfevents\.\d+\.(?:\[\w+\]|[^ ,\]])+|modified \d+\.\d+|: \d+ bytes|\d{8}-\d{6}-[0-9a-f]{6}"
)


def through_container() -> tuple[str, ...]:
    return ("--launcher", "container", "--image", IMAGE, "--launch", "container.engine=podman")


def through_a_ray_of_its_own() -> tuple[str, ...]:
    return ("--scheduler", "ray", "--launch", f"ray.program={ray_program()}", "--launch", "ray.num-cpus=1")


WAYS: dict[str, tuple[str, Callable[[], tuple[str, ...]]]] = {
    "container": ("container", through_container),
    "ray": ("ray", through_a_ray_of_its_own),
    "slurm": ("slurm", lambda: ("--scheduler", "slurm")),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The report of a plain process."""
    return lines_of(call(*LEVEL_0, cwd=tmp_path_factory.mktemp("plain")))


def lines_of(answer: Answer) -> list[str]:
    """A report's lines without what differs between any two runs (times, sizes, names of event files)."""
    assert answer.status == 0, answer.out + answer.err
    return [NUMBERS.sub("...", line) for line in answer.out.splitlines()]


@pytest.mark.parametrize("way", WAYS)
def test_the_report_is_the_same_but_for_the_launcher(way: str, plain: list[str], tmp_path: Path) -> None:
    needs, words = WAYS[way]
    require(needs)
    through = lines_of(call(*LEVEL_0, *words(), cwd=tmp_path))
    own = [line for line in through if line.startswith("- Launched by: ")]
    assert len(own) == 1
    assert f"launcher {'container' if way == 'container' else 'process'}" in own[0]
    assert [line for line in through if line not in own] == plain
