"""Generation in a process of its own, which gets the policy's weights over a local socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import BenchError
from proveout_bench.faults import Faults
from proveout_bench.generation.worker import serve
from proveout_bench.refit.report import RefitReport, together
from proveout_bench.refit.sender import Sender
from proveout_bench.refit.wire import Link, PeerGoneError
from proveout_bench.tokenizer import Tokenizer


class GenerationError(BenchError):
    """The generation process ended or reported an error."""


class ProcessGenerator:
    """The trainer's end. The process is forked before anything of this one has touched a GPU or trained.

    ``model`` (on the CPU) is what the process begins with; it ends when this end of the socket is closed.
    """

    def __init__(self, config: RunConfig, model: torch.nn.Module, tokenizer: Tokenizer) -> None:
        faults = Faults(config.fault)
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            ours.close()
            serve(config, model, tokenizer, Link(theirs))
        theirs.close()
        ours.settimeout(config.refit.timeout_s)
        self._link = Link(ours)
        self._device = config.runtime.device
        self._sender = Sender(config.refit, self._link, faults.sender())
        self._faults, self._report, self._refits = faults, RefitReport(), 0
        self._unread: RefitReport | None = None
        self._pixels: Tensor | None = None
        self.sampled_version = 0
        print(f"Generation process {self._pid} started", flush=True)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Refit. RefitError where generation does not hold ``weights`` afterwards."""
        self._refits += 1
        self._faults.generation_process(self._pid, self._refits)
        self._report = together(self._unread, self._sender.refit(weights))
        self._unread = self._report

    def refit(self) -> RefitReport:
        """What the last ``load_weights`` did, with what changed since this was asked last."""
        self._unread = None
        return self._report

    def start(self, prompts: list[list[int]], pixels: Tensor | None = None) -> None:
        """Begin to sample; ``finish`` gives the responses. Nothing else may be asked for in between."""
        self._pixels = pixels
        self._send({"op": "generate", "prompts": prompts}, [] if pixels is None else [pixels.cpu()])

    def finish(self) -> Batch:
        """The responses that ``start`` asked for; ``sampled_version`` says of which refit's weights."""
        head, tensors = self._receive()
        self.sampled_version = int(head["version"])
        ids, prompt_mask, response_mask, logprobs = tensors
        return Batch(ids, prompt_mask, response_mask, logprobs, self._pixels).to(self._device)

    def generate(self, prompts: list[list[int]], pixels: Tensor | None = None) -> Batch:
        """Sample one response for each prompt."""
        self.start(prompts, pixels)
        return self.finish()

    def reseed(self, seed: int) -> None:
        """Start the sampling anew."""
        self._ask({"op": "reseed", "seed": seed})

    def part(self) -> Stateful:
        """The generator of random numbers over there."""
        return _RemoteRandom(self)

    def state(self) -> Tensor:
        """The state of the sampling."""
        return self._ask({"op": "state"})[0]

    def set_state(self, state: Tensor) -> None:
        """Set the state of the sampling."""
        self._ask({"op": "set_state"}, [state])

    def _ask(self, head: dict[str, Any], tensors: list[Tensor] | None = None) -> list[Tensor]:
        self._send(head, tensors or [])
        return self._receive()[1]

    def _send(self, head: dict[str, Any], tensors: list[Tensor] | None = None) -> None:
        try:
            self._link.send(head, tensors or [])
        except PeerGoneError as error:
            raise self._ended(error) from error

    def _receive(self) -> tuple[dict[str, Any], list[Tensor]]:
        try:
            head, tensors, _ = self._link.receive()
        except PeerGoneError as error:
            raise self._ended(error) from error
        if "error" in head:
            raise GenerationError(f"generation failed in its process {self._pid}: {head['error']}")
        return head, tensors

    def _ended(self, error: PeerGoneError) -> GenerationError:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        how = "does not answer"
        if pid:
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return GenerationError(f"the generation process {self._pid} {how}: {error}")


class _RemoteRandom:
    def __init__(self, generator: ProcessGenerator) -> None:
        self._generator = generator

    def state_dict(self) -> dict[str, Any]:
        return {"state": self._generator.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._generator.set_state(state["state"])
