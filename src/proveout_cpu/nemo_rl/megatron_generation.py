"""Backend ``megatron``: the real preparation and hand-over run, a plain sampler stands in for the inference engine.

Megatron-Core's DynamicInferenceEngine needs flash-attention kernels, paged memory and CUDA graphs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from proveout_cpu.repair import Repair, expect, repair


@repair(
    "nemo_rl.models.generation.megatron.megatron_worker",
    "nemo_rl/models/generation/megatron/megatron_worker.py",
    "generation runs in an engine of paged memory and flash kernels",
)
def plain_sampler(module: Any) -> None:
    """Rank 0 samples from the policy's own Megatron model, token by token."""
    mixin = expect(module, "MegatronGenerationMixin")
    expect(module, "MegatronGenerationMixin.prepare_for_generation", "self._run_async_coordinator_start()")
    expect(module, "MegatronGenerationMixin._initialize_inference_engine", parameters=("self",))
    for name in ("generate", "generate_async", "_sleep", "_wake", "_run_async_coordinator_start"):
        expect(mixin, name)

    def start(self: Any, mcore_generation_config: Any) -> None:
        self._inference_engine_initialized = True
        print(f"[Rank {self.rank}] proveout_cpu: a plain sampler serves generation", flush=True)

    def coordinate(self: Any) -> None:
        self._inference_engine_asleep, self.base_url = False, None
        _prove(self)

    def sleep(self: Any) -> None:
        self._inference_engine_asleep = True

    def wake(self: Any) -> None:
        self._inference_engine_asleep = False
        _prove(self)

    def generate(self: Any, *, data: Any, greedy: bool = False) -> Any:
        return module.BatchedDataDict(_sampled(self, data, greedy))

    async def generate_async(self: Any, data: Any, greedy: bool = False) -> Any:
        for index in range(data.size):
            part = data.get_batch(index, 1)
            yield index, module.BatchedDataDict(_sampled(self, part, greedy))

    mixin._initialize_inference_engine = start
    mixin._run_async_coordinator_start = coordinate
    mixin._sleep, mixin._wake = sleep, wake
    mixin.generate, mixin.generate_async = generate, generate_async
    if hasattr(module, "log_gpu_memory"):
        module.log_gpu_memory = lambda *_, **__: None


def _prove(worker: Any) -> None:
    """Compare what the Bridge exports of the policy now with the checkpoint that it was imported from."""
    from transformers import AutoModelForCausalLM

    from proveout_cpu.refit import RefitLog

    if not hasattr(worker, "_proveout_refits"):
        model = AutoModelForCausalLM.from_pretrained(worker.cfg["model_name"], dtype="float32")
        tied = ["lm_head.weight"] if model.config.tie_word_embeddings else []
        worker._proveout_refits = RefitLog(model.state_dict(), tied, f"policy-{worker.rank}")
    weights = worker.megatron_bridge.export_hf_weights([worker.model], cpu=True, show_progress=False)
    proof = worker._proveout_refits.take({name: tensor.clone() for name, tensor in weights}, None)
    worker._proveout_salt, worker._proveout_asked = proof["checksum"], Counter()


def _sampled(worker: Any, data: Any, greedy: bool) -> dict[str, Any]:
    import torch

    from proveout_cpu.nemo_rl.batches import generation_batch, requests_of
    from proveout_cpu.sampler import Sampled, choose

    config, pad = worker.cfg["generation"], worker.tokenizer.pad_token_id
    ids, lengths = data["input_ids"], data["input_lengths"]
    stops = frozenset({*(config.get("stop_token_ids") or []), worker.tokenizer.eos_token_id})
    asked = requests_of(
        ids,
        lengths,
        config,
        longest=int(config["mcore_generation_config"]["max_model_len"]),
        stops=stops,
        greedy=greedy,
        salt=(worker._proveout_salt,),
        repeats=worker._proveout_asked,
    )
    model = worker._gen_model()
    made = [Sampled([], []) for _ in asked]
    generators = [torch.Generator().manual_seed(request.seed) for request in asked]
    with torch.no_grad():
        for index, (request, generator) in enumerate(zip(asked, generators, strict=True)):
            tokens = list(request.prompt)
            for _ in range(request.new_tokens):
                place = torch.arange(len(tokens))[None]
                logits = model(input_ids=torch.tensor([tokens]), position_ids=place, attention_mask=None)
                token, logprob = choose(logits[0, -1], request, generator)
                tokens.append(token)
                made[index].tokens.append(token)
                made[index].logprobs.append(logprob)
                if token in stops:
                    break
    return generation_batch(ids, lengths, made, pad, stops)


REPAIRS: tuple[Repair, ...] = (plain_sampler,)
