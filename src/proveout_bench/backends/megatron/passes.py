"""Forward and backward passes through Megatron's own schedules, on any layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from proveout_bench.backends.megatron.align import Aligned, align
from proveout_bench.backends.megatron.build import Built
from proveout_bench.batch import Batch
from proveout_bench.config.schema import Megatron
from proveout_bench.forward import token_logprobs
from proveout_cpu.torch_cuda import on_cpu

Loss = Callable[[Tensor], Tensor]


class Passes:
    """Log-probabilities of whole batches, the same on every rank, and their gradients.

    Batches may lie on another device than the model; what comes out lies where the batch does.
    """

    def __init__(self, built: Built, layout: Megatron, temperature: float, device: str) -> None:
        from megatron.core import parallel_state
        from megatron.core.pipeline_parallel import get_forward_backward_func

        self._state, self._schedule = parallel_state, get_forward_backward_func()
        self._model, self._layout, self._temperature = built.model, layout, temperature
        self._device = device

    def logprobs(self, batch: Batch) -> Tensor:
        """Of the response tokens, float32 [B, T], without gradient."""
        aligned, rows = self._mine(batch)
        found: list[Tensor] = []

        def collect(logits: Tensor, piece: Aligned, _: Tensor) -> Tensor:
            found.append(self._chosen(logits, piece).detach())
            return found[-1].sum()

        with torch.no_grad(), on_cpu():
            self._run(aligned, rows, collect, forward_only=True)
            shape = (len(rows), batch.response_mask.shape[1])
            mine = torch.cat(found) if found else torch.empty(shape, device=self._device)
            whole = self._whole(self._from_last(mine))[: len(batch.input_ids)]
            return whole.to(batch.input_ids.device)

    def backward(self, batch: Batch, loss: Loss) -> None:
        """Gradients of ``loss`` (of the log-probabilities of the whole batch, float32 [B, T]) into the model.

        ``loss`` is called once on every rank. With one microbatch its graph is the model's; with several, it is
        called on the result of a forward pass first, and each microbatch takes its part of that gradient.
        """
        if self._layout.microbatches == 1:
            self._backward_whole(batch, loss)
        else:
            self._backward_in_parts(batch, loss)

    def logits(self, ids: Tensor) -> Tensor:
        """Of sequences without padding, float32 [B, S, V]; those of the rank that is furthest from rank 0."""
        with torch.no_grad(), on_cpu():
            return _furthest(self._logits(ids.to(self._device))).cpu()

    def _logits(self, ids: Tensor) -> Tensor:
        found: list[Tensor] = []
        multiple = self._layout.tp if self._layout.sequence_parallel else 1
        padded = torch.nn.functional.pad(ids, (0, -ids.shape[1] % multiple))
        everything = Aligned(padded, ids[:, :0], ids[:, :0])

        def collect(logits: Tensor, _: Aligned, __: Tensor) -> Tensor:
            from megatron.core.tensor_parallel import gather_from_tensor_model_parallel_region

            found.append(gather_from_tensor_model_parallel_region(logits).detach().float())
            return found[-1].sum()

        self._run(everything, torch.arange(len(ids)), collect, forward_only=True, microbatches=1)
        shape = self._from_last(torch.tensor(found[0].shape if found else (0, 0, 0), device=self._device))
        mine = self._from_last(found[0] if found else torch.empty(shape.tolist(), device=self._device))
        return mine[:, : ids.shape[1]].contiguous()

    def next_logits(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Logits after the first ``lengths`` int64 [B] tokens of each row, float32 [B, V], on every rank."""
        places = (lengths - 1).view(-1, 1, 1)
        with torch.no_grad(), on_cpu():
            everywhere = self._logits(ids.to(self._device)).to(ids.device)
            return everywhere.gather(1, places.expand(-1, 1, everywhere.shape[-1])).squeeze(1)

    def _backward_whole(self, batch: Batch, loss: Loss) -> None:
        aligned, rows = self._mine(batch)
        count, home = len(batch.input_ids), batch.input_ids.device
        seen: list[Tensor] = []

        def compute(logits: Tensor, piece: Aligned, index: Tensor) -> Tensor:
            mine = self._chosen(logits, piece)
            whole = self._whole(mine.detach())
            seen.append(whole[:count])
            real = index < count
            whole = whole.index_put((index[real],), mine[real])
            value = loss(whole[:count].to(home))
            return value.to(self._device) * self._layout.dp

        with on_cpu():
            self._run(aligned, rows, compute, forward_only=False)
            if self._layout.pp > 1:
                shape = (count, batch.response_mask.shape[1])
                whole = self._from_last(seen[0] if seen else torch.empty(shape, device=self._device))
                if not seen:
                    loss(whole.to(home))

    def _backward_in_parts(self, batch: Batch, loss: Loss) -> None:
        current = self.logprobs(batch).requires_grad_()
        (gradient,) = torch.autograd.grad(loss(current), current)
        gradient = gradient.to(self._device)
        aligned, rows = self._mine(batch)
        padded = torch.cat(
            [gradient, gradient.new_zeros(len(aligned.ids) - len(gradient), gradient.shape[1])]
        )
        scale = self._layout.dp * self._layout.microbatches

        def compute(logits: Tensor, piece: Aligned, index: Tensor) -> Tensor:
            return (padded[index] * self._chosen(logits, piece)).sum() * scale

        with on_cpu():
            self._run(aligned, rows, compute, forward_only=False)

    def _mine(self, batch: Batch) -> tuple[Aligned, Tensor]:
        """The batch, filled up to what divides evenly with its first row, and this rank's rows of it."""
        aligned = align(batch.to(self._device), self._layout.tp if self._layout.sequence_parallel else 1)
        count, parts = len(aligned.ids), self._layout.dp * self._layout.microbatches
        if more := -count % parts:
            aligned = aligned.rows(torch.cat([torch.arange(count), torch.zeros(more, dtype=torch.int64)]))
        number = self._state.get_data_parallel_rank()
        return aligned, torch.arange(len(aligned.ids)).chunk(self._layout.dp)[number]

    def _run(
        self,
        aligned: Aligned,
        rows: Tensor,
        compute: Callable[[Tensor, Aligned, Tensor], Tensor],
        *,
        forward_only: bool,
        microbatches: int = 0,
    ) -> None:
        count = microbatches or self._layout.microbatches
        pieces = rows.chunk(count)
        length = aligned.ids.shape[1]
        places = torch.arange(length, device=aligned.ids.device).unsqueeze(0)

        def step(data: Iterator[Tensor], model: Any) -> tuple[Tensor, Callable[..., Any]]:
            index = next(data)
            piece = aligned.rows(index)
            logits = model(piece.ids, places.expand(len(index), -1).contiguous(), None)

            def finish(output: Tensor, non_loss_data: bool = False) -> tuple[Tensor, dict[str, Tensor]]:
                return compute(output, piece, index), {}

            return logits, finish

        self._schedule(
            forward_step_func=step,
            data_iterator=iter(pieces),
            model=self._model,
            num_microbatches=count,
            seq_length=length,
            micro_batch_size=len(pieces[0]),
            forward_only=forward_only,
        )

    def _chosen(self, logits: Tensor, piece: Aligned) -> Tensor:
        """Log-probabilities of the response tokens, float32 [b, T]; ``logits`` [b, S, V / tp]."""
        index = piece.places.unsqueeze(-1).expand(-1, -1, logits.shape[-1])
        of_response = logits.gather(1, index)
        if self._layout.tp == 1:
            return token_logprobs(of_response, piece.tokens, self._temperature)
        from megatron.core.tensor_parallel import vocab_parallel_cross_entropy

        scaled = of_response.float() / self._temperature
        chosen: Tensor = -vocab_parallel_cross_entropy(scaled, piece.tokens)
        return chosen

    def _from_last(self, tensor: Tensor) -> Tensor:
        """The last pipeline stage's ``tensor``, which all stages give in its shape."""
        if self._layout.pp > 1:
            source = self._state.get_pipeline_model_parallel_last_rank()
            dist.broadcast(tensor, source, group=self._state.get_pipeline_model_parallel_group())
        return tensor

    def _whole(self, mine: Tensor) -> Tensor:
        """All data parallel ranks' rows, in order."""
        if self._layout.dp == 1:
            return mine
        parts = [torch.empty_like(mine) for _ in range(self._layout.dp)]
        dist.all_gather(parts, mine.contiguous(), group=self._state.get_data_parallel_group())
        return torch.cat(parts)


def _furthest(mine: Tensor) -> Tensor:
    if dist.get_world_size() == 1:
        return mine
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    distances = [float((part - parts[0]).abs().nan_to_num(torch.inf).max()) for part in parts]
    return parts[max(range(len(parts)), key=distances.__getitem__)]
