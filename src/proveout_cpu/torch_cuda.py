"""``torch.cuda`` on a machine without CUDA: what a GPU program asks of it, and "cuda" devices that mean the CPU.

``facade`` answers the calls of ``torch.cuda``. Devices are mapped in one of three ways, from narrow to wide:
``on_cpu`` for a block, ``enter_thread`` for the rest of a thread, ``everywhere`` for the whole process (for stacks
whose workers make threads of their own). All do nothing where CUDA is there.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from proveout_cpu.repair import record

CPU = torch.device("cpu")
_THREAD = threading.local()
_STATE: dict[str, Any] = {}


def cuda_is_there() -> bool:
    """Whether this process has a CUDA device, in which case nothing here does anything."""
    return bool(torch.cuda.is_available())


class _Stream:
    """A stream on which everything is done at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_stream = 0

    def wait_stream(self, _: Any) -> None: ...
    def wait_event(self, _: Any) -> None: ...
    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or _Event()

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Event:
    """An event that has happened."""

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def record(self, *_: Any) -> None: ...
    def wait(self, *_: Any) -> None: ...
    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: Any) -> float:
        return 0.0


class _Device:
    """``with torch.cuda.device(...)``."""

    def __init__(self, _: Any = None) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def facade() -> None:
    """Answer for ``torch.cuda``: one device, the CPU, with its generator of random numbers and no delay."""
    if cuda_is_there() or "facade" in _STATE:
        return
    _STATE["facade"] = True
    stream = _Stream()
    answers: dict[str, Any] = {
        "current_device": lambda: CPU,
        "set_device": lambda *_: None,
        "synchronize": lambda *_, **__: None,
        "get_rng_state": lambda *_, **__: torch.get_rng_state(),
        "set_rng_state": lambda state, *_, **__: torch.set_rng_state(state),
        "manual_seed": torch.default_generator.manual_seed,
        "current_stream": lambda *_, **__: stream,
        "default_stream": lambda *_, **__: stream,
        "stream": lambda *_, **__: stream,
        "is_current_stream_capturing": lambda: False,
        "Stream": _Stream,
        "Event": _Event,
        "device": _Device,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: None)
    record(
        "cuda_facade",
        "torch/cuda/__init__.py",
        "Megatron calls torch.cuda without asking whether it is there",
    )


def is_cuda(device: Any) -> bool:
    """Whether ``device``, as torch's functions take it, means a CUDA device; a bare number does."""
    if isinstance(device, str):
        return device.startswith("cuda")
    if isinstance(device, torch.device):
        return str(device.type) == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


class _CudaMeansCpu(TorchFunctionMode):  # type: ignore[misc]
    """Maps CUDA devices to the CPU in every call of torch made by this thread."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.Tensor.type and len(args) == 1 and not kwargs:
            return _type_name(func(*args), sys._getframe(1))
        if "device" in kwargs and is_cuda(kwargs["device"]):
            kwargs = {**kwargs, "device": CPU}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if func is torch.Tensor.to and len(args) > 1 and is_cuda(args[1]):
            args = (args[0], CPU, *args[2:])
        return func(*args, **kwargs)


def _type_name(name: str, frame: Any) -> str:
    """Megatron's optimizers compare a tensor's type with ``torch.cuda.FloatTensor``; to others it is what it is."""
    caller = frame.f_globals.get("__name__", "")
    return name.replace("torch.", "torch.cuda.") if caller.startswith("megatron.core.optimizer.") else name


@contextmanager
def on_cpu() -> Iterator[None]:
    """In this block and thread CUDA devices mean the CPU. Costs some microseconds for each call of torch."""
    if cuda_is_there() or getattr(_THREAD, "inside", False):
        yield
        return
    _THREAD.inside = True
    try:
        with _CudaMeansCpu():
            yield
    finally:
        _THREAD.inside = False


def enter_thread() -> None:
    """The same for the rest of this thread; more calls in one thread are one."""
    if not cuda_is_there() and not getattr(_THREAD, "inside", False):
        _THREAD.inside = True
        _CudaMeansCpu().__enter__()


def everywhere() -> None:
    """The same for all threads of this process, by wrapping torch's functions once."""
    if cuda_is_there() or "everywhere" in _STATE:
        return
    _STATE["everywhere"] = True
    makers = _makers()
    for name, value in list(vars(torch).items()):
        if callable(value) and (value in makers or name.endswith("_like")):
            setattr(torch, name, _mapped(value))
    for name in ("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor"):
        setattr(torch.Tensor, name, _mapped(getattr(torch.Tensor, name)))
    plain_to, plain_type = torch.Tensor.to, torch.Tensor.type

    @functools.wraps(plain_to)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and is_cuda(args[0]):
            args = (CPU, *args[1:])
        if is_cuda(kwargs.get("device")):
            kwargs["device"] = CPU
        return plain_to(self, *args, **kwargs)

    @functools.wraps(plain_type)
    def type_(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = plain_type(self, *args, **kwargs)
        return found if args or kwargs else _type_name(found, sys._getframe(1))

    torch.Tensor.to, torch.Tensor.type = to, type_
    torch.Tensor.cuda = torch.Tensor.pin_memory = lambda self, *_, **__: self
    record("cuda_everywhere", "torch/__init__.py", "threads of the stack's own ask for CUDA devices")


def _makers() -> set[Callable[..., Any]]:
    """The functions that make tensors on a device.

    torch's ``with torch.device("meta")`` compares by identity with a set that it makes and keeps at its first use.
    Made after the wrapping it would hold the wrappers, match nothing, and silently give real, uninitialised
    tensors; so it is made here, before.
    """
    from torch.utils._device import _device_constructors

    return set(_device_constructors())


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_cuda(kwargs.get("device")):
            kwargs["device"] = CPU
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return function(*args, **kwargs)

    return call
