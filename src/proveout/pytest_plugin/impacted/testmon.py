"""Working together with pytest-testmon: it judges by coverage, this analysis adds what coverage cannot see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def _selector(config: pytest.Config) -> Any | None:
    return config.pluginmanager.get_plugin("TestmonSelect")


def selecting(config: pytest.Config) -> bool:
    """Whether testmon was asked (``--testmon``) to leave tests out of this session."""
    settings = getattr(config, "testmon_config", None)
    return _selector(config) is not None and bool(getattr(settings, "select", False))


def take_back(config: pytest.Config, must_run: Callable[[str], bool]) -> None:
    """Make testmon run the tests (node ids) and collect the files that ``must_run`` names.

    Raises pytest.UsageError when the installed testmon does not keep its decision where versions 2.1 and 2.2 do.
    """
    chosen = _selector(config)
    for name in ("deselected_files", "deselected_tests"):
        if not isinstance(getattr(chosen, name, None), list):
            raise pytest.UsageError(
                "this version of pytest-testmon cannot be combined with --impacted: use --impacted alone"
            )
    assert chosen is not None  # noqa: S101
    chosen.deselected_files = [file for file in chosen.deselected_files if not must_run(file)]
    chosen.deselected_tests = [test for test in chosen.deselected_tests if not must_run(test)]
