"""The hooks by which declared marks choose what pytest runs. Without declared marks nothing is registered."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from proveout.pytest_plugin.marks.declared import Mark

_MARKS = pytest.StashKey["tuple[Mark, ...]"]()
_TABLE = "tool.proveout.marks"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "proveout_marks",
        "marks that choose what runs: names of presets (nemo-rl) or TOML files with [marks.NAME] tables",
        type="args",
        default=[],
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    """Take the flags of declared marks off the command line, unless the project's conftest owns them.

    They are not registered as options, because a conftest that is loaded later may register the same names
    and would fail; they are set where such a conftest finds them.
    """
    result = yield
    named = early_config.getini("proveout_marks")
    if not named and not _mentions_marks(early_config):
        return result
    marks = early_config.stash[_MARKS] = _declared(early_config, named)
    for mark in (mark for mark in marks if mark.flag):
        if mark.flag not in parser.parse_known_and_unknown_args([mark.flag])[1]:
            continue
        if {"-h", "--help"} & set(args):
            parser.getgroup("proveout").addoption(mark.flag, action="store_true", help=mark.about)
        elif mark.flag in args:
            args[:] = [word for word in args if word != mark.flag]
            setattr(early_config.option, mark.dest, True)
    return result


def _mentions_marks(config: pytest.Config) -> bool:
    project = config.rootpath / "pyproject.toml"
    try:
        return _TABLE in project.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _declared(config: pytest.Config, named: list[str]) -> tuple[Mark, ...]:
    from proveout.domain.errors import UsageError
    from proveout.pytest_plugin.marks.declared import declared_marks

    try:
        return declared_marks(config.rootpath, named)
    except UsageError as error:
        raise pytest.UsageError("\n".join(part for part in (str(error), error.remedy) if part)) from error


def pytest_configure(config: pytest.Config) -> None:
    marks = config.stash.get(_MARKS, ())
    if not marks:
        return
    from proveout.pytest_plugin.marks.selection import MarkSelection

    config.pluginmanager.register(MarkSelection.of(config, marks), "proveout-marks")
