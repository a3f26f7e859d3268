"""What each broken run of cases.yaml needs beforehand: a changed copy of a tree, a checkpoint, somebody who kills."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.records import killed

NOT_NEEDED = shutil.ignore_patterns(".git", "docs", "logs", "__pycache__", "*.ipynb")
QWEN2 = "src/megatron/bridge/models/qwen/qwen2_bridge.py"


@dataclass
class Case:
    """Where a case works, the trees it runs in, and what it adds to the names that its words may use."""

    work: Path
    records: Path
    nemo_rl: Path
    bridge: Path
    fields: dict[str, str] = field(default_factory=dict)


def no_check_of_gradients(case: Case) -> None:
    _change_nemo_rl(
        case, "nemo_rl/models/megatron/setup.py", "check_for_nan_in_grad=True", "check_for_nan_in_grad=False"
    )


def bad_reward(case: Case) -> None:
    """The reward environment divides by zero at its second batch."""
    _change_nemo_rl(
        case,
        "nemo_rl/environments/math_environment.py",
        "        assistant_response_batch = []\n",
        "        self.batches = getattr(self, 'batches', 0) + 1\n"
        "        1 / (2 - self.batches)\n        assistant_response_batch = []\n",
    )


def stale_weights(case: Case) -> None:
    """Generation gets no weights after the first transfer."""
    _change_nemo_rl(
        case,
        "nemo_rl/algorithms/grpo.py",
        "POLICY_GENERATION_STALE = True\n",
        "POLICY_GENERATION_STALE = False\n",
    )


def other_bridge(case: Case) -> None:
    """The policy worker puts another copy of the Bridge in front of the one under test."""
    other = case.work / "other"
    shutil.copytree(case.bridge / "src", other, ignore=NOT_NEEDED)
    _change_nemo_rl(
        case,
        "nemo_rl/models/policy/workers/megatron_policy_worker.py",
        "import ray\nimport torch\n",
        f"import sys\nsys.path.insert(0, {str(other)!r})\nimport ray\nimport torch\n",
    )


def broken_mapping(case: Case) -> None:
    """One line of the mapping of weights names the wrong weight."""
    copy = case.work / "bridge"
    shutil.copytree(case.bridge, copy, ignore=NOT_NEEDED, symlinks=True)
    _replace(
        copy / QWEN2,
        '"decoder.final_layernorm.weight": "model.norm.weight"',
        '"decoder.final_layernorm.weight": "model.layers.0.input_layernorm.weight"',
    )
    case.bridge = copy


def saved_run(case: Case) -> None:
    _saved(case, "saved", "nemo-rl-L1-save-checkpoints")


def saved_lora(case: Case) -> None:
    _saved(case, "saved-lora", "nemo-rl-L1-lora-checkpoints")


def kill_worker(case: Case) -> AbstractContextManager[None]:
    """Kills the policy worker as soon as the first step is done."""
    return killed(case.work, rb"MegatronPolicyWorker\S* pid=(\d+)", rb"Step 2/")


def _saved(case: Case, by: str, place: str) -> None:
    found = sorted(case.records.glob(f"{by}/state/runs/*/attempts/{place}"))
    if not found:
        raise SystemExit(f"record the case {by!r} first")
    shutil.copytree(found[-1], case.work / "saved")
    case.fields["saved"] = str(case.work / "saved")


def _change_nemo_rl(case: Case, file: str, old: str, new: str) -> None:
    copy = case.work / "nemo-rl"
    shutil.copytree(case.nemo_rl, copy, ignore=NOT_NEEDED, symlinks=True)
    _replace(copy / file, old, new)
    case.nemo_rl = copy


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if old not in text:
        raise SystemExit(f"{file} has no {old!r}")
    file.write_text(text.replace(old, new))
