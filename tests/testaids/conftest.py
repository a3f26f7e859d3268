"""A checkout with real tests, and programs of the names that the commands look for."""

from __future__ import annotations

import os
import stat
import textwrap
from pathlib import Path

import pytest


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "checkout"
    (root / "tests" / "unit").mkdir(parents=True)
    for name in ("NEMO_RL_REPO", "CUDA_VISIBLE_DEVICES", "PYTHONPATH_OUTER", "CONTAINER", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return root


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a shell script of this name first on the PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def make(name: str, script: str) -> Path:
        path = programs / name
        path.write_text("#!/bin/bash\n" + textwrap.dedent(script))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make
