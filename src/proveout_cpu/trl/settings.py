"""The settings of one run, from ``key=value`` words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from pathlib import Path

ALGORITHMS = ("sft", "grpo", "rloo", "dpo")


class SettingError(Exception):
    """A setting that is not known or has no such value."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One run of one trainer.

    ``data`` is a JSON-lines file ('' makes one-digit sums up); ``model`` a checkpoint directory ('' makes a
    tiny Qwen2 in ``output_dir``); ``warm_steps`` supervised updates before the trainer starts;
    ``lora_rank`` 0 trains all weights; ``save_every`` 0 saves nothing, and ``keep`` is where the last checkpoint
    goes; ``resume`` is a checkpoint of an earlier run; ``reward`` names a reward function; ``temperature`` is that
    of sampling; ``beta`` weighs the KL to the reference.
    """

    algorithm: str
    output_dir: str
    model: str = ""
    data: str = ""
    max_steps: int = 4
    lr: float = 1e-3
    batch: int = 32
    group: int = 8
    max_new_tokens: int = 8
    temperature: float = 1.0
    beta: float = 0.0
    lora_rank: int = 4
    warm_steps: int = 0
    save_every: int = 0
    keep: str = ""
    resume: str = ""
    reward: str = "digits"
    threads: int = 1
    seed: int = 0

    def write(self) -> None:
        """Write them as ``config.json`` into the output directory."""
        folder = Path(self.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")


def read(algorithm: str, words: Sequence[str]) -> Settings:
    """Settings of ``key=value`` words. Raises SettingError that names the word, and the nearest known key."""
    known = {field.name: field.type for field in fields(Settings) if field.name != "algorithm"}
    given: dict[str, str | int | float] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"
            raise SettingError(f"{word}: no setting {key!r}{hint}")
        kind = {"int": int, "float": float}.get(str(known[key]), str)
        try:
            given[key] = kind(value)
        except ValueError:
            raise SettingError(f"{word}: {value!r} is no {known[key]}") from None
    if not given.get("output_dir"):
        raise SettingError("output_dir must be given")
    if algorithm not in ALGORITHMS:
        raise SettingError(f"no algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    settings = Settings(algorithm=algorithm, **given)  # type: ignore[arg-type]
    _sensible(settings)
    return settings


def _sensible(settings: Settings) -> None:
    if settings.max_steps < 1 or settings.batch < 1:
        raise SettingError("max_steps and batch must be at least 1")
    if settings.algorithm in ("grpo", "rloo") and settings.batch % settings.group:
        raise SettingError(f"batch={settings.batch} is no multiple of group={settings.group}")
    if settings.model and not Path(settings.model, "config.json").is_file():
        raise SettingError(f"model={settings.model}: no config.json there")
    if settings.data and not Path(settings.data).is_file():
        raise SettingError(f"data={settings.data}: no such file")
