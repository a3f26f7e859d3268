"""Is an environment what its lock says? Asked of its own interpreter."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from proveout.domain.checkout import import_roots
from proveout.domain.errors import BlockedError
from proveout.stacks.lock import Loaded
from proveout.stacks.place import Place
from proveout.stacks.shipped import platform_path

SECONDS = 900.0
QUIET = {"TORCHDYNAMO_DISABLE": "1", "TORCH_COMPILE_DISABLE": "1", "HF_HUB_OFFLINE": "1"}


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """One module as the environment imported it: its file, or the error."""

    module: str
    file: str
    error: str
    seconds: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment's interpreter said of itself."""

    python: str
    damaged: dict[str, str]
    versions: dict[str, str]
    imports: tuple[Import, ...] = ()


def ask(place: Place, loaded: Loaded | None, checkouts: dict[str, str]) -> Answer:
    """The environment's own answer; the lock's modules are imported, from ``checkouts`` first; none without a lock.

    Raises BlockedError where its interpreter does not start or gives no answer.
    """
    verify = loaded.lock.verify if loaded else None
    modules = list(verify.modules) if verify else []
    for role, more in verify.with_checkouts.items() if verify else ():
        modules += more if role in checkouts else ()
    path = list(roots_of(checkouts).values())
    if verify and verify.platform:
        path.append(str(platform_path(place.root.parent)))
    question = {"path": path, "setup": verify.platform if verify else "", "modules": modules}
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")} | QUIET
    with as_file(files(__package__) / "probe.py") as script:
        try:
            done = subprocess.run(
                [str(place.python), str(script)],
                input=json.dumps(question),
                capture_output=True,
                text=True,
                cwd=place.root,
                env=env,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BlockedError(f"the interpreter of stack {place.name} does not answer: {error}") from None
    try:
        return msgspec.json.decode(done.stdout.rstrip().rpartition("\n")[2], type=Answer)
    except msgspec.MsgspecError:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise BlockedError(
            f"the interpreter of stack {place.name} gave no answer: {last[:300]}", where=str(place.python)
        ) from None


def problems(answer: Answer, loaded: Loaded, checkouts: dict[str, str]) -> tuple[str, ...]:
    """What is not as the lock says, each as a sentence; nothing for a whole environment."""
    found = []
    there = {canonicalize_name(name): version for name, version in answer.versions.items()}
    short = ".".join(answer.python.split(".")[:2])
    if short not in loaded.lock.python:
        found.append(f"Python {answer.python}, proven on {' and '.join(loaded.lock.python)}")
    for name, wanted in loaded.pins.items():
        has = there.get(canonicalize_name(name))
        if has is not None and has.partition("+")[0] != wanted.partition("+")[0]:
            found.append(f"{name} is {has}, the lock says {wanted}")
    named = (word for step in loaded.lock.step for word in step.packages)
    for word in named:
        name = word.partition("==")[0].partition("[")[0]
        if canonicalize_name(name) not in there:
            found.append(f"{name} is not installed")
    found += [f"{Path(place).name}: {what}" for place, what in answer.damaged.items()]
    for item in answer.imports:
        if item.error:
            found.append(f"import {item.module}: {item.error}")
        else:
            found += _elsewhere(item, checkouts)
    return tuple(found)


def _elsewhere(item: Import, checkouts: dict[str, str]) -> list[str]:
    for module, root in roots_of(checkouts).items():
        inside = item.module == module or item.module.startswith(f"{module}.")
        if inside and not Path(item.file).resolve().is_relative_to(Path(root).resolve()):
            return [f"{item.module} came from {item.file or 'nowhere'}, not from the checkout {root}"]
    return []


def roots_of(checkouts: dict[str, str]) -> dict[str, str]:
    """Module -> import root of the checkouts that have their files (a Bridge's submodule may be empty)."""
    loop = next((role for role in ("nemo-rl", "verl") if role in checkouts), "")
    roots = import_roots(checkouts, loop)
    return {module: root for module, root in roots.items() if Path(root, *module.split(".")).is_dir()}
