"""Tests that break Slurm keep those that only use it waiting, whichever process runs them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def alone_with_slurm() -> None:
    """Asked for by a test that stops a part of Slurm."""


@pytest.fixture(autouse=True)
def turns(request: pytest.FixtureRequest) -> Iterator[None]:
    """Share Slurm with other tests, or have it alone."""
    conf = os.environ.get("SLURM_CONF")
    if conf is None or not Path(conf).exists():
        yield
        return
    alone = "alone_with_slurm" in request.fixturenames
    with Path(conf).with_name("turns").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
