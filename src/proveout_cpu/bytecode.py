"""Where compiled modules of checkouts are kept: never beside their sources.

``PYTHONPYCACHEPREFIX`` would do that too, but for installed packages as well, which pip has compiled already.
"""

from __future__ import annotations

import importlib._bootstrap_external as loaders
import os
import sys
from pathlib import Path
from typing import Any

VARIABLE = "PROVEOUT_CPU_BYTECODE"


def keep_elsewhere() -> None:
    """From now on compiled modules of anything outside this Python and its environment go below the directory that
    PROVEOUT_CPU_BYTECODE names; nothing happens without it."""
    place, plain = os.environ.get(VARIABLE, ""), loaders.cache_from_source
    if not place or getattr(plain, "place", None) == place:
        return
    installed = tuple(f"{prefix}{os.sep}" for prefix in {sys.prefix, sys.base_prefix})

    def cache_from_source(path: Any, *args: Any, **named: Any) -> str:
        kept = str(plain(path, *args, **named))
        absolute = str(Path(kept).absolute())
        return kept if absolute.startswith(installed) else place + absolute

    cache_from_source.place = place  # type: ignore[attr-defined]
    loaders.cache_from_source = cache_from_source
