"""Counts calls of Slurm's programs: others of the same names, first on PATH, note the call and run the real one."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

PROGRAMS = ("sbatch", "scancel", "squeue", "sacct", "scontrol", "sinfo")


class Calls:
    """The calls so far, each with the second in which it was made."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "calls"
        self._log.touch()
        for name in PROGRAMS:
            real = shutil.which(name)
            if real is not None:
                shim = folder / name
                shim.write_text(f'#!/bin/sh\necho "{name} $(date +%s.%N)" >> {self._log}\nexec {real} "$@"\n')
                shim.chmod(0o755)

    def counted(self) -> Counter[str]:
        """How often each was called."""
        return Counter(line.split()[0] for line in self._log.read_text().splitlines())

    def times(self, name: str) -> list[float]:
        """When one of them was called, in seconds."""
        lines = [line.split() for line in self._log.read_text().splitlines()]
        return [float(when) for called, when in lines if called == name]


def counted_calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Put the counting programs first on PATH."""
    import os

    folder.mkdir(exist_ok=True)
    calls = Calls(folder)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return calls
