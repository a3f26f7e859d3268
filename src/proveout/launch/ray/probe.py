"""Says from where a worker of every node of this Ray cluster would import; nothing of it is loaded.

A program of its own: ``python probe.py MODULE...`` inside a job. One line for each node and module:
``[import] worker MODULE PATH``. It needs Ray and the standard library.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

SECONDS = 120


def origins(modules: list[str]) -> dict[str, str]:
    """Module -> the file that it would be loaded from, or why there is none."""
    from importlib.util import find_spec

    found = {}
    for module in modules:
        try:
            spec = find_spec(module)
        except (ImportError, ValueError) as error:
            found[module] = f"(none: {error})"
            continue
        places = list(spec.submodule_search_locations or ()) if spec else []
        found[module] = (spec.origin if spec else None) or (places[0] if places else "(none: not found)")
    return found


def main(modules: list[str]) -> int:
    """Ask one worker of every living node."""
    ray: Any = importlib.import_module("ray")
    affinity: Any = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
    ask = ray.remote(num_cpus=0, max_retries=0)(origins)
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    asked = [ask.options(scheduling_strategy=affinity(node, soft=False)).remote(modules) for node in nodes]
    for answer in ray.get(asked, timeout=SECONDS):
        for module, path in answer.items():
            print(f"[import] worker {module} {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
