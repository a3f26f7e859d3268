"""Defects that a run carries on purpose, so that whoever judges it can be tested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proveout_bench.config.schema import Fault, Loss

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from proveout_bench.backends.microbatches import MicroBatch
    from proveout_bench.batch import Batch
    from proveout_bench.faults.refit import ReceiverHooks, SenderHooks
    from proveout_bench.faults.sampling import Sampling
    from proveout_bench.metrics.writer import MetricsWriter


class Faults:
    """One method for each seam where a defect can enter; without a fault each does nothing but its work."""

    def __init__(self, config: Fault) -> None:
        self._config = config
        self._updates: dict[int, int] = {}

    @classmethod
    def none(cls) -> Faults:
        """No defect at all."""
        return cls(Fault())

    def named(self, name: str) -> bool:
        """Whether ``fault.inject`` is ``name``."""
        return self._config.inject == name

    def begun(self, name: str, step: int) -> bool:
        """Whether it is ``name`` and ``step`` is not before ``at_step``."""
        return self.named(name) and step >= self._config.at_step

    def policy_model(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model as the policy holds it: with a fault of mapping or configuration a spoiled copy."""
        from proveout_bench.faults.model import spoiled

        return spoiled(self._config.inject, model)

    def provider(self, provider: Any) -> None:
        """The Bridge's provider once it is settled, where the policy is a Megatron model."""
        from proveout_bench.faults.megatron import spoil_provider

        spoil_provider(self._config.inject, provider)

    def bound(self, chunks: Any) -> Any:
        """A Megatron model with its adapters; ``lora-binds-nothing`` takes their effect away."""
        from proveout_bench.faults.megatron import unbind

        if self.named("lora-binds-nothing"):
            unbind(chunks)
        return chunks

    def pixels(self, pixels: Tensor) -> Tensor:
        """Images float32 [B, 3, H, W] as the processor gives them; ``vision-image-dropped`` makes them blank."""
        return pixels * 0 if self.named("vision-image-dropped") else pixels

    def reward_model(self, model: Any) -> None:
        """A reward model after it was loaded; ``reward-model-sign`` turns its score round."""
        if self.named("reward-model-sign"):
            model.score.weight.data.neg_()

    def refits(self, step: int) -> bool:
        """Whether the rollout after ``step`` gets new weights; ``rollout-too-old`` leaves it the ones before."""
        return not self.begun("rollout-too-old", step)

    def sharded(self, model: torch.nn.Module) -> None:
        """The policy after it was spread over ranks; ``mapping-tp-shard-swapped`` exchanges shards of one."""
        if self.named("mapping-tp-shard-swapped"):
            from proveout_bench.faults.model import swap_shards

            swap_shards(model)

    def microbatches(self, parts: list[MicroBatch]) -> list[MicroBatch]:
        """The micro batches of a backward pass; ``loss-microbatch-lost`` leaves the last out."""
        return parts[:-1] if self.named("loss-microbatch-lost") else parts

    def sampling(self) -> Sampling:
        """The hooks of a sampler."""
        from proveout_bench.faults import sampling

        match self._config.inject:
            case "refit-prefix-kept":
                return sampling.KeptPrefix()
            case "refit-stale":
                return sampling.Stale(self._config.at_step)
            case "refit-late-by-one":
                return sampling.LateByOne()
            case "logprobs-truncated":
                return sampling.Truncated()
            case "vision-lost-in-generation":
                return sampling.BlankImages()
        return sampling.Sampling()

    def sender(self) -> SenderHooks:
        """The hooks of the sending end of a weight transfer."""
        from proveout_bench.faults import refit

        match self._config.inject:
            case "refit-bucket-lost":
                return refit.BucketLost(self._config.at_step)
            case "refit-name-left-out":
                return refit.NameLeftOut()
            case "refit-rounded":
                return refit.Rounded()
            case "refit-delta-first":
                return refit.NeverFull()
            case "refit-bit-flipped":
                return refit.BitFlipped(self._config.at_step)
        return refit.SenderHooks()

    def receiver(self) -> ReceiverHooks:
        """The hooks of the receiving end."""
        from proveout_bench.faults import refit

        match self._config.inject:
            case "refit-stale-silent":
                return refit.StaleAndSilent(self._config.at_step)
            case "refit-old-version":
                return refit.OldVersion(self._config.at_step)
            case "refit-delta-first" | "refit-lost-weights":
                return refit.LostWeights()
            case "refit-applied-twice":
                return refit.AppliedTwice(self._config.at_step)
        return refit.ReceiverHooks()

    def generation_process(self, pid: int, refits: int) -> None:
        """Called before refit number ``refits``: the generation process may be killed or stopped."""
        from proveout_bench.faults import refit

        if self.begun("environment-worker-killed", refits):
            refit.kill(pid)
        elif self.begun("environment-worker-hangs", refits):
            refit.stop(pid)

    def step(self, step: int) -> None:
        """Called at the beginning of each step."""
        from proveout_bench.faults import reporting

        if self.begun("environment-hang", step):
            reporting.hang()
        if self.begun("report-exit-zero", step):
            reporting.fail_with_status_zero()

    def last_step(self, total: int) -> int:
        """After which step the run ends, whatever was asked for; ``report-stops-early``."""
        return self._config.at_step if self.named("report-stops-early") else total

    def writer(self, writer: MetricsWriter) -> MetricsWriter:
        """The sink of metrics."""
        from proveout_bench.faults import reporting

        return reporting.spoiled(self._config.inject, self._config.at_step, writer)

    def scaling(self, value: float) -> float:
        """The scale of an adapter in the forward pass; ``lora-binds-nothing`` leaves it without effect."""
        return 0.0 if self.named("lora-binds-nothing") else value

    def grouped(self, rewards: Tensor, group_size: int) -> Tensor:
        """Rewards float32 [B] before they are grouped; ``advantage-groups-mixed`` takes them column by column."""
        if not self.named("advantage-groups-mixed"):
            return rewards
        return rewards.view(-1, group_size).t().reshape(-1)

    def loss_mask(self, mask: Tensor) -> Tensor:
        """The mask [b, T] that the loss uses; ``loss-mask-ignored`` counts every place."""
        return mask * 0 + 1 if self.named("loss-mask-ignored") else mask

    def loss_settings(self, config: Loss) -> Loss:
        """The settings of the loss; ``loss-clip-ignored`` leaves ratios as they are."""
        return (
            replace(config, clip_low=0.999999, clip_high=1e9) if self.named("loss-clip-ignored") else config
        )

    def rate(self, value: float) -> float:
        """The learning rate; ``optimizer-lr-zero`` makes it 0."""
        return 0.0 if self.named("optimizer-lr-zero") else value

    def optimized(self, weights: list[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
        """The weights that the optimizer is given; ``optimizer-half-the-weights`` gives every second one."""
        return weights[::2] if self.named("optimizer-half-the-weights") else weights

    def critic_rate(self, value: float) -> float:
        """The critic's learning rate; ``loss-critic-frozen`` makes it 0."""
        return 0.0 if self.named("loss-critic-frozen") else value

    def reduces(self) -> bool:
        """Whether gradients are averaged over ranks; ``optimizer-not-reduced`` leaves them apart."""
        return not self.named("optimizer-not-reduced")

    def gradients(self, update: int, weights: list[torch.nn.Parameter]) -> None:
        """Gradients of update number ``update`` (from 1); ``numerics-inf-gradient`` makes one infinite."""
        if self.begun("numerics-inf-gradient", update) and weights[0].grad is not None:
            weights[0].grad.view(-1)[0] = float("inf")

    def before_save(self) -> None:
        """Called before a checkpoint is written; ``environment-disk-full`` finds no space."""
        import errno

        if self.named("environment-disk-full"):
            raise OSError(errno.ENOSPC, "No space left on device", "checkpoints")

    def checkpoint(self, folder: Path) -> None:
        """A checkpoint after it was written."""
        from proveout_bench.faults import files

        files.spoil(self._config.inject, folder)

    def loss(self, step: int, value: Tensor, tokens: int) -> Tensor:
        """The scalar loss of one minibatch whose responses have ``tokens`` columns, before its backward pass.

        NaN at ``nan_loss_at_step``; with responses longer than ``nan_beyond_tokens``, as a kernel with too small
        a buffer gives; from the second update of a step on with ``nan_second_update``.
        """
        updates = self._updates[step] = self._updates.get(step, 0) + 1
        spoiled = (
            step == self._config.nan_loss_at_step
            or 0 < self._config.nan_beyond_tokens < tokens
            or (self._config.nan_second_update and updates > 1)
        )
        return value * float("nan") if spoiled else value

    def rewards(self, rewards: Tensor) -> Tensor:
        """Rewards float32 [B] as the loop sees them; ``constant_reward`` gives every response 0.5."""
        return rewards * 0 + 0.5 if self._config.constant_reward else rewards

    def advantages(self, advantages: Tensor) -> Tensor:
        """Advantages float32 [B, T]; ``advantage_sign`` turns them round."""
        return -advantages if self._config.advantage_sign else advantages

    def zero_grad(self, optimizer: torch.optim.Optimizer) -> None:
        """Clear the gradients; ``no_zero_grad`` lets them pile up."""
        if not self._config.no_zero_grad:
            optimizer.zero_grad(set_to_none=True)

    def keeps_gradients(self) -> bool:
        """Whether the gradients pile up from update to update: ``no_zero_grad``."""
        return self._config.no_zero_grad

    def adapter(self, weights: Iterable[Tensor]) -> None:
        """The adapter's weights when they are made; ``adapter_frozen`` cuts their gradients off."""
        if self._config.adapter_frozen:
            for weight in weights:
                weight.register_hook(lambda gradient: gradient * 0)

    def delivered(self, merged: Tensor, base: Tensor, name: str = "") -> Tensor:
        """An adapted weight on its way to the generator; ``adapter_not_delivered`` sends the base's.

        ``lora-one-module-lost`` does so for one module; ``lora-scaled-twice`` sends twice the adapter's change.
        """
        if self.named("lora-scaled-twice"):
            return merged + (merged - base)
        lost = self.named("lora-one-module-lost") and "layers.0.mlp.down_proj" in name
        return base if self._config.adapter_not_delivered or lost else merged

    def exported_scale(self, scale: float) -> float:
        """The adapter's scale in an export; ``adapter_exported_without_effect`` makes it 0, as alpha 0 would."""
        return 0.0 if self._config.adapter_exported_without_effect else scale

    def resumes(self, asked: bool) -> bool:
        """Whether a resume really happens; ``resume_fresh`` starts over without a word."""
        return asked and not self._config.resume_fresh

    def left_out(self) -> str:
        """The part of a checkpoint that is not loaded: ``not_restored``, '' for none."""
        return self._config.not_restored

    def saved(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """The weights after they were saved; ``saving_spoils`` leaves NaN in them, as a conversion in place can."""
        if self._config.saving_spoils:
            self._spoil(weights)

    def restored(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """The weights after they were loaded from a checkpoint; ``restoring_spoils`` leaves NaN in them."""
        if self._config.restoring_spoils:
            self._spoil(weights)

    def scored(self, batch: Batch) -> Batch:
        """The rollout as the policy scores it; ``padding_ignored`` takes padding for prompt."""
        if not self._config.padding_ignored:
            return batch
        return replace(batch, prompt_mask=batch.prompt_mask | True)

    def counted(self, batch: Batch) -> Batch:
        """The rollout as it is learned from; ``logprobs-padding-counted`` takes padding for response,
        ``loss-environment-tokens`` what the environment said between two answers."""
        if self.named("loss-environment-tokens"):
            filled = batch.response_mask.flip(1).cummax(dim=1).values.flip(1)
            return replace(batch, response_mask=filled)
        if not self.named("logprobs-padding-counted"):
            return batch
        return replace(batch, response_mask=batch.response_mask * 0 + 1)

    def temperature(self, value: float) -> float:
        """The temperature at which the policy scores; ``temperature_ignored`` makes it 1."""
        return 1.0 if self._config.temperature_ignored else value

    def reference(self, logprobs: Tensor, weight: float, previous: Tensor | None = None) -> Tensor:
        """The reference policy's logprobs, float32 [B, T]; NaN with ``reference_nan`` where ``weight`` uses them.

        ``logprobs-reference-moves`` gives the policy's own, ``previous``.
        """
        if self.named("logprobs-reference-moves") and previous is not None:
            return previous
        return logprobs * float("nan") if self._config.reference_nan and weight > 0 else logprobs

    def previous(self, logprobs: Tensor, threads: int) -> Tensor:
        """The policy's logprobs, float32 [B, T]; ``threads_race`` loses every second row with several threads."""
        if self.named("logprobs-off-by-one"):
            return logprobs.roll(1, dims=1)
        if not self._config.threads_race or threads < 2:
            return logprobs
        lost = logprobs.clone()
        lost[::2] = 0.0
        return lost

    @staticmethod
    def _spoil(weights: Iterable[tuple[str, Tensor]]) -> None:
        for _, weight in weights:
            weight.fill_(float("nan"))
