"""How much memory is in use: on GPUs (here, and on every node of a running Ray cluster), else in host RAM."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field

from proveout.pytest_plugin.tracking.ray_nodes import ray_gpus

GIB = 1024.0**3


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: memory in use in bytes (None where the driver does not say), and its product name."""

    name: str
    used: float | None


@dataclass(frozen=True, slots=True)
class Memory:
    """One reading, in GiB: the most that any GPU has in use, or without GPUs the RSS of this process tree.

    ``source`` is ``nvml``, ``nvidia-smi``, ``ray`` (joined by ``+``) or ``host-rss``.
    """

    max_gib: float
    source: str
    gpu_types: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_memory() -> Memory:
    """Read what is in use now."""
    here, source = local_gpus()
    gpus, sources = list(here), [source] if here else []
    remote, notes = ray_gpus()
    if remote:
        gpus += [Gpu(name, used) for name, used in remote]
        sources.append("ray")
    names = sorted({gpu.name for gpu in gpus})
    used = [gpu.used for gpu in gpus if gpu.used is not None]
    if used:
        return Memory(max(used) / GIB, "+".join(sources), names, notes)
    return Memory(_tree_rss() / GIB, "host-rss", names, notes)


def local_gpus() -> tuple[list[Gpu], str]:
    """The GPUs of this machine that CUDA_VISIBLE_DEVICES leaves visible, and what was asked."""
    found = _through_nvml()
    if found is not None:
        return found, "nvml"
    return _through_nvidia_smi(), "nvidia-smi"


def _through_nvml() -> list[Gpu] | None:
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        return [
            Gpu(_text(pynvml.nvmlDeviceGetName(handle)), float(pynvml.nvmlDeviceGetMemoryInfo(handle).used))
            for index, handle in enumerate(handles)
            if _visible(index, _text(pynvml.nvmlDeviceGetUUID(handle)))
        ]
    except pynvml.NVMLError:
        return None


def _through_nvidia_smi() -> list[Gpu]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = ["--query-gpu=index,uuid,memory.used,name", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            [program, *query], capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    gpus = []
    for line in answer.splitlines():
        fields = [part.strip() for part in line.split(",", 3)]
        if len(fields) == 4 and fields[0].isdigit() and _visible(int(fields[0]), fields[1]):
            gpus.append(Gpu(fields[3], float(fields[2]) * 1024**2 if fields[2].isdigit() else None))
    return gpus


def _visible(index: int, uuid: str) -> bool:
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return True
    entries = [entry.strip() for entry in wanted.split(",") if entry.strip()]
    return any(str(index) == entry or (not entry.isdigit() and uuid.startswith(entry)) for entry in entries)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _tree_rss() -> float:
    import psutil

    this = psutil.Process()
    total = 0
    for process in [this, *this.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return float(total)
