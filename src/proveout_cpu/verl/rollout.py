"""The rollout "hf" of verl: a server that samples with transformers, in the place of vLLM or SGLang.

verl starts one replica for every group of ranks, sends it weights by name after every step, and asks it for
token ids with log-probabilities (verl/workers/rollout/{base,replica,llm_server}.py).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any

import ray
import torch
from verl.plugin.platform import get_platform
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

from proveout_cpu.refit import RefitLog, as_in_checkpoint
from proveout_cpu.sampler import Request, sample, seed_of

GATHER_SECONDS = 0.02
REFUSED = ("frequency_penalty", "presence_penalty", "stop", "min_p")
ACTOR = "proveout_hf_server_{}"


class ServerAdapter(BaseRollout):  # type: ignore[misc]
    """The side of the training worker: hands its exported weights to the replica's server."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
        super().__init__(config, model_config, device_mesh)
        group = self.config.tensor_model_parallel_size * self.config.data_parallel_size
        rank = int(os.environ["RANK"])
        self._replica = rank // group if replica_rank == -1 else replica_rank
        self._leads = rank % group == 0
        self.sleep_level = 2

    async def resume(self, tags: list[str]) -> None: ...
    async def release(self) -> None: ...

    async def update_weights(
        self,
        weights: Any,
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        peft_config: Any = None,
        **_: Any,
    ) -> None:
        """Send the weights of one version. Raises NotImplementedError for adapters apart from their base."""
        if wire_format != "named_tensors" or peft_config is not None:
            raise NotImplementedError(
                "rollout hf takes whole weights by name: set actor_rollout_ref.model.lora.merge=True"
            )
        received = {name: tensor.detach().to("cpu", copy=True) async for name, tensor in _each(weights)}
        if self._leads:
            server = ray.get_actor(ACTOR.format(self._replica))
            await server.update_weights.remote(received, global_steps)


async def _each(weights: Any) -> AsyncIterator[tuple[str, torch.Tensor]]:
    if hasattr(weights, "__aiter__"):
        async for item in weights:
            yield item
    else:
        for item in weights:
            yield item


class Server:
    """One generation model with the requests that wait for it."""

    def __init__(self, config: Any, model_path: str, replica: int) -> None:
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)
        self._config, self._replica, self._version = config, replica, None
        self._model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32).eval()
        settings = self._model.generation_config
        ends = settings.eos_token_id
        self._stops = frozenset([ends] if isinstance(ends, int) else ends or ())
        self._pad = settings.pad_token_id or 0
        weights = self._model.state_dict()
        self._refits = RefitLog(as_in_checkpoint(weights), _tied(weights), f"replica {replica}")
        self._seen: Counter[tuple[int, ...]] = Counter()
        self._waiting: list[tuple[Request, asyncio.Future[Any]]] = []
        self._drain: asyncio.Task[None] | None = None

    async def ready(self) -> bool:
        """Answers when the model is loaded."""
        return True

    async def update_weights(self, received: dict[str, torch.Tensor], version: Any) -> None:
        """Take the weights of ``version``; raises RefitError for names or shapes that the model does not have."""
        self._refits.take(received, version)
        self._version = version
        self._seen.clear()

    async def generate(
        self, prompt_ids: Any, sampling_params: dict[str, Any], request_id: str, **_: Any
    ) -> TokenOutput:
        """Sample one response. Raises ValueError for a sampling parameter that is not implemented."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((self._request([int(token) for token in prompt_ids], sampling_params), future))
        if self._drain is None:
            self._drain = asyncio.get_running_loop().create_task(self._answer())
        return await future

    def _request(self, prompt: list[int], asked: dict[str, Any]) -> Request:
        unknown = [name for name in REFUSED if asked.get(name)]
        if unknown or asked.get("repetition_penalty", 1.0) != 1.0:
            raise ValueError(f"rollout hf does not implement {', '.join(unknown) or 'repetition_penalty'}")
        key = tuple(prompt)
        self._seen[key] += 1
        tokens = asked.get("max_tokens", asked.get("max_new_tokens")) or self._config.response_length
        seed = seed_of(self._config.seed, self._replica, self._version, key, self._seen[key])
        return Request(
            prompt=key,
            seed=seed,
            new_tokens=min(int(tokens), self._config.response_length),
            temperature=float(asked.get("temperature", 1.0)),
            top_p=float(asked.get("top_p", 1.0)),
            top_k=int(asked.get("top_k", -1)),
            stops=frozenset() if asked.get("ignore_eos") else self._stops,
        )

    async def _answer(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        taken, self._waiting, self._drain = self._waiting, [], None
        version = self._version
        try:
            made = await asyncio.to_thread(sample, self._model, [request for request, _ in taken], self._pad)
        except BaseException as error:
            for _, future in taken:
                future.set_exception(error)
            return
        for (_, future), one in zip(taken, made, strict=True):
            extra = {"global_steps": version, "num_cached_tokens": 0}
            future.set_result(
                TokenOutput(
                    token_ids=one.tokens, log_probs=one.logprobs, stop_reason="completed", extra_fields=extra
                )
            )

    async def wake_up(self, tags: Any = None) -> None: ...
    async def sleep(self, *_: Any) -> None: ...
    async def clear_kv_cache(self) -> None: ...
    async def release_kv_cache(self) -> None: ...
    async def resume_kv_cache(self) -> None: ...
    async def resume_generation(self) -> None: ...
    async def start_profile(self, **_: Any) -> None: ...
    async def stop_profile(self) -> None: ...

    async def abort_all_requests(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Nothing is aborted: a batch is short."""
        return {}


def _tied(weights: dict[str, torch.Tensor]) -> Iterable[str]:
    """Names after the first of those that share their memory."""
    first: dict[int, str] = {}
    for name, tensor in weights.items():
        if first.setdefault(tensor.data_ptr(), name) != name:
            yield name


class Replica(RolloutReplica):  # type: ignore[misc]
    """Starts the server of one replica as a Ray actor on a CPU."""

    async def launch_servers(self) -> None:
        """Start it and wait until its model is loaded."""
        server = (
            ray.remote(Server)
            .options(
                name=ACTOR.format(self.replica_rank),
                num_cpus=1,
                max_concurrency=self.max_concurrency,
                runtime_env={"env_vars": dict.fromkeys(get_platform().ray_noset_envvars(), "1")},
            )
            .remote(self.config, self.model_config.path, self.replica_rank)
        )
        await server.ready.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = f"replica-{self.replica_rank}.invalid:0"
