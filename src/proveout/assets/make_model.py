"""Makes models with random weights, in a process of the bench program: only that one imports torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from proveout.assets import files, snapshot
from proveout.domain.errors import BlockedError, UsageError

USAGE_STATUS = 2


def tiny(target: Path, words: Sequence[str] = (), python: str = sys.executable) -> snapshot.Snapshot:
    """The bench loop's own tiny model as a checkpoint; ``words`` are its settings (``seed=1``, ``tiny.layers=2``)."""
    with files.new_directory(target) as place:
        _run([python, "-m", "proveout_bench", "init-model", str(place), *words])
    return _whole(target)


def family(
    name: str,
    target: Path,
    changes: Sequence[str] = (),
    *,
    seed: int = 0,
    warm: int = 0,
    python: str = sys.executable,
) -> snapshot.Snapshot:
    """A tiny model of a family that the real loops know, with a chat template.

    ``changes`` are ``key=value`` words for its configuration; ``warm`` steps of supervised training on one-digit
    sums keep rewards from being all zero.
    """
    with files.new_directory(target) as place:
        command = [python, "-m", "proveout_cpu.tiny", name, str(place)]
        command += ["--seed", str(seed), "--warm", str(warm)]
        _run([*command, *(word for change in changes for word in ("--set", change))])
    return _whole(target)


def dummy(
    config: Path, target: Path, changes: Sequence[str] = (), seed: int = 0, python: str = sys.executable
) -> snapshot.Snapshot:
    """Random weights and a tokenizer for a Hugging Face configuration.

    ``config`` is a config.json or a directory with one; its tokenizer is taken along where there is one.
    ``changes`` are ``key=value`` words for keys that the configuration has (``num_hidden_layers=2``).
    """
    file = config / "config.json" if config.is_dir() else config
    if not file.is_file():
        raise UsageError(
            "no such configuration", where=str(file), remedy="name a config.json or its directory"
        )
    with files.new_directory(target) as place:
        command = [python, "-m", "proveout_bench.dummy_model", str(file), str(place), "--seed", str(seed)]
        _run([*command, *(word for change in changes for word in ("--set", change))])
    return _whole(target)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BlockedError(f"does not start: {error.strerror}", where=command[0]) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        said = lines[-1].removeprefix("Error: ")[:400]
        if done.returncode == USAGE_STATUS:
            raise UsageError(said, remedy="correct the configuration or the settings")
        raise BlockedError(
            said,
            where=command[0],
            remedy="python -m pip install 'proveout[bench]' for that interpreter if a package is missing",
        )


def _whole(target: Path) -> snapshot.Snapshot:
    found = snapshot.inspect(str(target), target)
    if not found.whole:
        raise BlockedError("; ".join(problem.what for problem in found.problems), where=str(target))
    return found
