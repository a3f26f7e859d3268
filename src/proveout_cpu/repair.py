"""What a repair is, and the record of those that were applied in this process."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

BLOCKED = "proveout_cpu: this version is not known"
LIMITATIONS = (
    "CPU instead of CUDA: no GPU kernel, CUDA graph, stream or device memory was exercised",
    "gloo instead of NCCL",
    "no Transformer Engine: Megatron's local layers ran instead of the fused ones",
)


class UnknownVersionError(RuntimeError):
    """An upstream file is not what a repair expects, so that nobody knows whether the repair is right.

    Not an ImportError: no guarded import may swallow it. The run is Blocked.
    """


@dataclass(frozen=True)
class Repair:
    """``function(module)`` is called once, right after ``module`` (a dotted name) was imported.

    ``upstream`` names the file, ``why`` what in it needs a GPU.
    """

    name: str
    module: str
    upstream: str
    why: str
    function: Callable[[ModuleType], None]


@dataclass(frozen=True)
class Applied:
    """A repair that was made in this process."""

    name: str
    upstream: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} ({self.upstream}): {self.why}"


_APPLIED: dict[str, Applied] = {}


def repair(module: str, upstream: str, why: str) -> Callable[[Callable[[ModuleType], None]], Repair]:
    """Make a repair of the decorated function, under its name."""

    def make(function: Callable[[ModuleType], None]) -> Repair:
        return Repair(function.__name__, module, upstream, why, function)

    return make


def run(item: Repair, module: ModuleType) -> None:
    """Apply ``item`` to the imported ``module``. Raises UnknownVersionError, and says so on stderr too.

    The second way is for stacks that turn any exception of an import into something else.
    """
    try:
        item.function(module)
    except UnknownVersionError as error:
        message = f"{BLOCKED}: {item.name}: {item.upstream}: {error} (from {module.__file__})"
        print(message, file=sys.stderr, flush=True)
        raise UnknownVersionError(message) from None
    record(item.name, item.upstream, item.why)


def record(name: str, upstream: str, why: str) -> None:
    """Note that a repair was made."""
    _APPLIED.setdefault(name, Applied(name, upstream, why))


def applied() -> tuple[Applied, ...]:
    """The repairs that were made in this process so far, in order."""
    return tuple(_APPLIED.values())


def limitations() -> tuple[str, ...]:
    """What a report must say of a run on this platform; empty where nothing was repaired."""
    return LIMITATIONS if _APPLIED else ()


def expect(holder: Any, path: str, *words: str, parameters: Iterable[str] = ()) -> Any:
    """The attribute at dotted ``path`` of ``holder``, with all of ``words`` in its source and, as its first
    parameters, ``parameters``.

    Raises UnknownVersionError that says what is missing.
    """
    found = holder
    for part in path.split("."):
        if not hasattr(found, part):
            raise UnknownVersionError(f"no {path}")
        found = getattr(found, part)
    if words:
        try:
            source = inspect.getsource(found)
        except (OSError, TypeError):
            raise UnknownVersionError(f"{path} has no source to check") from None
        for word in words:
            if word not in source:
                raise UnknownVersionError(f"{path} has no {word!r}")
    asked = list(parameters)
    if asked and list(inspect.signature(found).parameters)[: len(asked)] != asked:
        raise UnknownVersionError(f"{path} does not take {', '.join(asked)}")
    return found


def rebind(module: ModuleType, name: str, new: Any) -> None:
    """Set ``module.name``, and the same name in every module of that package that has taken a copy of the old one."""
    old, package = getattr(module, name), module.__name__.partition(".")[0] + "."
    setattr(module, name, new)
    for key, other in list(sys.modules.items()):
        if key.startswith(package) and getattr(other, "__dict__", {}).get(name) is old:
            setattr(other, name, new)
