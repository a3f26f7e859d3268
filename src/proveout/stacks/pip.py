"""The steps of a lock, each as calls of pip in the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from proveout.domain.errors import BlockedError
from proveout.stacks.lock import LockStep
from proveout.stacks.place import Place

PLATFORMS = (*(f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 24, 17)), "manylinux2014_x86_64")
Say = Callable[[str], None]


def run_step(place: Place, step: LockStep) -> None:
    """Install one step's packages. Raises BlockedError with pip's own last error."""
    if step.kind == "unpack":
        _unpack(place, step)
        return
    words = (
        ["-c", str(place.constraints)] if step.kind == "pip" else ["--no-deps", "--ignore-requires-python"]
    )
    _pip(place, "install", *words, *step.packages)


def make_venv(place: Place, interpreter: str) -> None:
    """An empty environment of this interpreter; one that is there already is kept."""
    if not place.python.exists() or not (place.root / "pyvenv.cfg").is_file():
        _call(place, [interpreter, "-m", "venv", "--clear", str(place.root / "venv-new")])
        for item in (place.root / "venv-new").iterdir():
            target = place.root / item.name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            item.rename(target)
        (place.root / "venv-new").rmdir()


def _unpack(place: Place, step: LockStep) -> None:
    wheels = place.root / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    words = ["--no-deps", "--only-binary", ":all:", "--python-version", step.wheel_python]
    for platform in PLATFORMS:
        words += ["--platform", platform]
    _pip(place, "download", *words, "--dest", str(wheels), *step.packages)
    unpack = (
        "import compileall, sys, sysconfig, zipfile\n"
        "site = sysconfig.get_paths()['purelib']\n"
        "for wheel in sys.argv[1:]:\n"
        "    archive = zipfile.ZipFile(wheel)\n"
        "    archive.extractall(site)\n"
        "    for top in {name.partition('/')[0] for name in archive.namelist()}:\n"
        "        compileall.compile_dir(f'{site}/{top}', quiet=2)\n"
    )
    _call(place, [str(place.python), "-c", unpack, *map(str, sorted(wheels.glob("*.whl")))])
    shutil.rmtree(wheels)


def _pip(place: Place, command: str, *words: str) -> None:
    _call(place, [str(place.python), "-m", "pip", "--no-input", command, *words])


def _call(place: Place, argv: list[str]) -> None:
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONNOUSERSITE": "1"}
    with place.log.open("ab") as log:
        log.write(f"\n$ {' '.join(argv)}\n".encode())
        log.flush()
        start = log.tell()
        try:
            status = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=place.root, check=False
            ).returncode
        except OSError as error:
            raise BlockedError(f"does not start: {error.strerror}", where=argv[0]) from None
    if status:
        raise BlockedError(
            f"pip could not install: {_last_error(place.log, start) or f'status {status}'}",
            where=str(place.log),
            remedy="the same command goes on where it stopped",
        )


def _last_error(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    marked = [line for line in lines if line.startswith("ERROR:")]
    return (marked or [line for line in lines if line.strip()] or [""])[-1].removeprefix("ERROR: ")[:300]


def clock(start: float) -> str:
    """Seconds since ``start`` of the monotonic clock, as text."""
    return f"{time.monotonic() - start:.0f} s"
