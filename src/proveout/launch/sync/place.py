"""The other machine: what it is called, and commands run there by ssh."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

import msgspec

from proveout.domain.errors import BlockedError, UsageError

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=15"
NO_CONNECTION = 255


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A directory on a host; ``ssh`` are the words that connect to it."""

    host: str
    directory: str
    ssh: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.host}:{self.directory}"

    def run(self, *commands: Sequence[str], given: bytes | None = None) -> str:
        """What commands there print, in one connection. Raises BlockedError where one fails, with its last line."""
        text = " && ".join(shlex.join(words) for words in commands)
        done = start([*self.ssh, "--", self.host, text], given=given)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
            what = "no connection" if done.returncode == NO_CONNECTION else "a command failed there"
            raise BlockedError(f"{what}: {lines[-1]}", where=self.host)
        return done.stdout.decode(errors="replace")

    def path(self, *parts: str) -> str:
        """A path below the directory."""
        return "/".join([self.directory.rstrip("/") or "/", *parts])


def place_of(word: str, ssh: str = "") -> Place:
    """``HOST:DIR`` as a place; ``ssh`` are other words to connect with. Raises UsageError for what is none."""
    host, colon, directory = word.partition(":")
    if not colon or not host or not directory:
        raise UsageError(f"{word!r} is no place", remedy="write HOST:DIR, as gpu1:/scratch/me")
    if host.startswith("-") or any(character.isspace() for character in host):
        raise UsageError(f"{host!r} is no name of a host")
    if not directory.startswith("/"):
        raise UsageError(f"{directory!r} is not absolute", remedy="write HOST:/DIR")
    try:
        words = shlex.split(ssh or SSH)
    except ValueError as error:
        raise UsageError(f"{ssh!r} is no command: {error}", where="--ssh") from error
    return Place(host=host, directory=directory, ssh=tuple(words))


def start(
    argv: Sequence[str], *, given: bytes | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of this machine to its end. Raises BlockedError where it is not here."""
    try:
        if given is None:
            return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, env=env, check=False)
        return subprocess.run(argv, input=given, capture_output=True, env=env, check=False)
    except OSError as error:
        raise BlockedError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
