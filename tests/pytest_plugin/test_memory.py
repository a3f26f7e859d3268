"""Where memory is read from: real processes, programs and servers that answer as the real ones do."""

from __future__ import annotations

import stat
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from proveout.pytest_plugin.tracking.memory import GIB, read_memory
from proveout.pytest_plugin.tracking.ray_nodes import parse_gpu_memory

SMI = """#!/bin/sh
echo "0, GPU-aaaa, 1024, NVIDIA H100 80GB HBM3"
echo "1, GPU-bbbb, 3072, NVIDIA H100 80GB HBM3"
echo "2, GPU-cccc, [N/A], NVIDIA A100"
"""
EXPORTED = """# HELP ray_node_gram_used GPU RAM usage
# TYPE ray_node_gram_used gauge
ray_node_gram_used{GpuDeviceName="NVIDIA H200",GpuIndex="0",SessionName="s",ip="10.0.0.2"} 2048.0
ray_node_gram_used{GpuDeviceName="NVIDIA H200",GpuIndex="1",SessionName="s",ip="10.0.0.2"} 9216.0
ray_node_gram_available{GpuDeviceName="NVIDIA H200",GpuIndex="0",ip="10.0.0.2"} 99999.0
ray_node_mem_used{ip="10.0.0.2"} 6.3e+10
"""


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH without nvidia-smi, no pynvml and no Ray; returns a directory of the PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return programs


@pytest.fixture
def nvidia_smi(no_gpu: Path) -> None:
    program = no_gpu / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_without_a_gpu_it_is_the_memory_of_this_process(no_gpu: Path) -> None:
    before = read_memory()
    held = bytearray(b"x") * (256 << 20)
    after = read_memory()

    assert before.source == after.source == "host-rss"
    assert before.gpu_types == []
    assert after.max_gib - before.max_gib == pytest.approx(0.25, abs=0.05)
    del held


@pytest.mark.usefixtures("nvidia_smi")
def test_the_fullest_gpu_counts_in_gib() -> None:
    memory = read_memory()

    assert (memory.max_gib, memory.source) == (3.0, "nvidia-smi")
    assert memory.gpu_types == ["NVIDIA A100", "NVIDIA H100 80GB HBM3"]


@pytest.mark.usefixtures("nvidia_smi")
@pytest.mark.parametrize("visible", ["0", "GPU-aaaa"])
def test_gpus_that_are_not_visible_do_not_count(monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert read_memory().max_gib == 1.0


class _Nvml:
    """The calls of pynvml, with its names, over two GPUs."""

    class NVMLError(Exception):
        pass

    def __getattr__(self, name: str) -> object:
        answers = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetName": lambda handle: b"NVIDIA H200",
            "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
            "nvmlDeviceGetMemoryInfo": lambda handle: type("Info", (), {"used": (5 + handle) * GIB}),
        }
        return answers[name]


@pytest.mark.usefixtures("nvidia_smi")
def test_nvml_comes_before_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _Nvml())
    memory = read_memory()
    assert (memory.max_gib, memory.source, memory.gpu_types) == (6.0, "nvml", ["NVIDIA H200"])


@pytest.fixture
def metrics_port() -> Iterator[int]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/metrics"
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(EXPORTED.encode() if found else b"")

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


class _Ray:
    def __init__(self, *nodes: dict[str, object], running: bool = True) -> None:
        self._nodes, self._running = nodes, running

    def is_initialized(self) -> bool:
        return self._running

    def nodes(self) -> list[dict[str, object]]:
        return list(self._nodes)


@pytest.mark.usefixtures("nvidia_smi")
def test_all_live_nodes_of_a_ray_cluster_count(monkeypatch: pytest.MonkeyPatch, metrics_port: int) -> None:
    here = {"Alive": True, "NodeManagerAddress": "127.0.0.1", "MetricsExportPort": metrics_port}
    silent = {"Alive": True, "NodeManagerAddress": "127.0.0.1", "MetricsExportPort": 1}
    dead = {"Alive": False, "NodeManagerAddress": "203.0.113.1", "MetricsExportPort": 1}
    monkeypatch.setitem(sys.modules, "ray", _Ray(here, silent, dead))

    memory = read_memory()

    assert (memory.max_gib, memory.source) == (9.0, "nvidia-smi+ray")
    assert "NVIDIA H200" in memory.gpu_types
    [note] = memory.notes
    assert note.startswith("Ray node 127.0.0.1:1: its metrics could not be read")


@pytest.mark.usefixtures("no_gpu")
def test_ray_that_is_not_running_is_not_asked(monkeypatch: pytest.MonkeyPatch, metrics_port: int) -> None:
    node = {"Alive": True, "NodeManagerAddress": "127.0.0.1", "MetricsExportPort": metrics_port}
    monkeypatch.setitem(sys.modules, "ray", _Ray(node, running=False))
    assert read_memory().source == "host-rss"


@pytest.mark.usefixtures("no_gpu")
def test_ray_is_never_imported() -> None:
    read_memory()
    assert "ray" not in sys.modules


def test_only_gpu_memory_is_taken_from_the_exported_metrics() -> None:
    assert parse_gpu_memory(EXPORTED) == [("NVIDIA H200", 2 * GIB), ("NVIDIA H200", 9 * GIB)]
