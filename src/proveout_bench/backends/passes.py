"""Forward and backward passes of a policy over a minibatch: this rank's rows, in micro batches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from proveout_bench.backends.microbatches import MicroBatch, split
from proveout_bench.backends.shares import Share
from proveout_bench.backends.whole import norm
from proveout_bench.batch import Batch
from proveout_bench.faults import Faults
from proveout_bench.forward import response_logprobs


class Passes:
    """Log-probabilities at ``temperature``, micro batches of at most ``budget`` tokens (0: one for all rows)."""

    def __init__(self, temperature: float, share: Share, budget: int, faults: Faults) -> None:
        self._temperature, self._share, self._budget, self._faults = temperature, share, budget, faults
        self._largest, self._most, self._error = 0, 0, 0.0
        self._checked = False

    def logprobs(self, model: torch.nn.Module, batch: Batch) -> Tensor:
        """Of all rows, float32 [B, T], without gradient; 0 where a micro batch had no token."""
        whole = torch.zeros_like(batch.response_mask)
        with torch.no_grad():
            for micro in self._split(batch):
                whole[micro.index, : micro.steps] = response_logprobs(model, micro.batch, self._temperature)
        self._share.join(whole)
        return whole

    def backward(
        self,
        model: torch.nn.Module,
        batch: Batch,
        loss: Callable[[Tensor], Tensor],
        weights: list[torch.nn.Parameter],
    ) -> None:
        """Add the gradient of ``loss`` (of the log-probabilities float32 [B, T] of all rows) to that of ``weights``.

        With a budget the loss is computed on log-probabilities without a graph; each micro batch is then computed
        anew and gets its part of their gradient, so that no loss need know of micro batches and memory is that of one.
        """
        if not self._budget:
            loss(self._with_graph(model, batch)).backward()
            return
        leaf = self.logprobs(model, batch).requires_grad_()
        loss(leaf).backward()
        slope = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        before = [None if weight.grad is None else weight.grad.clone() for weight in weights]
        for micro in self._faults.microbatches(self._split(batch)):
            part = response_logprobs(model, micro.batch, self._temperature)
            part.backward(slope[micro.index, : micro.steps])
        if not self._checked:
            self._checked = True
            self._error = max(self._error, self._against_one_pass(model, batch, slope, weights, before))

    def measure(self) -> dict[str, float]:
        """Of the micro batches since this was asked last: how many of a pass at most, the largest, and by how much
        (relative) the first gradient was off the one of a single pass over all rows."""
        if not self._budget:
            return {}
        found = {
            "microbatches": float(self._most),
            "microbatch_tokens_max": float(self._largest),
            "microbatch_grad_error": self._error,
        }
        self._largest, self._most, self._error, self._checked = 0, 0, 0.0, False
        return found

    def _with_graph(self, model: torch.nn.Module, batch: Batch) -> Tensor:
        rows = self._rows(batch)
        if len(rows) == len(batch.input_ids):
            return response_logprobs(model, batch, self._temperature)
        own = response_logprobs(model, batch.rows(rows), self._temperature) if len(rows) else None
        whole = torch.zeros_like(batch.response_mask)
        if own is not None:
            whole[rows] = own.detach()
        self._share.join(whole)
        return whole.requires_grad_() if own is None else whole.index_copy(0, rows, own)

    def _against_one_pass(
        self,
        model: torch.nn.Module,
        batch: Batch,
        slope: Tensor,
        weights: list[torch.nn.Parameter],
        before: list[Tensor | None],
    ) -> float:
        rows = self._rows(batch)
        if not len(rows):
            return 0.0
        part = response_logprobs(model, batch.rows(rows), self._temperature)
        wanted = torch.autograd.grad(part, weights, slope[rows], allow_unused=True)
        apart = []
        for weight, old, new in zip(weights, before, wanted, strict=True):
            if new is not None:
                added = torch.zeros_like(weight) if weight.grad is None else weight.grad
                apart.append(added - new if old is None else added - old - new)
        return float(norm(apart) / norm([one for one in wanted if one is not None]).clamp_min(1e-12))

    def _rows(self, batch: Batch) -> Tensor:
        return self._share.rows(len(batch.input_ids)).to(batch.input_ids.device)

    def _split(self, batch: Batch) -> list[MicroBatch]:
        found = split(batch, self._rows(batch), self._budget)
        self._most = max(self._most, len(found))
        self._largest = max([self._largest, *(micro.tokens for micro in found)])
        return found
