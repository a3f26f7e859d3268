"""Weights reach a separate process bit for bit, and whatever goes wrong on the way ends the run with a clear error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench.runs import SMALL, bench

from proveout_bench.config.schema import Refit
from proveout_bench.faults import refit as faults
from proveout_bench.refit.bits import DTYPES, bits_of
from proveout_bench.refit.receiver import Receiver
from proveout_bench.refit.report import RefitReport
from proveout_bench.refit.sender import RefitError, Sender
from proveout_bench.refit.wire import Link, PeerGoneError


class Pair:
    """A sender, and a receiver that answers in a thread."""

    def __init__(self, config: Refit, held: dict[str, torch.Tensor], **hooks: Any) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(20)
        self.link = Link(ours)
        self.sender = Sender(config, self.link, hooks.get("sender", faults.SenderHooks()))
        receiver = Receiver(held, DTYPES[config.dtype], hooks.get("receiver", faults.ReceiverHooks()))
        self._thread = threading.Thread(target=_serve, args=(receiver, Link(theirs)), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.link.close()
        self._thread.join(20)


def _serve(receiver: Receiver, link: Link) -> None:
    try:
        while True:
            head, _, _ = link.receive()
            receiver.refit(link, head)
    except PeerGoneError:
        link.close()


def weights(seed: int) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return {
        "a": torch.randn(7, 5, generator=draw),
        "b": torch.randn(33, generator=draw),
        "c": torch.randn(1, generator=draw),
    }


def moved(held: dict[str, torch.Tensor], share: float, seed: int) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return {
        name: torch.where(torch.rand(weight.shape, generator=draw) < share, weight * 1.5 + 0.1, weight)
        for name, weight in held.items()
    }


KINDS = [
    {"transfer": "dense"},
    {"transfer": "packed", "bucket_bytes": 64},
    {"transfer": "delta", "full_every": 100},
    {"transfer": "delta", "full_every": 3, "encoding": "xor", "compress": "zlib"},
    {"transfer": "delta", "full_every": 100, "encoding": "xor", "dtype": "bfloat16"},
]


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_generation_holds_the_policys_bits_after_any_sequence_of_refits(
    kind: dict[str, Any], shares: list[float], seed: int
) -> None:
    config = Refit(**kind)
    ours, theirs = weights(seed), weights(seed + 1)
    pair = Pair(config, theirs)
    try:
        for number, share in enumerate(shares):
            ours = moved(ours, share, seed + number)
            report = pair.sender.refit(ours.items())
            assert report.metrics["weight_version"] == number + 1
            assert report.metrics["names_missing"] == report.metrics["names_extra"] == 0
            for name, weight in ours.items():
                dtype = DTYPES[config.dtype]
                assert torch.equal(bits_of(theirs[name], dtype), bits_of(weight, dtype)), name
    finally:
        pair.close()


def test_a_delta_sends_what_changed_and_the_metrics_say_how_much() -> None:
    ours = {"w": torch.zeros(1000)}
    pair = Pair(Refit(transfer="delta", full_every=100), {"w": torch.zeros(1000)})
    full = pair.sender.refit(ours.items())
    ours["w"][:10] = 0.5
    delta = pair.sender.refit(ours.items())
    pair.close()
    assert (full.metrics["bytes"], full.metrics["full_sync"]) == (4000, 1)
    assert (delta.metrics["bytes"], delta.metrics["full_sync"]) == (80, 0)
    assert delta.metrics["delta/changed_pct"] == 1.0
    assert delta.metrics["delta/max"] == 0.5
    assert {"encode", "transfer", "decode", "load"} <= delta.seconds.keys()


WRONG = [
    ({"receiver": faults.OldVersion(2)}, "version 2 was sent, and generation holds version 1"),
    ({"sender": faults.BucketLost(2)}, "not the same weights"),
    ({"sender": faults.BitFlipped(2)}, "a bucket's checksum is wrong"),
    ({"receiver": faults.AppliedTwice(2)}, "not the same weights"),
]


@pytest.mark.parametrize(("hooks", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_refit_that_went_wrong_is_refused(hooks: dict[str, Any], says: str) -> None:
    ours = weights(1)
    config = Refit(transfer="delta", full_every=100, encoding="xor", bucket_bytes=16)
    pair = Pair(config, weights(1), **hooks)
    pair.sender.refit(ours.items())
    with pytest.raises(RefitError, match=says):
        pair.sender.refit(moved(ours, 0.2, 3).items())
    pair.close()


def test_a_name_that_generation_does_not_have_or_does_not_get_is_counted() -> None:
    pair = Pair(Refit(verify_every=100), {"a": torch.zeros(2), "b": torch.zeros(2)})
    report: RefitReport = pair.sender.refit([("a", torch.ones(2)), ("z", torch.ones(2))])
    pair.close()
    assert (report.metrics["names_missing"], report.metrics["names_extra"]) == (1, 1)


@pytest.fixture(params=["environment-worker-killed", "environment-worker-hangs"])
def broken(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


@pytest.mark.real
def test_a_generation_process_that_is_gone_or_silent_ends_the_run(broken: str, tmp_path: Path) -> None:
    words = [
        f"output_dir={tmp_path}",
        "rollout.engine=process",
        "refit.timeout_s=2",
        f"fault.inject={broken}",
    ]
    done = bench("grpo", *SMALL, "loss.minibatch_size=4", *words)
    assert done.status == 1
    assert "Traceback" not in done.err
    expected = "is gone" if broken.endswith("killed") else "did not answer within 2 s"
    assert expected in done.err or "closed the connection" in done.err
