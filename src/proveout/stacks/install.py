"""Makes, completes and removes the environment of a stack."""

from __future__ import annotations

import contextlib
import fcntl
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from proveout.assets.places import existing
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.files import write_atomic
from proveout.stacks import check
from proveout.stacks.lock import Loaded
from proveout.stacks.pip import Say, clock, make_venv, run_step
from proveout.stacks.place import Place, Record

SPARE = 1.25
CHECKOUTS_FILE = "proveout-checkouts.pth"


def install(place: Place, loaded: Loaded, interpreter: str, checkouts: dict[str, str], say: Say) -> Record:
    """Bring the environment to what its lock says; steps that ended before are not done again.

    ``checkouts`` (role -> path) stand in front of the wheels for every process of the environment.

    Raises:
        UsageError: a directory that proveout did not make, a checkout that the stack does not take.
        BlockedError: no room, no network, a package that is not there, an import that fails at the end.
    """
    _refuse(place, loaded, checkouts)
    with _held(place):
        record = _begin(place, loaded, interpreter, say)
        steps = loaded.lock.step
        for number, step in enumerate(steps, 1):
            if step.name in record.done:
                continue
            started = time.monotonic()
            if record.begun:
                _repair(place, say)
            record = _write(place, record, begun=step.name, verified="")
            more = " ..." if len(step.packages) > 4 else ""
            say(f"[{number}/{len(steps)}] {step.name}: {', '.join(step.packages[:4])}{more}")
            run_step(place, step)
            record = _write(place, record, begun="", done=(*record.done, step.name))
            say(f"[{number}/{len(steps)}] {step.name}: {clock(started)}")
        record = _write(place, record, checkouts=checkouts)
        _put_in_front(place, checkouts)
        say("importing, to verify")
        wrong = check.problems(check.ask(place, loaded, checkouts), loaded, checkouts)
        if wrong:
            raise BlockedError(
                f"stack {place.name} is not whole: {'; '.join(wrong)}",
                where=str(place.root),
                remedy=f"proveout stack remove {place.name}, then install it again",
            )
        return _write(place, record, verified=loaded.digest)


def remove(place: Place) -> None:
    """Delete the environment. Raises UsageError for a directory that proveout did not make."""
    if not place.ours:
        raise UsageError(f"no stack {place.name} is installed here", where=str(place.root))
    with _held(place):
        gone = place.root.with_name(f".{place.name}.{secrets.token_hex(4)}.removed")
        place.root.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def find_interpreter(loaded: Loaded, named: str | None) -> str:
    """The interpreter as named, else this one or one on PATH of a version that the stack was proven on.

    Raises UsageError where there is none, or the named one is of another version.
    """
    wanted = loaded.lock.python
    if named is None and f"{sys.version_info[0]}.{sys.version_info[1]}" in wanted:
        return sys.executable
    tried = [named] if named else [path for v in wanted if (path := shutil.which(f"python{v}"))]
    for path in tried:
        if _version(path) in wanted:
            return path
    raise UsageError(
        f"stack {loaded.name} was proven on Python {' and '.join(wanted)}"
        + (f", and {named} is {_version(named) or 'no interpreter'}" if named else ""),
        where="--python",
        remedy="name such an interpreter with --python",
    )


def _version(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"Python (\d+\.\d+)", done.stdout + done.stderr)
    return found[1] if found else ""


def _refuse(place: Place, loaded: Loaded, checkouts: dict[str, str]) -> None:
    if place.root.exists() and not place.ours and any(place.root.iterdir()):
        raise UsageError(
            "this directory is not empty and proveout did not make it",
            where=str(place.root),
            remedy="name another place with --dir",
        )
    for role, path in checkouts.items():
        if role not in loaded.lock.roles:
            taken = ", ".join(loaded.lock.roles) or "none"
            raise UsageError(
                f"stack {loaded.name} takes no {role} checkout; it takes: {taken}", where=f"--{role}"
            )
        if not check.roots_of({role: path}):
            raise UsageError(f"this is no {role} checkout", where=path)
    missing = [role for role in loaded.lock.needs if role not in checkouts]
    if missing:
        raise UsageError(
            f"stack {loaded.name} needs a checkout of {' and '.join(missing)}: no package of it is published",
            remedy=" ".join(f"--{role} CHECKOUT" for role in missing),
        )


def _begin(place: Place, loaded: Loaded, interpreter: str, say: Say) -> Record:
    record = place.record if place.ours else Record(name=place.name, digest=loaded.digest, python=interpreter)
    if record.digest != loaded.digest:
        record = Record(name=place.name, digest=loaded.digest, python=record.python, begun="another lock")
    if len(record.done) < len(loaded.lock.step):
        _need_room(place, loaded, say)
    elif check.ask(place, None, {}).damaged:
        record = msgspec.structs.replace(record, done=(), begun="files are missing", verified="")
    place.root.mkdir(parents=True, exist_ok=True)
    place.write(record)
    write_atomic(place.constraints, loaded.constraints)
    make_venv(place, record.python)
    return record


def _need_room(place: Place, loaded: Loaded, say: Say) -> None:
    megabytes = loaded.lock.megabytes
    free = shutil.disk_usage(existing(place.root)).free // 1_000_000
    say(
        f"stack {loaded.name}: about {megabytes / 1000:.1f} GB and {loaded.lock.minutes:g} minutes, "
        f"into {place.root} ({free / 1000:.1f} GB free)"
    )
    if not place.ours and free < megabytes * SPARE:
        raise BlockedError(
            f"{free} MB are free, stack {loaded.name} needs {megabytes} MB and room to unpack",
            where=str(existing(place.root)),
            remedy="free space there, or name another place with --dir",
        )


def _repair(place: Place, say: Say) -> None:
    """Forget distributions that an interrupted pip left in part, so that it installs them again."""
    for path, what in check.ask(place, None, {}).damaged.items():
        say(f"installing again: {Path(path).name} ({what})")
        shutil.rmtree(path)
    for site in place.root.glob("lib/python*/site-packages"):
        for leftover in site.glob("~*"):
            shutil.rmtree(leftover, ignore_errors=True)


def _put_in_front(place: Place, checkouts: dict[str, str]) -> None:
    """A path file that puts the checkouts before site-packages, and after what PYTHONPATH names."""
    for site in place.root.glob("lib/python*/site-packages"):
        paths = list(check.roots_of(checkouts).values())
        line = (
            f"import sys; sys.path[sys.path.index({str(site)!r}):sys.path.index({str(site)!r})] = {paths!r}\n"
            if paths
            else ""
        )
        write_atomic(site / CHECKOUTS_FILE, line)


def _write(place: Place, record: Record, **changes: object) -> Record:
    changed = msgspec.structs.replace(record, **changes)
    place.write(changed)
    return changed


@contextlib.contextmanager
def _held(place: Place) -> Iterator[None]:
    try:
        place.lock.parent.mkdir(parents=True, exist_ok=True)
        file = place.lock.open("w")
    except OSError as error:
        raise BlockedError(
            f"stacks cannot be kept here: {error.strerror}", where=str(place.lock.parent)
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BlockedError(
                f"another process works on stack {place.name}", where=str(place.root)
            ) from None
        yield
