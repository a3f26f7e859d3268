"""The parts of NeMo-RL's CPU platform that need neither NeMo-RL nor Ray: launcher, uv stand-in, repairs, batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import proveout_cpu.nemo_rl as platform
from proveout_cpu.nemo_rl import cluster, launch, policy
from proveout_cpu.nemo_rl.batches import generation_batch, requests_of
from proveout_cpu.nemo_rl.replaced import REPLACED
from proveout_cpu.repair import UnknownVersionError
from proveout_cpu.sampler import Sampled

SOURCE = Path(platform.__file__).parents[2]
WORKER = "nemo_rl.models.generation.vllm.vllm_worker"


def stand_in(folder: Path) -> dict[str, str]:
    return launch.environment(folder / "attempt", folder / "short", gpus=2, compiled=folder / "bytecode")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "script.py", "a b"],
        ["run", "--extra", "mcore", "--group", "test", "python", "script.py", "a b"],
        ["run", "coverage", "run", "-a", "--data-file=x", "--source=y", "script.py", "a b"],
    ],
)
def test_the_uv_stand_in_runs_the_stacks_own_python(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "script.py").write_text("import sys; print(sys.executable, sys.argv[1])")
    env = stand_in(tmp_path)
    done = subprocess.run(["uv", *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{sys.executable} a b"
    assert not list(tmp_path.glob("**/.coverage*"))


def test_compiled_modules_are_kept_but_none_in_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "elsewhere"))
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "other.py").touch()
    script = "import json, other; print(json.__cached__); print(other.__cached__)"
    (tmp_path / "tree" / "script.py").write_text(script)
    done = subprocess.run(
        ["uv", "run", "script.py"], cwd=tmp_path / "tree", env=stand_in(tmp_path), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert {file.name for file in (tmp_path / "tree").iterdir()} == {"other.py", "script.py"}
    installed, own = done.stdout.split()
    assert installed == json.__cached__ and Path(own).exists()
    assert Path(own).is_relative_to(tmp_path / "bytecode")
    assert not (tmp_path / "elsewhere").exists()


def test_the_uv_stand_in_reads_a_program_from_its_input_and_keeps_its_status(tmp_path: Path) -> None:
    env = stand_in(tmp_path)
    code = "import sys; print(sys.argv[1]); sys.exit(7)"
    done = subprocess.run(
        ["uv", "run", "-", "x"], env=env, input=code, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7
    assert subprocess.run(["uv", "sync"], env=env, capture_output=True, check=False).returncode == 2


def test_the_launcher_makes_model_and_data_once_and_gives_the_commands_status(tmp_path: Path) -> None:
    place = tmp_path / "assets"
    (place / "model-0").mkdir(parents=True)
    (place / "model-0" / "config.json").write_text("{}")
    show = "import os, json; print(json.dumps(dict(os.environ))); raise SystemExit(5)"
    done = subprocess.run(
        [sys.executable, "-m", "proveout_cpu.nemo_rl.launch", "--attempt", str(tmp_path), "--place", str(place),
         "--tiny", "--", sys.executable, "-c", show],
        env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["PROVEOUT_PLATFORM"] == platform.NAME and seen["HF_HOME"] == str(tmp_path / "hf")
    rows = [json.loads(line) for line in (place / "sums.jsonl").read_text().splitlines()]
    assert {"input", "output"} == set(rows[0]) and len(rows) == launch.ROWS


def test_a_checkpoint_to_resume_replaces_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "saved" / "step_2").mkdir(parents=True)
    (tmp_path / "saved" / "step_2" / "weights").write_text("new")
    (tmp_path / "into" / "step_9").mkdir(parents=True)
    launch.take(tmp_path / "saved" / "step_2", tmp_path / "into")
    assert [file.name for file in (tmp_path / "into").iterdir()] == ["step_2"]


class Ray(ModuleType):
    """Stands for Ray: keeps what ``init`` was called with; its node is known after ``late`` questions."""

    def __init__(self, late: int = 0) -> None:
        super().__init__("ray")
        self.calls: list[dict[str, Any]] = []
        services = SimpleNamespace(get_node=self._get_node(late), start_monitor=self.calls.clear)

        class Node:
            def start_monitor(self) -> None:
                services.start_monitor()

        self._private = SimpleNamespace(services=services, node=SimpleNamespace(Node=Node))

    def _get_node(self, late: int) -> Any:
        global_state = SimpleNamespace(get_node=lambda node_id: {"id": node_id})
        left = list(range(late))

        def get_node(gcs_address: str, node_id: str) -> Any:
            if left:
                raise RuntimeError(f"{node_id} is not in the table, {left.pop()}")
            return global_state.get_node(node_id)

        return get_node

    def init(self, **named: Any) -> str:
        self.calls.append({**named, "node": self._private.services.get_node("here", "1")})
        return "started"

    def get_runtime_context(self) -> Any:
        return type("Context", (), {"gcs_address": "127.0.0.1:1"})


def test_ray_gets_logical_gpus_and_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cluster.GPUS, "3")
    monkeypatch.delenv("RAY_JOB_ID", raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "elsewhere")
    ray = Ray()
    cluster.logical_gpus.function(ray)
    with pytest.raises(ConnectionError):
        ray.init(address="auto")
    assert ray.init(include_dashboard=True) == "started"
    assert ray.calls[0]["num_gpus"] == 3 and ray.calls[0]["include_dashboard"] is False
    assert os.environ["RAY_ADDRESS"] == "127.0.0.1:1"
    monkeypatch.setenv("RAY_JOB_ID", "01")
    ray.init()
    assert ray.calls[1] == {"node": {"id": "1"}}


def test_a_node_that_is_late_is_waited_for_and_one_that_never_comes_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_JOB_ID", raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "elsewhere")
    monkeypatch.setattr(cluster, "PAUSE", 0.0)
    ray = Ray(late=40)
    ask = ray._private.services.get_node
    cluster.logical_gpus.function(ray)
    assert ray.init() == "started" and ray.calls[0]["node"] == {"id": "1"}
    assert ray._private.services.get_node is ask
    monkeypatch.setattr(cluster, "START_SECONDS", -1.0)
    never = Ray(late=2)
    cluster.logical_gpus.function(never)
    with pytest.raises(RuntimeError, match="not in the table"):
        never.init()


def test_a_checkpoint_of_the_distributed_optimizer_is_refused() -> None:
    class DistributedOptimizer:
        def sharded_state_dict(self) -> dict[str, Any]:
            return {}

    module = ModuleType("megatron.core.optimizer.distrib_optimizer")
    module.DistributedOptimizer = DistributedOptimizer  # type: ignore[attr-defined]
    policy.no_distributed_checkpoint.function(module)
    with pytest.raises(policy.RefusedError, match="use_distributed_optimizer=false"):
        DistributedOptimizer().sharded_state_dict()
    with pytest.raises(UnknownVersionError):
        policy.no_distributed_checkpoint.function(ModuleType("megatron.core.optimizer.distrib_optimizer"))


METHODS = list(REPLACED[WORKER][2])


def imported(folder: Path, methods: list[str]) -> subprocess.CompletedProcess[str]:
    """Import the vLLM worker of a made-up NeMo-RL whose class has these methods, on the platform."""
    place = folder.joinpath(*WORKER.split(".")).with_suffix(".py")
    place.parent.mkdir(parents=True)
    for parent in list(place.parents)[:4]:
        (parent / "__init__.py").touch()
    body = "".join(f"    def {name}(self): ...\n" for name in methods)
    place.write_text(f"import vllm\nclass VllmGenerationWorkerImpl:\n{body}")
    code = f"import importlib.util as u; print(u.find_spec({WORKER!r}).origin)"
    path = os.pathsep.join([str(SOURCE / "proveout_cpu/nemo_rl/site"), str(SOURCE), str(folder)])
    env = {**os.environ, "PYTHONPATH": path, platform.VARIABLE: platform.NAME}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_the_vllm_worker_is_replaced_only_where_upstreams_is_the_known_one(tmp_path: Path) -> None:
    known = imported(tmp_path / "known", METHODS)
    assert known.stdout.strip().endswith("proveout_cpu/nemo_rl/vllm_worker.py"), known.stderr
    other = imported(tmp_path / "other", [name for name in METHODS if name != "prepare_refit_info"])
    assert other.returncode != 0
    assert "this version is not known" in other.stderr and "no prepare_refit_info" in other.stderr


def test_the_platform_is_loaded_only_where_it_is_asked_for() -> None:
    path = os.pathsep.join([str(SOURCE / "proveout_cpu/nemo_rl/site"), str(SOURCE)])
    code = "import sys; print('proveout_cpu' in sys.modules, 'torch' in sys.modules, 'ray' in sys.modules)"
    for value, loaded in ((platform.NAME, True), ("", False)):
        env = {**os.environ, "PYTHONPATH": path, platform.VARIABLE: value}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == [str(loaded), "False", "False"]


CONFIG = {"temperature": 1.0, "max_new_tokens": 4, "top_p": 1.0, "top_k": None}


def asked(ids: list[list[int]], lengths: list[int], salt: tuple[object, ...], longest: int = 64) -> list[Any]:
    return requests_of(
        torch.tensor(ids), torch.tensor(lengths), CONFIG, longest=longest, stops=frozenset({9}),
        greedy=False, salt=salt, repeats=Counter(),
    )  # fmt: skip


def test_a_rows_seed_depends_on_weights_prompt_and_repetition_alone() -> None:
    one = asked([[1, 2, 0], [1, 2, 3], [1, 2, 0]], [2, 3, 2], ("w1", 0))
    again = asked([[1, 2, 3], [1, 2, 0]], [3, 2], ("w1", 0))
    assert one[0].prompt == (1, 2) and one[0].seed == again[1].seed and one[1].seed == again[0].seed
    assert len({row.seed for row in one}) == 3
    assert asked([[1, 2]], [2], ("w2", 0))[0].seed != one[0].seed
    assert asked([[1, 2]], [2], ("w1", 0), longest=3)[0].new_tokens == 1


def test_what_was_sampled_becomes_a_right_padded_batch() -> None:
    ids, lengths = torch.tensor([[5, 6, 0], [5, 6, 7]]), torch.tensor([2, 3])
    made = [Sampled([8, 9], [-0.5, -0.25]), Sampled([8, 8, 8], [-1.0, -1.0, -2.0])]
    batch = generation_batch(ids, lengths, made, pad=0, ends={9})
    assert batch["output_ids"].tolist() == [[5, 6, 8, 9, 0, 0], [5, 6, 7, 8, 8, 8]]
    assert batch["logprobs"].tolist() == [[0, 0, -0.5, -0.25, 0, 0], [0, 0, 0, -1, -1, -2]]
    assert batch["generation_lengths"].tolist() == [2, 3]
    assert batch["unpadded_sequence_lengths"].tolist() == [4, 6]
    assert batch["truncated"].tolist() == [False, True]
