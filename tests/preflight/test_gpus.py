"""GPUs, with a program named nvidia-smi that answers as the real one does (a stand-in for the machine)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.preflight.conftest import Find

from proveout.domain.finding import Severity
from proveout.domain.step import Command, Coverage, Resources, Step
from proveout.domain.verdict import Verdict

GPUS = """0, GPU-aaaa, NVIDIA H200, 143771, 0, 580.65.06
1, GPU-bbbb, NVIDIA H200, 143771, 12000, 580.65.06
"""


@pytest.fixture
def smi(tmp_path: Path, env: dict[str, str]) -> object:
    """Puts an nvidia-smi on PATH that prints what it is given."""
    place = tmp_path / "bin"
    place.mkdir()
    env["PATH"] = f"{place}:{env['PATH']}"

    def install(gpus: str, apps: str = "", status: int = 0) -> None:
        (place / "gpus").write_text(gpus)
        (place / "apps").write_text(apps)
        script = (
            f'#!/bin/sh\ncase "$1" in *compute-apps*) cat "{place}/apps";; *) cat "{place}/gpus";; esac\n'
        )
        (place / "nvidia-smi").write_text(script + f"exit {status}\n")
        (place / "nvidia-smi").chmod(0o755)

    return install


def test_a_machine_without_gpus_blocks_who_wants_some(
    find: Find, env: dict[str, str], tmp_path: Path
) -> None:
    env["PATH"] = str(tmp_path)
    (none,) = find("gpus", gpus=1)
    assert none.decides is Verdict.BLOCKED and "nvidia-smi is not on PATH" in none.what
    assert find("gpus", gpus=0) == ()


def test_enough_free_gpus_are_silent(find: Find, smi) -> None:
    smi(GPUS)
    assert find("gpus", gpus=2) == ()


def test_too_few_block_also_through_cuda_visible_devices(find: Find, smi) -> None:
    smi(GPUS)
    (few,) = find("gpus", gpus=4)
    assert few.decides is Verdict.BLOCKED and "4 GPUs wanted, 2 seen" in few.what
    (hidden,) = find("gpus", gpus=2, env={"CUDA_VISIBLE_DEVICES": "1"})
    assert "1 seen (CUDA_VISIBLE_DEVICES=1)" in hidden.what
    assert find("gpus", gpus=1, env={"CUDA_VISIBLE_DEVICES": "GPU-bbbb"}) == ()
    assert "0 seen" in find("gpus", gpus=1, env={"CUDA_VISIBLE_DEVICES": ""})[0].what


def test_the_gpus_of_a_step_count_for_each_node(find: Find, smi) -> None:
    smi(GPUS)
    step = Step(
        id="s",
        coverage=Coverage(loop="nemo-rl", level=4),
        deliverable="",
        claim="",
        command=Command(argv=("x",)),
        resources=Resources(gpus=16, nodes=2),
    )
    assert "8 GPUs wanted" in find("gpus", steps=(step,))[0].what


def test_company_small_memory_and_an_old_driver_warn(find: Find, smi) -> None:
    smi("0, GPU-aaaa, Tesla T4, 15360, 900, 535.104.05\n", apps="4242, python3, 900, GPU-aaaa\n")
    memory, driver, busy = find("gpus", gpus=1)
    assert {f.severity for f in (memory, driver, busy)} == {Severity.WARNING}
    assert "15 GiB" in memory.what and "535.104.05" in driver.what
    assert "python3 (pid 4242, 900 MiB on GPU 0)" in busy.what


def test_a_failing_driver_blocks_with_its_own_words(find: Find, smi) -> None:
    smi("Failed to initialize NVML: Driver/library version mismatch\n", status=18)
    (finding,) = find("gpus", gpus=1)
    assert finding.decides is Verdict.BLOCKED and "version mismatch" in finding.what


def test_memory_that_the_driver_does_not_tell_is_not_judged(find: Find, smi) -> None:
    smi("0, GPU-aaaa, NVIDIA GB10, [N/A], [N/A], 580.95.05\n")
    assert find("gpus", gpus=1) == ()
