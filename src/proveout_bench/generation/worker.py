"""What the generation process does: answers requests until the trainer's end of the socket is closed."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import torch

from proveout_bench.config.schema import RunConfig
from proveout_bench.faults import Faults
from proveout_bench.generation.inprocess import InProcessGenerator
from proveout_bench.refit.bits import DTYPES
from proveout_bench.refit.receiver import Receiver
from proveout_bench.refit.wire import Link, PeerGoneError
from proveout_bench.tokenizer import Tokenizer

PR_SET_PDEATHSIG = 1


def serve(config: RunConfig, model: torch.nn.Module, tokenizer: Tokenizer, link: Link) -> NoReturn:
    """Serve ``link`` and end the process: status 0 when the trainer is gone."""
    status = 1
    _end_with(os.getppid())
    try:
        torch.set_num_threads(1)
        _answer(Worker(config, model, tokenizer), link)
    except PeerGoneError:
        status = 0
    except BaseException as error:
        print(f"Generation process: {type(error).__name__}: {error}", flush=True)
    os._exit(status)


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent ends, also while it is stopped (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


class Worker:
    """One sampler with its receiver of weights."""

    def __init__(self, config: RunConfig, model: torch.nn.Module, tokenizer: Tokenizer) -> None:
        faults = Faults(config.fault)
        device = config.runtime.device
        self.sampler = InProcessGenerator(
            config.rollout, model.to(device), tokenizer, config.seed, hooks=faults.sampling()
        )
        self.receiver = Receiver(self.sampler.parameters(), DTYPES[config.refit.dtype], faults.receiver())


def _answer(worker: Worker, link: Link) -> NoReturn:
    sampler = worker.sampler
    while True:
        head, tensors, _ = link.receive()
        match head["op"]:
            case "refit":
                worker.receiver.refit(link, head)
                sampler.weights_changed()
            case "generate":
                batch = sampler.generate(head["prompts"], tensors[0] if tensors else None).to("cpu")
                link.send(
                    {"version": worker.receiver.version},
                    [batch.input_ids, batch.prompt_mask, batch.response_mask, batch.generation_logprobs],
                )
            case "reseed":
                sampler.reseed(head["seed"])
                link.send({})
            case "state":
                link.send({}, [sampler.part().state_dict()["state"]])
            case "set_state":
                sampler.part().load_state_dict({"state": tensors[0].clone()})
                link.send({})
            case unknown:
                raise ValueError(f"no request {unknown!r}")
