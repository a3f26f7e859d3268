"""Takes the place of nemo_rl/models/generation/vllm/vllm_worker.py: the same actor and the same transfer of weights,
with transformers in place of a vLLM engine. Loaded under that module's name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ray
import torch
import zmq
from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.models.generation.interfaces import verify_right_padding
from nemo_rl.models.policy.utils import IPCProtocol, calculate_aligned_size
from nemo_rl.utils.nvml import get_device_uuid

from proveout_cpu.nemo_rl.batches import generation_batch, requests_of
from proveout_cpu.nemo_rl.said import say_imports
from proveout_cpu.refit import RefitLog
from proveout_cpu.sampler import sample

PATIENCE_MS = 120_000
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class BaseVllmGenerationWorker:
    """The base that other modules of NeMo-RL import."""


class VllmGenerationWorkerImpl(BaseVllmGenerationWorker):
    """Answers what NeMo-RL's VllmGeneration asks of its workers."""

    def __repr__(self) -> str:
        return "VllmGenerationWorker[transformers]"

    @staticmethod
    def configure_worker(
        num_gpus: float, bundle_indices: Any = None, num_gpus_per_node: int | None = None
    ) -> tuple[dict[str, Any], dict[str, str], dict[str, Any], dict[str, Any]]:
        """Resources, environment and arguments of the actor, as the worker group expects them."""
        seed = 0 if bundle_indices is None else bundle_indices[1][0] + 1024 * bundle_indices[0]
        return {"num_gpus": num_gpus}, {}, {"bundle_indices": bundle_indices, "seed": seed}, {}

    def __init__(
        self,
        config: Any,
        bundle_indices: Any = None,
        fraction_of_gpus: float = 1.0,
        seed: int | None = None,
        **more: Any,
    ) -> None:
        from transformers import AutoModelForCausalLM

        if config["vllm_cfg"]["tensor_parallel_size"] != 1:
            raise NotImplementedError(
                "proveout_cpu: generation by transformers has tensor_parallel_size=1 alone"
            )
        self.cfg, self.seed = config, seed or 0
        self.device = int(ray.get_gpu_ids()[0])
        dtype = DTYPES[config["vllm_cfg"]["precision"]]
        self.model = AutoModelForCausalLM.from_pretrained(config["model_name"], dtype=dtype).eval()
        tied = ["lm_head.weight"] if self.model.config.tie_word_embeddings else []
        self.refits = RefitLog(self.model.state_dict(), tied, f"generation-{self.device}")
        self.checksum = ""
        self.info: dict[str, Any] = {}
        self.socket: Any = None
        say_imports("generation", "nemo_rl", "transformers")

    def update_weights_via_ipc_zmq(self) -> bool:
        """Receive all weights as vLLM's worker does (its collective_rpc of the same name), and prove them."""
        socket = self._connected()
        received: dict[str, torch.Tensor] = {}
        while (payload := socket.recv_pyobj()) != IPCProtocol.COMPLETE:
            buffer, keys, used = payload
            received |= self._unpack(torch.from_numpy(buffer), keys, used)
            socket.send(IPCProtocol.ACK.value.encode())
        socket.send(IPCProtocol.ACK.value.encode())
        proof = self.refits.take(received, None)
        self.checksum = proof["checksum"]
        return True

    def _unpack(self, buffer: torch.Tensor, keys: Any, used: int) -> dict[str, torch.Tensor]:
        found, offset = {}, 0
        for key in keys:
            shape, dtype = self.info[key]
            size = dtype.itemsize * torch.Size(shape).numel()
            found[key] = buffer[offset : offset + size].view(dtype).view(torch.Size(shape)).clone()
            offset += calculate_aligned_size(size)
        if offset != used:
            raise RuntimeError(
                f"proveout_cpu: the packed weights end at byte {offset}, {used} were announced"
            )
        return found

    def _connected(self) -> Any:
        if self.socket is None:
            self.socket = zmq.Context().socket(zmq.REP)
            for option in (zmq.SNDTIMEO, zmq.RCVTIMEO):
                self.socket.setsockopt(option, PATIENCE_MS)
            self.socket.setsockopt(zmq.LINGER, 0)
            self.socket.connect(f"ipc:///tmp/{get_device_uuid(self.device)}.sock")
        return self.socket

    def generate(self, data: Any, greedy: bool = False) -> Any:
        """Responses with their log-probabilities at the sampling temperature, as vLLM's worker gives them."""
        verify_right_padding(data, pad_value=self.cfg["_pad_token_id"])
        ends = {*(self.cfg.get("stop_token_ids") or []), *_ends(self.model.config.eos_token_id)}
        asked = requests_of(
            data["input_ids"],
            data["input_lengths"],
            self.cfg,
            longest=int(self.cfg["vllm_cfg"]["max_model_len"]),
            stops=frozenset(ends),
            greedy=greedy,
            salt=(self.checksum, self.seed),
            repeats=Counter(),
        )
        made = sample(self.model, asked, self.cfg["_pad_token_id"]) if asked else []
        return BatchedDataDict(
            generation_batch(data["input_ids"], data["input_lengths"], made, self.cfg["_pad_token_id"], ends)
        )

    def report_device_id(self) -> list[str]:
        """The identity that the policy worker of the same device reports."""
        return [get_device_uuid(self.device)]

    def prepare_refit_info(self, state_dict_info: dict[str, Any]) -> None:
        """Shapes and types of the weights to come."""
        self.info = state_dict_info

    def is_alive(self) -> bool:
        """Yes."""
        return True

    def llm(self) -> Any:
        """The engine."""
        return self.model

    def shutdown(self) -> bool:
        """Nothing is left to stop."""
        return True

    def report_dp_openai_server_base_url(self) -> None:
        """No server."""

    def update_weights_from_collective(self) -> bool:
        """Refused: this platform has no NCCL between policy and generation."""
        raise NotImplementedError(
            "proveout_cpu: refit of separate generation workers has no stand-in on a CPU"
        )

    def post_init(self) -> None: ...
    def reset_prefix_cache(self) -> None: ...
    def sleep(self) -> None: ...
    def wake_up(self, **more: Any) -> None: ...
    def start_gpu_profiling(self) -> None: ...
    def stop_gpu_profiling(self) -> None: ...
    def clear_vllm_logger_metrics(self) -> None: ...

    def get_vllm_logger_metrics(self) -> dict[str, Any]:
        """None."""
        return {}

    def _get_raw_spec_counters(self) -> dict[str, Any]:
        return {}


def _ends(value: Any) -> list[int]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


@ray.remote
class VllmGenerationWorker(VllmGenerationWorkerImpl):
    """The actor."""
