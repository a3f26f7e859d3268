"""The SFT run: the mean negative log-likelihood of demonstrations."""

from __future__ import annotations

from torch import Tensor

from proveout_bench.algorithms.driver import drive
from proveout_bench.algorithms.rollout import Prompts, accuracy, build_actors
from proveout_bench.algorithms.sft.data import Demonstrations, as_batch
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Part
from proveout_bench.config.schema import SftConfig
from proveout_bench.faults import Faults
from proveout_bench.metrics.formulas import masked_mean
from proveout_bench.timing import Phases


def run(config: SftConfig) -> None:
    """Train on demonstrations as configured."""
    drive(config, "sft", lambda phases: SftLoop(config, phases))


class SftLoop:
    """One policy and the demonstrations of one task; a generator for validation."""

    def __init__(self, config: SftConfig, phases: Phases) -> None:
        self._config, self._phases, self._faults = config, phases, Faults(config.fault)
        self._actors = actors = build_actors(config, phases)
        self.policy, self.tokenizer = actors.policy, actors.tokenizer
        settings = config.sft
        self._data = Demonstrations(actors.task, settings.examples, settings.batch_size, config.seed)
        self._held_out = Prompts(config, actors.task).held_out()
        self._batch: Batch | None = None

    def step(self, step: int) -> dict[str, float]:
        """One batch, one update."""
        with self._phases.phase("data_processing", "Preparing batch..."):
            batch = self._batch = as_batch(self._data.next(), self.tokenizer, self._config.runtime.device)
        measured: dict[str, float] = {}

        def loss(current: Tensor) -> Tensor:
            value = self._faults.loss(step, -masked_mean(current, batch.response_mask), current.shape[1])
            measured["loss"] = float(value.detach())
            return value

        with self._phases.phase("policy_training", "Training policy..."):
            self.policy.mark()
            update = self.policy.update(batch, loss)
        return {
            **measured,
            "grad_norm": update.grad_norm,
            "lr": update.lr,
            "skipped_updates": float(not update.applied),
            "weight_delta": self.policy.moved(),
            "num_valid_samples": float(len(batch.input_ids)),
            "global_valid_seqs": float((batch.response_mask.sum(dim=1) > 0).sum()),
            "global_valid_toks": float(batch.response_mask.sum()),
        }

    def validate(self) -> dict[str, float]:
        """Mean reward of sampled answers, and the loss on their demonstrations, for held-out prompts."""
        pairs = [(prompt, self._actors.task.demonstration(prompt)) for prompt in self._held_out]
        batch = as_batch(pairs, self.tokenizer, self._config.runtime.device)
        loss = -masked_mean(self.policy.logprobs(batch), batch.response_mask)
        return {
            "accuracy": accuracy(self._actors, self._held_out, self._config.seed),
            "val_loss": float(loss),
        }

    def sample(self) -> Batch:
        """The latest batch."""
        if self._batch is None:
            raise RuntimeError("sample() before step()")
        return self._batch

    def parts(self) -> dict[str, Part]:
        """Policy and the position in the data."""
        return {**self.policy.parts(), "dataloader": self._data}
