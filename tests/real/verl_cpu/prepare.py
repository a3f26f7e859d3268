"""What each broken run of cases.yaml needs beforehand: files, a small disk, somebody who kills a worker."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.records import killed

from proveout.stacks.place import Place, root


@dataclass
class Case:
    """Where a case works, and what it adds to the run: names for its words, options."""

    work: Path
    records: Path
    bridge: str
    mcore: str
    fields: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)


def bad_reward(case: Case) -> None:
    (case.work / "reward.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None, **rest):\n"
        "    return {'score': 1.0 / (len(solution_str) - len(solution_str))}\n"
    )


def missing_column(case: Case) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [{"data_source": "lighteval/MATH", "reward_model": {"style": "rule", "ground_truth": "3"}}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows * 16), case.work / "train.parquet")


def saved_run(case: Case) -> None:
    found = sorted(case.records.glob("saved/state/runs/*/attempts/verl-L1-save-checkpoints"))
    if not found:
        raise SystemExit("record the case 'saved' first")
    shutil.copytree(found[-1], case.work / "saved")
    case.fields["saved"] = str(case.work / "saved")


def kill_worker(case: Case) -> AbstractContextManager[None]:
    """Kills the training worker as soon as the first step is done."""
    return killed(case.work, rb"\(WorkerDict pid=(\d+)", rb"step:1 - ")


@contextlib.contextmanager
def small_disk(case: Case) -> Iterator[None]:
    """A file system of 100 kB (mounting it needs root)."""
    disk = case.work / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(disk)], check=True)
    case.fields["disk"] = str(disk)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def truncated_weights(case: Case) -> None:
    models = sorted(case.records.glob("*/state/runs/*/assets/qwen2-0/model"))
    if not models:
        raise SystemExit("record another case first: its model is truncated here")
    shutil.copytree(models[0], case.work / "model")
    weights = case.work / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


@contextlib.contextmanager
def taken_port(case: Case) -> Iterator[None]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        case.fields["port"] = str(taken.getsockname()[1])
        yield


def stale_weights(case: Case) -> None:
    """The generation server forgets every transfer after the first."""
    (case.work / "forgetful.py").write_text(
        "from proveout_cpu.after_import import after_import\n"
        "def forget(module):\n"
        "    plain = module.Server.update_weights\n"
        "    async def update_weights(self, received, version):\n"
        "        if self._version is None:\n"
        "            await plain(self, received, version)\n"
        "    module.Server.update_weights = update_weights\n"
        "after_import('proveout_cpu.verl.rollout', forget)\n"
    )
    case.options += ["--set", "verl:modules=forgetful", "--set", f"verl:pythonpath={case.work}"]


def broken_mapping(case: Case) -> None:
    _bridge(
        case,
        '"decoder.final_layernorm.weight": "model.norm.weight"',
        '"decoder.final_layernorm.weight": "model.layers.0.input_layernorm.weight"',
    )


def swapped_mapping(case: Case) -> None:
    tree = _copy(case)
    file = tree / "src/megatron/bridge/models/qwen/qwen2_bridge.py"
    text = file.read_text()
    assert "mlp.gate_proj.weight" in text and "mlp.up_proj.weight" in text
    swapped = text.replace("gate_proj", "GATE").replace("up_proj", "gate_proj").replace("GATE", "up_proj")
    file.write_text(swapped)
    case.options += ["--bridge", str(tree), "--whole"]


def other_bridge(case: Case) -> None:
    tree = _copy(case)
    other = case.work / "other"
    shutil.copytree(tree / "src", other)
    case.options += ["--bridge", str(tree), "--whole"]
    case.fields["other"] = ":".join(filter(None, (str(other), case.mcore, "{platform}")))


def _bridge(case: Case, old: str, new: str) -> None:
    tree = _copy(case)
    file = tree / "src/megatron/bridge/models/qwen/qwen2_bridge.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    case.options += ["--bridge", str(tree), "--whole"]


def _copy(case: Case) -> Path:
    """A source tree of the Bridge of its own: of the checkout that was given, else of the stack's wheel."""
    tree = case.work / "bridge"
    if case.bridge:
        shutil.copytree(Path(case.bridge) / "src", tree / "src")
        case.options += ["--mcore", case.mcore] if case.mcore else []
    else:
        (wheel,) = Place(root(os.environ), "verl-cpu").root.glob("lib/python3*/site-packages/megatron/bridge")
        shutil.copytree(wheel, tree / "src" / "megatron" / "bridge")
    return tree


if __name__ == "__main__":
    sys.exit("run record.py")
