"""The pytest options of impacted selection: ``--impacted``, ``--base``, ``--impacted-explain``, ``--impacted-rebuild``.

Imports nothing heavy until one of the options is given.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from proveout.pytest_plugin.impacted.selector import Selector

_NAME = "proveout-impacted"
_DEST = {"--base": "proveout_impacted_base", "--impacted-explain": "proveout_impacted_explain"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options. ``--proveout-impacted`` is the same as ``--impacted``, which pytest-impacted has too."""
    group = parser.getgroup("proveout impacted", "tests that a change can reach")
    meaning = "run only tests that changed files can reach"
    add: dict[str, Any] = {"action": "store_true", "dest": "proveout_impacted", "help": meaning}
    try:
        group.addoption("--impacted", "--proveout-impacted", **add)
    except ValueError:
        group.addoption("--proveout-impacted", **add)
    for name, metavar, meaning in (
        ("--base", "REV", "with --impacted: changes since this commit, not since the last pass"),
        ("--impacted-explain", "TEST", "print why a test would run or not, and stop"),
    ):
        with contextlib.suppress(ValueError):
            group.addoption(name, metavar=metavar, dest=_DEST[name], default=None, help=meaning)
    group.addoption(
        "--impacted-rebuild",
        action="store_true",
        help="forget outcomes and the dependency graph, then start afresh",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Answer ``--impacted-explain`` without collecting anything."""
    test = config.getoption(_DEST["--impacted-explain"], None)
    if test is None:
        return None
    from proveout.pytest_plugin.impacted.explain import explain

    with _usage_errors():
        print(explain(Path(config.rootpath), test, base=config.getoption(_DEST["--base"], None)))
    return 0


@contextlib.contextmanager
def _usage_errors() -> Generator[None, None, None]:
    from proveout.domain.errors import ProveoutError

    try:
        yield
    except ProveoutError as error:
        raise pytest.UsageError(*filter(None, (str(error), error.remedy))) from None


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decide before anything is collected; workers of xdist are handed the decision."""
    if config.getoption(_DEST["--impacted-explain"], None) is not None:
        return
    if config.getoption(_DEST["--base"], None) is not None and not config.getoption("proveout_impacted"):
        raise pytest.UsageError("--base needs --impacted: alone it would select nothing")
    if not (config.getoption("proveout_impacted") or config.getoption("impacted_rebuild")):
        return
    from proveout.pytest_plugin.impacted import selector

    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    with _usage_errors():
        if worker is None and config.getoption("impacted_rebuild"):
            selector.rebuild(Path(config.rootpath))
        if not config.getoption("proveout_impacted"):
            return
        made: Selector
        if worker is not None and _NAME in worker:
            made = selector.in_worker(config, worker[_NAME])
        else:
            made = selector.in_controller(config)
    config.pluginmanager.register(made, _NAME)
