"""Lock files: which versions make a stack, in which order and how pip must install them."""

from __future__ import annotations

import hashlib
import tomllib
from importlib.resources import files
from typing import Literal

import msgspec

from proveout.domain.errors import UsageError, nearest

Kind = Literal["pip", "bare", "unpack"]


class LockStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of pip.

    ``kind`` pip resolves ``packages`` under the stack's constraints; ``bare`` installs exactly these, without
    dependencies and whatever Python they declare; ``unpack`` takes the wheel made for ``wheel_python`` and
    unpacks it, which is right only for packages whose compiled parts are optional.
    """

    name: str
    packages: tuple[str, ...]
    kind: Kind = "pip"
    wheel_python: str = ""


class Verify(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must import in the environment itself.

    ``platform`` is a module of proveout_cpu whose ``install()`` comes first; ``with_checkouts`` are imported
    only where these roles are given (NeMo-RL has no wheel).
    """

    modules: tuple[str, ...]
    platform: str = ""
    with_checkouts: dict[str, tuple[str, ...]] = {}


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One stack. ``megabytes`` on disk and ``minutes`` of installing were measured; ``python`` are the versions
    of the interpreter that it was proven on; ``roles`` are the checkouts that may stand in front of its wheels.
    """

    about: str
    python: tuple[str, ...]
    megabytes: int
    minutes: float
    step: tuple[LockStep, ...]
    verify: Verify
    roles: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A lock with its name, its constraints as text, and a digest over both."""

    name: str
    lock: Lock
    constraints: str
    digest: str

    @property
    def pins(self) -> dict[str, str]:
        """Distribution -> version, of the constraints and of every exactly named package."""
        lines = [*self.constraints.splitlines(), *(word for step in self.lock.step for word in step.packages)]
        pairs = (line.partition("==") for line in lines if "==" in line and not line.startswith("#"))
        return {name.partition("[")[0].strip(): version.strip() for name, _, version in pairs}


def names() -> tuple[str, ...]:
    """The stacks that have a lock file."""
    place = files(__package__) / "locks"
    return tuple(sorted(item.name.removesuffix(".toml") for item in place.iterdir() if _is_lock(item.name)))


def load(name: str) -> Loaded:
    """The lock of a stack. Raises UsageError that names the nearest known stack."""
    known = names()
    if name not in known:
        raise UsageError(
            f"no stack {name!r}{nearest(name, known)}", remedy=f"known stacks: {', '.join(known)}"
        )
    place = files(__package__) / "locks"
    text = (place / f"{name}.toml").read_text()
    pinned = place / f"{name}.txt"
    constraints = pinned.read_text() if pinned.is_file() else ""
    lock = msgspec.convert(tomllib.loads(text), Lock)
    digest = hashlib.sha256(f"{text}\0{constraints}".encode()).hexdigest()
    return Loaded(name=name, lock=lock, constraints=constraints, digest=digest)


def _is_lock(name: str) -> bool:
    return name.endswith(".toml")
