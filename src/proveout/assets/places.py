"""Where the loops keep their files, by the environment's variables, as the frameworks resolve them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def home(env: Mapping[str, str]) -> Path:
    """The home directory of the run's environment."""
    return Path(env.get("HOME") or "~").expanduser()


def _under_home(env: Mapping[str, str], value: str) -> Path:
    return home(env) / value[2:] if value.startswith("~/") else Path(value)


def hf_home(env: Mapping[str, str]) -> Path:
    """HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface (huggingface_hub, constants.py)."""
    if value := env.get("HF_HOME"):
        return _under_home(env, value)
    cache = env.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else home(env) / ".cache") / "huggingface"


def hf_hub(env: Mapping[str, str]) -> Path:
    """The directory of downloaded snapshots: HF_HUB_CACHE, else the older name, else under HF_HOME."""
    value = env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE")
    return _under_home(env, value) if value else hf_home(env) / "hub"


def conversion_cache(env: Mapping[str, str]) -> Path:
    """Where NeMo-RL keeps checkpoints that it converted from HF: its own variable, HF_HOME, the default."""
    if value := env.get("NRL_MEGATRON_CHECKPOINT_DIR"):
        return Path(value)
    if value := env.get("HF_HOME"):
        return Path(value) / "nemo_rl"
    return home(env) / ".cache" / "huggingface" / "nemo_rl"


def ray_temp(env: Mapping[str, str]) -> Path:
    """Ray's session directory: RAY_TMPDIR/ray, else /tmp/ray."""
    return Path(env.get("RAY_TMPDIR") or "/tmp") / "ray"  # noqa: S108 - Ray's own default


def existing(path: Path) -> Path:
    """``path`` or the nearest directory above it that exists."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
