"""One long run, shared by the tests that only read it."""

from __future__ import annotations

import pytest
from tests.bench.runs import Finished, grpo


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The default task for 60 steps: what level 6 runs."""
    return grpo(tmp_path_factory.mktemp("learned"), "max_steps=60")
