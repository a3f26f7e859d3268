"""Slurm's programs, called with argument lists; where what they say is an error, it is one here."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from proveout.domain.errors import BlockedError

SECONDS = 60.0
UNREACHABLE = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Zero Bytes were transmitted",
    "Resource temporarily unavailable",
    "temporarily unable to accept job",
    "Transport endpoint is not connected",
    "Slurm backup controller in standby mode",
)


class UnreachableError(Exception):
    """Slurm does not answer now; what it would say is not known."""


def slurm(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None, send: str = ""
) -> str:
    """Standard output of one of Slurm's programs.

    Raises:
        UnreachableError: the controller does not answer, or not in time.
        BlockedError: the program is not installed, or refuses; with its own words.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=send,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=SECONDS,
            env=None if env is None else dict(env),
            cwd=cwd,
        )
    except FileNotFoundError as error:
        raise BlockedError(
            f"{argv[0]} is not installed here",
            remedy="run proveout on a login node of the cluster, or choose another --scheduler",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(f"{argv[0]} gave no answer in {SECONDS:.0f} s") from error
    except OSError as error:
        raise BlockedError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
    if done.returncode == 0:
        return done.stdout
    said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
    if any(sign in said for sign in UNREACHABLE):
        raise UnreachableError(said)
    raise BlockedError(f"{argv[0]}: {said}", remedy="see the options under [launch.slurm] of proveout.toml")
