"""What of this machine a container must see, at the same place inside as outside.

The run directory, the checkouts and the caches are writable, as loops write into all three. What the command names
besides (a model directory, entries of its import path, an interpreter of this machine with its environment) can only
be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from proveout.domain.errors import UsageError
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command
from proveout.launch.files import checkouts_of, run_directory

CACHES = (
    "HF_HOME",
    "HF_DATASETS_CACHE",
    "HF_HUB_CACHE",
    "NRL_MEGATRON_CHECKPOINT_DIR",
    "UV_CACHE_DIR",
    "TORCH_HOME",
    "TRITON_CACHE_DIR",
)
"""Variables that name a cache."""
_OF_THE_IMAGE = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib64", "opt", "proc", "run", "sbin", "sys", "usr", "var"}
)
_TOO_MUCH = frozenset({"/", "/home", "/mnt", "/root", "/tmp"})  # noqa: S108 - these are never mounted whole


class Mounts:
    """Places of the host and where they stand inside; one that lies in another is left out."""

    def __init__(self, *, here: bool) -> None:
        """``here``: the container starts on this machine, so that what is not here cannot be mounted."""
        self._here = here
        self._written: dict[str, str] = {}
        self._read: dict[str, str] = {}
        self._asked: list[str] = []

    def write(self, path: Path) -> None:
        """Mount ``path`` where it is, writable, if it exists and is no directory that holds everything."""
        if path.exists() and not _too_much(path):
            self._written[str(path)] = str(path)

    def read(self, path: Path) -> None:
        """Mount ``path`` where it is, readable, if it exists."""
        if path.exists():
            self._read[str(path)] = str(path)

    def ask(self, word: str) -> None:
        """Mount as the user wrote it: ``HOST[:CONTAINER[:OPTIONS]]``. Raises UsageError for what is not here."""
        host, colon, rest = word.partition(":")
        here = Path(host).expanduser().absolute()
        if not here.exists() and self._here:
            raise UsageError(f"{host} is not here, so it cannot be mounted", where="--mount")
        self._asked.append(f"{here}:{rest}" if colon else f"{here}:{here}")

    def words(self) -> tuple[str, ...]:
        """``HOST:CONTAINER[:ro]`` for each, the user's last."""
        written = [path for path in self._written if not _inside(path, self._written)]
        read = [
            path for path in self._read if not _inside(path, (*self._read, *written)) and path not in written
        ]
        own = [*(f"{path}:{path}" for path in written), *(f"{path}:{path}:ro" for path in read)]
        taken = {word.split(":")[1] for word in self._asked}
        return (*(word for word in own if word.split(":")[1] not in taken), *self._asked)


def mounts_for(
    command: Command, files: AttemptLayout, env: Mapping[str, str], asked: Iterable[str], *, here: bool = True
) -> tuple[str, ...]:
    """All mounts of one attempt; ``env`` is what is handed into the container, ``here`` whether it starts here."""
    mounts = Mounts(here=here)
    mounts.write(run_directory(files))
    mounts.write(Path(command.cwd))
    for checkout in checkouts_of(files):
        mounts.write(Path(checkout.path))
    for name in CACHES:
        if env.get(name, "").startswith("/"):
            mounts.write(Path(env[name]))
    for path in _named(command, env):
        mounts.read(path)
    for path in interpreter(command.argv[0]):
        mounts.read(path)
    for word in asked:
        mounts.ask(word)
    return mounts.words()


def interpreter(program: str) -> Iterator[Path]:
    """What an interpreter of this machine that stands in a virtual environment needs: the environment, the
    installation below it, and the source trees that are installed into it as editable.
    """
    environment = Path(program).parent.parent
    settings = environment / "pyvenv.cfg"
    if not Path(program).is_absolute() or not settings.is_file():
        return
    yield environment
    for line in settings.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            base = Path(value.strip()).parent
            if base not in (Path("/usr"), Path("/")):
                yield base
    for added in sorted(environment.glob("lib/python*/site-packages/*.pth")):
        for line in added.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("/") and Path(line).is_dir():
                yield Path(line)


def _named(command: Command, env: Mapping[str, str]) -> Iterator[Path]:
    """Places of this machine that the command's words and variables name, but for those that an image has too."""
    words = [*command.argv, *command.env.values()]
    words += env.get("PYTHONPATH", "").split(os.pathsep)
    for word in words:
        value = word.rpartition("=")[2] if "=" in word else word
        for part in value.split(os.pathsep):
            if part.startswith("/") and "\n" not in part and not _of_the_image(part):
                path = Path(os.path.normpath(part))
                if not _too_much(path) and _exists(path):
                    yield path


def _of_the_image(path: str) -> bool:
    return path.lstrip("/").partition("/")[0] in _OF_THE_IMAGE


def _too_much(path: Path) -> bool:
    return str(path) in _TOO_MUCH or path == Path.home()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _inside(path: str, others: Iterable[str]) -> bool:
    return any(path != other and Path(path).is_relative_to(other) for other in others)
