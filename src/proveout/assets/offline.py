"""The variables that keep Hugging Face libraries off the network, read as those libraries read them."""

from __future__ import annotations

from collections.abc import Mapping

TRUE = frozenset({"1", "on", "yes", "true"})
VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")


def set_in(env: Mapping[str, str]) -> dict[str, bool]:
    """Those of the variables that are set, and whether each of them says offline."""
    return {name: env[name].strip().lower() in TRUE for name in VARIABLES if name in env}


def says(env: Mapping[str, str]) -> bool:
    """Whether the hub must not be asked."""
    return any(set_in(env).get(name, False) for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
