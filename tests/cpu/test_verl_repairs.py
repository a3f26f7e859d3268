"""Each repair of verl does what it says where verl is as expected, and stops where it is not."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from proveout_cpu import megatron_local
from proveout_cpu.repair import UnknownVersionError
from proveout_cpu.verl import repairs, rollout_entry

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """An upstream module with this source, as an import would leave it."""
    names: list[str] = []

    def make(source: str) -> ModuleType:
        name = f"verl_like.part{len(names)}"
        file = tmp_path / f"part{len(names)}.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        names.append(name)
        spec.loader.exec_module(module)
        return module

    yield make
    for name in names:
        del sys.modules[name]


DISTRIBUTED = """
def get_device_name(): return "cpu"
def get_nccl_backend(): return "gloo"
def initialize_global_process_group_ray(timeout_second=None, backend=None):
    return backend or f"cpu:gloo,{get_device_name()}:{get_nccl_backend()}"
"""
ENGINE = """
class McoreEngineConfig:
    def __init__(self, dtype):
        self.dtype = dtype
        self.__post_init__()
    def __post_init__(self):
        assert self.dtype in ["bfloat16", "float16"], "dtype not supported"
"""
MEMORY = """
def load_megatron_model_to_gpu(models, load_grad=True): models.clear()
def offload_megatron_model_to_cpu(models): models.clear()
def load_megatron_optimizer(optimizers): optimizers.clear()
def offload_megatron_optimizer(optimizers): optimizers.clear()
"""
CHECKPOINTS = """
class MegatronCheckpointManager:
    def __init__(self, distributed, optimizer="adam"):
        self.use_distributed_optimizer, self.optimizer, self.made = distributed, optimizer, 0
    def save_checkpoint(self, local_path, global_step=0): return f"saved {local_path} {global_step}"
    def load_checkpoint(self, local_path): return f"loaded {local_path}"
    def _build_model_sharded_state_dict(self, metadata):
        self.made += 1
        return {"fresh": metadata}
    def _build_optimizer_state_dict(self, model_sharded_state_dict, metadata, is_loading=False):
        return model_sharded_state_dict
"""
SEEDS = """
is_cuda_available = False
other = False
def set_random_seed(seed):
    if is_cuda_available: model_parallel_cuda_manual_seed(seed)
"""
ATTENTION = """
class DotProductAttention:
    def forward(
        self, query, key, value, attention_mask, attn_mask_type=None, attention_bias=None, packed_seq_params=None
    ):
        assert packed_seq_params is None, "Packed sequence is not supported by DotProductAttention."
        return "upstream"
"""


def test_the_process_group_has_one_backend(load: Load) -> None:
    module = load(DISTRIBUTED)
    assert module.initialize_global_process_group_ray() == "cpu:gloo,cpu:gloo"
    repairs.one_backend.function(module)
    assert module.initialize_global_process_group_ray() == "cpu:gloo"
    assert module.initialize_global_process_group_ray(3, "nccl") == "nccl"


def test_full_precision_is_taken_and_what_is_wrong_still_refused(load: Load) -> None:
    module = load(ENGINE)
    with pytest.raises(AssertionError):
        module.McoreEngineConfig("float32")
    repairs.full_precision.function(module)
    assert module.McoreEngineConfig("float32").dtype == "float32"
    assert module.McoreEngineConfig("bfloat16").dtype == "bfloat16"
    with pytest.raises(AssertionError):
        module.McoreEngineConfig("float99")


def test_nothing_is_moved_where_there_is_one_memory(load: Load) -> None:
    module = load(MEMORY)
    repairs.one_memory.function(module)
    weights = [1, 2]
    module.offload_megatron_model_to_cpu(weights)
    module.load_megatron_model_to_gpu(weights, load_grad=False)
    assert weights == [1, 2]


def test_a_checkpoint_of_a_distributed_optimizer_is_refused_both_ways(load: Load) -> None:
    module = load(CHECKPOINTS)
    repairs.no_distributed_optimizer.function(module)
    wrong, right = module.MegatronCheckpointManager(True), module.MegatronCheckpointManager(False)
    with pytest.raises(RuntimeError, match="refused: checkpoints of a distributed optimizer"):
        wrong.save_checkpoint("here")
    with pytest.raises(RuntimeError, match="use_distributed_optimizer=False"):
        wrong.load_checkpoint("here")
    assert right.save_checkpoint("here", global_step=3) == "saved here 3"
    assert right.load_checkpoint("here") == "loaded here"
    assert module.MegatronCheckpointManager(True, optimizer=None).load_checkpoint("here") == "loaded here"


def test_the_optimizer_is_laid_out_along_shards_that_loading_has_not_consumed(load: Load) -> None:
    module = load(CHECKPOINTS)
    repairs.fresh_layout.function(module)
    manager = module.MegatronCheckpointManager(False)
    assert manager._build_optimizer_state_dict({"consumed": 1}, {"m": 2}, is_loading=True) == {
        "fresh": {"m": 2}
    }
    assert manager._build_optimizer_state_dict({"own": 1}, {"m": 2}) == {"own": 1}


def test_megatron_is_seeded_and_nobody_else_believes_in_a_gpu(load: Load) -> None:
    module, other = load(SEEDS), load(SEEDS)
    repairs.seed_megatron.function(module)
    assert (module.is_cuda_available, module.other, other.is_cuda_available) == (True, False, False)


def test_packed_attention_of_another_kind_is_refused_and_the_rest_is_upstreams(load: Load) -> None:
    module = load(ATTENTION)
    megatron_local.packed_attention.function(module)
    layer = module.DotProductAttention()
    assert layer.forward(1, 2, 3, None) == "upstream"
    layer.softmax_offset, layer.training = None, True
    layer.attention_dropout = SimpleNamespace(p=0.0)
    layer.scale_mask_softmax = SimpleNamespace(window_size=(4, 0))
    with pytest.raises(NotImplementedError, match="a window"):
        layer.forward(1, 2, 3, None, packed_seq_params=SimpleNamespace())


@pytest.mark.parametrize(
    ("item", "source", "old", "new"),
    [
        (repairs.one_backend, DISTRIBUTED, "cpu:gloo,{get_device_name()}", "gloo,{get_device_name()}"),
        (repairs.one_backend, DISTRIBUTED, "timeout_second=None, backend=None", "backend=None"),
        (repairs.full_precision, ENGINE, '["bfloat16", "float16"]', '("bfloat16",)'),
        (repairs.one_memory, MEMORY, "def offload_megatron_optimizer(optimizers)", "def offload(optimizers)"),
        (
            repairs.no_distributed_optimizer,
            CHECKPOINTS,
            "def load_checkpoint(self, local_path)",
            "def load(self)",
        ),
        (repairs.fresh_layout, CHECKPOINTS, "metadata, is_loading=False", "is_loading=False"),
        (repairs.seed_megatron, SEEDS, "model_parallel_cuda_manual_seed(seed)", "manual_seed(seed)"),
        (
            megatron_local.packed_attention,
            ATTENTION,
            "Packed sequence is not supported",
            "No packed sequence",
        ),
        (rollout_entry.worker_side, "_ROLLOUT_REGISTRY = {}\n", "_ROLLOUT_REGISTRY", "_ROLLOUTS"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_another_version_is_not_known(load: Load, item: Any, source: str, old: str, new: str) -> None:
    assert old in source
    item.function(load(source))
    with pytest.raises(UnknownVersionError):
        item.function(load(source.replace(old, new)))
