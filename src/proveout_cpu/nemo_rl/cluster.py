"""Ray as NeMo-RL starts it: a cluster of its own with logical GPUs, and one interpreter for every actor."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from proveout_cpu.repair import Repair, expect, repair

GPUS, CORES = "PROVEOUT_CPU_GPUS", 32
OBJECT_STORE = 1 << 30
START_SECONDS, PAUSE = 300.0, 1.0


@repair("ray", "nemo_rl/distributed/virtual_cluster.py", "the cluster has as many GPUs as the machine")
def logical_gpus(module: Any) -> None:
    """A local cluster gets GPUs that are numbers only; a cluster of somebody else's is never joined."""
    start, services = expect(module, "init"), expect(module, "_private.services")
    expect(module, "_private.node.Node.start_monitor", "services.start_monitor", parameters=("self",))
    expect(services, "get_node", "global_state.get_node", parameters=("gcs_address", "node_id"))

    def init(*args: Any, **named: Any) -> Any:
        from proveout_cpu.nemo_rl.devices import no_cuda

        address = named.get("address") or (args[0] if args else None)
        if os.environ.get("RAY_JOB_ID") or not no_cuda():
            return start(*args, **named)
        if address == "auto":
            raise ConnectionError("proveout_cpu: a run on the CPU never joins another cluster")
        if address is not None:
            return start(*args, **named)
        named.setdefault("num_gpus", int(os.environ.get(GPUS, "2")))
        named.setdefault("num_cpus", CORES)
        named.setdefault("object_store_memory", OBJECT_STORE)
        named["include_dashboard"] = False
        if place := os.environ.get("PROVEOUT_CPU_RAY_DIR"):
            named["_temp_dir"] = place
        module._private.node.Node.start_monitor = lambda _: None  # it scales clusters
        with _patience(services):
            started = start(*args, **named)
        # nemo_rl/utils/memory_tracker.py asks Ray by the address, and would find another cluster of this host
        os.environ["RAY_ADDRESS"] = module.get_runtime_context().gcs_address
        return started

    module.init = init


@contextmanager
def _patience(services: Any) -> Iterator[None]:
    """While Ray starts its own node, wait longer for it than Ray's fixed half minute, as a busy machine needs."""
    ask = services.get_node

    def get_node(gcs_address: Any, node_id: Any) -> Any:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return ask(gcs_address, node_id)
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(PAUSE)

    services.get_node = get_node
    try:
        yield
    finally:
        services.get_node = ask


@repair(
    "nemo_rl.distributed.ray_actor_environment_registry",
    "nemo_rl/distributed/ray_actor_environment_registry.py",
    "some actors get an environment built by uv whatever NEMO_RL_PY_EXECUTABLES_SYSTEM says",
)
def one_interpreter(module: ModuleType) -> None:
    """Every actor runs in this interpreter."""
    registry = expect(module, "ACTOR_ENVIRONMENT_REGISTRY")
    for actor in registry:
        registry[actor] = sys.executable


REPAIRS: tuple[Repair, ...] = (logical_gpus, one_interpreter)
