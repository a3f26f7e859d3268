"""GPU memory of every node of a Ray cluster, from the metrics that Ray's own agents export.

Ray is never imported: it is used only where the process under test has imported and started it.
"""

from __future__ import annotations

import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TIMEOUT_SECONDS = 5.0
_SAMPLE = re.compile(r"^ray_node_gram_used\{(?P<labels>[^}]*)\}\s+(?P<value>\S+)")
_NAME = re.compile(r'GpuDeviceName="(?P<name>(?:[^"\\]|\\.)*)"')
_MIB = 1024.0**2


def ray_gpus() -> tuple[list[tuple[str, float]], list[str]]:
    """The (product name, bytes in use) of every GPU of every live node, and what could not be read.

    Both are empty where Ray does not run in this process.
    """
    try:
        nodes = _live_nodes()
    except Exception as error:
        return [], [f"Ray: its nodes could not be listed ({error})"]
    if not nodes:
        return [], []
    gpus: list[tuple[str, float]] = []
    notes: list[str] = []
    with ThreadPoolExecutor(max_workers=min(16, len(nodes))) as pool:
        for found, note in pool.map(_of_node, nodes):
            gpus += found
            notes += [note] if note else []
    return gpus, notes


def _live_nodes() -> list[dict[str, Any]]:
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return []
    return [node for node in ray.nodes() if node.get("Alive")]


def _of_node(node: dict[str, Any]) -> tuple[list[tuple[str, float]], str]:
    host, port = node.get("NodeManagerAddress"), node.get("MetricsExportPort")
    address = f"{host}:{port}"
    if not host or not port:
        return [], f"Ray node {address}: it exports no metrics, so its GPU memory is not in the figures"
    request = urllib.request.Request(f"http://{address}/metrics")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=TIMEOUT_SECONDS) as answer:
            return parse_gpu_memory(answer.read().decode("utf-8", "replace")), ""
    except (OSError, urllib.error.URLError, ValueError) as error:
        return [], f"Ray node {address}: its metrics could not be read ({error})"


def parse_gpu_memory(exported: str) -> list[tuple[str, float]]:
    """(product name, bytes) of each ``ray_node_gram_used`` sample (MiB) in Prometheus text."""
    gpus = []
    for line in exported.splitlines():
        if sample := _SAMPLE.match(line):
            name = _NAME.search(sample["labels"])
            gpus.append((name["name"] if name else "unknown GPU", float(sample["value"]) * _MIB))
    return gpus
