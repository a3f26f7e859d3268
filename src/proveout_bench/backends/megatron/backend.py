"""The policy as a Megatron model: see ``proveout_bench.backends.base.PolicyBackend``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from proveout_bench import ranks
from proveout_bench.backends.base import Update
from proveout_bench.backends.full import load_exported
from proveout_bench.backends.megatron import weights as of_policy
from proveout_bench.backends.megatron.build import build, start_folder
from proveout_bench.backends.megatron.checkpoint import Schedule, Sharded
from proveout_bench.backends.megatron.localize import first_differing
from proveout_bench.backends.megatron.meeting import import_megatron, meet, report_imports
from proveout_bench.backends.megatron.optimize import MegatronOptimizer
from proveout_bench.backends.megatron.passes import Passes
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Part
from proveout_bench.config.schema import RunConfig
from proveout_bench.faults import Faults
from proveout_bench.forward import response_logprobs
from proveout_bench.generation.base import Generator
from proveout_bench.generation.policy import PolicyGenerator
from proveout_bench.refit.bits import bits_of, checksum
from proveout_bench.tokenizer import Tokenizer
from proveout_cpu.torch_cuda import on_cpu

ADAPTER_FOLDER = "adapter"
LORA_OUT = "linear_out"


class MegatronBackend:
    """The policy that starts as the configured checkpoint, or as the tiny ``model``."""

    def __init__(self, config: RunConfig, model: torch.nn.Module) -> None:
        self._config, self._faults = config, Faults(config.fault)
        import_megatron()
        meet(config.runtime.device)
        report_imports()
        self._folder = start_folder(config, model)
        self._built = build(config, self._folder, self._faults)
        self._temperature = self._faults.temperature(config.rollout.temperature)
        self._passes = Passes(self._built, config.megatron, self._temperature, config.runtime.device)
        self._optimizer = MegatronOptimizer(self._built, config, self._faults)
        self._trained = of_policy.trainable(self._built.model[0].module)
        self._faults.adapter(self._trained.values())
        self._start = {name: weight.detach().clone() for name, weight in self._trained.items()}
        base = {name: weight.detach() for name, weight in model.named_parameters()}
        self._delivery = of_policy.Delivery(base) if self._built.lora else None
        self._count = self._optimizer.count()
        self._marked: dict[str, Tensor] = {}

    def trainable_parameters(self) -> int:
        """Number of scalars that the optimizer may change, over all ranks."""
        return self._count

    def logprobs(self, batch: Batch) -> Tensor:
        """Policy log-probabilities, float32 [B, T], the same on every rank."""
        return self._passes.logprobs(batch)

    def logits(self, ids: Tensor) -> Tensor:
        """Logits of whole sequences, float32 [B, S, V], of the rank furthest from the first."""
        return self._passes.logits(ids)

    def first_differing(self, original: torch.nn.Module, ids: Tensor) -> list[str]:
        """The weights of the first place that computes something else than ``original``; none on several ranks."""
        return first_differing(self._built, original, ids) if ranks.world() == 1 else []

    def next_logits(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Logits after the first ``lengths`` tokens of each row, float32 [B, V]."""
        return self._passes.next_logits(ids, lengths)

    def reference_logprobs(self, batch: Batch) -> Tensor:
        """The same under the weights of the start, which are put in for this."""
        with self._at_start():
            return self._passes.logprobs(batch)

    def update(self, batch: Batch, loss: Callable[[Tensor], Tensor]) -> Update:
        """Backward pass through Megatron's schedule, clipping, Megatron's optimizer."""
        return self._optimizer.step(lambda: self._passes.backward(batch, loss))

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights as the Bridge exports them, adapters merged; all ranks must go through them."""
        named = of_policy.exported(self._built)
        if self._delivery is None:
            return named
        asked = of_policy.changes(self._built, self._built.lora.alpha / self._built.lora.dim)
        return self._delivery.watch(self._sent(named), asked)

    def mark(self) -> None:
        """Copy the trainable weights."""
        self._optimizer.mark()
        self._marked = {name: weight.detach().clone() for name, weight in self._trained.items()}

    def moved(self) -> float:
        """L2 norm over all trainable weights of all ranks."""
        return self._optimizer.moved()

    def unmoved(self) -> int:
        """Trainable tensors of all ranks without any change since ``mark``."""
        return sum(
            ranks.gathered(sum(torch.equal(w, self._marked[name]) for name, w in self._trained.items()))
        )

    def generator(self, tokenizer: Tokenizer) -> Generator:
        """Samples with the Megatron model, adapters and all, on every rank."""
        return PolicyGenerator(self._config.rollout, self, tokenizer, self._config.seed)

    def parts(self) -> dict[str, Part]:
        """``policy`` (with the optimizer, a folder of Megatron's) and ``scheduler``."""
        return {"policy": Sharded(self._built, self._optimizer), "scheduler": Schedule(self._optimizer)}

    def measure(self) -> dict[str, float]:
        """What of the adapters the last ``weights`` held, and whether the copies on data parallel ranks are equal."""
        return {**(self._delivery.measure() if self._delivery else {}), **self._copies()}

    def export(self, folder: Path) -> None:
        """Write a Hugging Face checkpoint through the Bridge, and the adapter beside it."""
        built = self._built
        with torch.no_grad(), on_cpu():
            with self._adapters_scaled(self._faults.exported_scale(1.0)):
                built.bridge.save_hf_pretrained(built.model, str(folder), show_progress=False)
            if built.lora is not None:
                built.bridge.save_hf_adapter(
                    built.model, str(folder / ADAPTER_FOLDER), built.lora, show_progress=False
                )
        ranks.barrier()

    def export_errors(self, folder: Path, batch: Batch) -> dict[str, float]:
        """Largest differences in nats between this policy and what was exported, loaded as anyone would."""
        batch = batch.to("cpu")
        ours = self._passes.logprobs(batch)
        if not ranks.first():
            return {}
        found = {"logprob_error": self._apart(ours, load_exported(folder), batch)}
        if self._built.lora is not None:
            from peft import PeftModel

            adapted = PeftModel.from_pretrained(
                load_exported(self._folder), str(folder / ADAPTER_FOLDER)
            ).eval()
            found["adapter_logprob_error"] = self._apart(ours, adapted.get_base_model(), batch)
        return found

    def _copies(self) -> dict[str, float]:
        """``ranks``, and ``ranks_differing``: how many hold other weights than the first of their data parallel group.

        Experts are left out: where they are spread, ranks hold different ones.
        """
        if ranks.world() == 1:
            return {}
        from megatron.core import parallel_state

        place = (
            parallel_state.get_tensor_model_parallel_rank(),
            parallel_state.get_pipeline_model_parallel_rank(),
        )
        copied = (w for w in self._trained.values() if getattr(w, "allreduce", True))
        mine = checksum(bits_of(weight, torch.float32) for weight in copied)
        first: dict[tuple[int, int], int] = {}
        everywhere = ranks.gathered((place, mine))
        differing = sum(first.setdefault(where, found) != found for where, found in everywhere)
        return {"ranks": float(len(everywhere)), "ranks_differing": float(differing)}

    def _apart(self, ours: Tensor, theirs: torch.nn.Module, batch: Batch) -> float:
        with torch.no_grad():
            apart = ours - response_logprobs(theirs, batch, self._temperature)
        return float((apart.abs() * batch.response_mask).max())

    @contextmanager
    def _adapters_scaled(self, factor: float) -> Iterator[None]:
        """The adapters' output halves times ``factor`` for a while; nothing for 1."""
        if factor == 1.0:
            yield
            return
        now = {name: weight.detach().clone() for name, weight in self._trained.items()}
        self._put({name: w * factor if LORA_OUT in name else w for name, w in now.items()})
        try:
            yield
        finally:
            self._put(now)

    def _sent(self, named: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """The weights on their way to the generator, where a fault may keep the adapters back."""
        base = self._delivery.base if self._delivery else {}
        return (
            (name, self._faults.delivered(weight, base.get(name, weight), name)) for name, weight in named
        )

    @contextmanager
    def _at_start(self) -> Iterator[None]:
        now = {name: weight.detach().clone() for name, weight in self._trained.items()}
        self._put(self._start)
        try:
            yield
        finally:
            self._put(now)

    def _put(self, values: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, weight in self._trained.items():
                weight.copy_(values[name])
