"""The container engine of this machine, and which image a reference names here."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import msgspec

from proveout.domain.errors import BlockedError, UsageError

ENGINES = ("docker", "podman")
INSPECT_SECONDS = 60.0


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is here: ``id`` names its content; ``digests`` are what registries call it."""

    reference: str
    id: str
    digests: tuple[str, ...] = ()


@lru_cache
def engine_program(named: str) -> str:
    """The path of the engine: that which is named, else the first that answers (a client may lack its daemon).

    Raises BlockedError where there is none.
    """
    found = [path for name in ((named,) if named else ENGINES) if (path := shutil.which(name))]
    if len(found) > 1:
        found = [path for path in found if not _ask((path, "info")).returncode] or found
    if found:
        return found[0]
    raise BlockedError(
        f"no container engine: {named or ' and '.join(ENGINES)} is not here",
        remedy="install it, or name another with --launch container.engine=PATH",
    )


def is_podman(program: str) -> bool:
    """Whether an engine is podman, also where it is called docker (Debian's podman-docker does that)."""
    return _kind(program) == "podman"


@lru_cache
def _kind(program: str) -> str:
    if "podman" in Path(program).resolve().name:
        return "podman"
    done = _ask((program, "--version"))
    return "podman" if b"podman" in done.stdout.lower() else "docker"


@lru_cache
def image_here(program: str, reference: str, pull: str) -> Image:
    """The image of this reference; asked once, so that all attempts of a process run the same.

    Raises:
        UsageError: no image is named.
        BlockedError: it is not here, or the engine does not answer.
    """
    if not reference:
        raise UsageError(
            "the container launcher needs an image", remedy="give --image NAME, or image in [launch]"
        )
    done = _ask((program, "image", "inspect", reference))
    if done.returncode and pull == "missing":
        pulled = subprocess.run((program, "pull", reference), stdout=subprocess.DEVNULL, check=False)
        if pulled.returncode:
            raise BlockedError(
                f"image {reference} is not here and could not be pulled (status {pulled.returncode})",
                where=program,
                remedy="check its name and the login of its registry",
            )
        done = _ask((program, "image", "inspect", reference))
    if done.returncode:
        answering = _ask((program, "info"))
        if answering.returncode:
            raise BlockedError(
                f"the container engine does not answer: {_last_line(answering)}",
                where=program,
                remedy="start its service, or name another with --launch container.engine=PATH",
            )
        raise BlockedError(
            f"image {reference} is not here: {_last_line(done)}",
            where=program,
            remedy=f"fetch it ({Path(program).name} pull {reference}), or set container.pull=missing",
        )
    return _read(done.stdout, program, reference)


def _read(answer: bytes, program: str, reference: str) -> Image:
    try:
        (found, *_) = json.loads(answer)
        digests = [*(found.get("RepoDigests") or ()), found.get("Digest") or ""]
        return Image(reference=reference, id=str(found["Id"]), digests=tuple(filter(None, digests)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BlockedError(f"what it says of image {reference} cannot be read", where=program) from error


def _last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]


def _ask(argv: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=INSPECT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise BlockedError(f"no answer within {INSPECT_SECONDS:g} s", where=" ".join(argv)) from None
    except OSError as error:
        raise BlockedError(f"does not start: {error.strerror or error}", where=argv[0]) from None
