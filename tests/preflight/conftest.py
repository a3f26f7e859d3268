"""What the preflight tests share: a context, and real small machines to point it at."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proveout.domain.finding import Finding
from proveout.domain.preflight import PreflightContext
from proveout.preflight import examine

Find = Callable[..., tuple[Finding, ...]]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A small environment of its own: nothing of the machine's but what starts programs."""
    home = tmp_path / "home"
    home.mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


@pytest.fixture
def find(tmp_path: Path, env: dict[str, str]) -> Find:
    """Runs one check by its id: ``find("disk", loops=("verl",), env={...})``."""

    def run(check: str, **fields: object) -> tuple[Finding, ...]:
        fields = {"run_dir": str(tmp_path / "run"), "loops": ("bench",), **fields}
        fields["env"] = {**env, **fields.get("env", {})}  # type: ignore[dict-item]
        (result,) = examine(PreflightContext(**fields), only=[check])  # type: ignore[arg-type]
        return result.findings

    return run


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A real virtual environment with nothing installed."""
    return make_venv(tmp_path_factory.mktemp("venvs") / "bare")


def make_venv(place: Path) -> str:
    """The interpreter of a new, empty virtual environment."""
    venv.create(place, with_pip=False, symlinks=True)
    return str(place / "bin" / "python")


def distribution(place: Path, name: str, version: str) -> None:
    """Metadata of a distribution, as an installer leaves it; a stand-in without code."""
    info = place / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 KiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def proveout(
    *words: str, env: dict[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess[str]:
    """``proveout WORDS`` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "proveout", *words],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )
