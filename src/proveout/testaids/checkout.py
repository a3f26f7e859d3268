"""The checkout whose tests are run."""

from __future__ import annotations

import os
from pathlib import Path

from proveout.domain.errors import UsageError

VARIABLE = "NEMO_RL_REPO"


def find_checkout(given: Path | None) -> Path:
    """The root of the checkout: as given, else by ``NEMO_RL_REPO``, else the nearest above this directory.

    A checkout has ``tests/unit``. Raises UsageError where there is none.
    """
    named = given or (Path(value) if (value := os.environ.get(VARIABLE)) else None)
    if named is not None:
        return _checked(named.resolve())
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / "tests" / "unit").is_dir():
            return directory
    raise UsageError(
        "no checkout with tests/unit here or above",
        where=str(here),
        remedy=f"name it: --repo DIRECTORY, or set {VARIABLE}",
    )


def _checked(root: Path) -> Path:
    if not (root / "tests" / "unit").is_dir():
        raise UsageError("no tests/unit in it, so it is no checkout with unit tests", where=str(root))
    return root
