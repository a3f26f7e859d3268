"""Whether this machine has the GPUs that NeMo-RL's unit tests need."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from proveout.domain.errors import BlockedError
from proveout.testaids.environment import Environment


def gpu_environment(
    needed: int, environment: Environment, root: Path, outer: Mapping[str, str]
) -> dict[str, str]:
    """Variables that show the tests ``needed`` GPUs; none where a Ray cluster answers or none are needed.

    Raises BlockedError where neither a Ray cluster nor enough GPUs are there.
    """
    if needed == 0 or outer.get("CUDA_VISIBLE_DEVICES"):
        return {}
    here = _gpus_here()
    if here >= needed:
        devices = ",".join(map(str, range(needed)))
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": devices}
    if _ray_answers(environment, root, outer):
        return {}
    raise BlockedError(
        f"the unit tests need {needed} GPUs or a Ray cluster; here are {here} GPUs and no cluster answers",
        remedy="start a cluster (ray start), or run what needs no GPU: --gpus 0",
    )


def _gpus_here() -> int:
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        listed = subprocess.run(
            [program, "-L"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def _ray_answers(environment: Environment, root: Path, outer: Mapping[str, str]) -> bool:
    program = Path(environment.python).with_name("ray") if environment.python else None
    argv = [str(program), "status"] if program else list(environment.start("ray", "status"))
    try:
        done = subprocess.run(argv, cwd=root, env=dict(outer), capture_output=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
