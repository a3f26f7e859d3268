"""Ray as NeMo-RL starts it: a cluster of its own with logical GPUs, and one interpreter for every actor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from proveout_cpu.repair import Repair, expect, repair

GPUS, CORES = "PROVEOUT_CPU_GPUS", 32
OBJECT_STORE = 1 << 30
TRIES, LATE = 4, "timed out during startup"


@repair("ray", "nemo_rl/distributed/virtual_cluster.py", "the cluster has as many GPUs as the machine")
def logical_gpus(module: Any) -> None:
    """A local cluster gets GPUs that are numbers only; a cluster of somebody else's is never joined."""
    start = expect(module, "init")

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
        started = _patiently(module, lambda: start(*args, **named))
        # nemo_rl/utils/memory_tracker.py asks Ray by the address, and would find another cluster of this host
        os.environ["RAY_ADDRESS"] = module.get_runtime_context().gcs_address
        return started

    module.init = init


def _patiently(ray: ModuleType, start: Callable[[], Any]) -> Any:
    """Start a cluster; again where Ray gave it up after its fixed half minute, as on a machine that is busy."""
    for left in reversed(range(TRIES)):
        try:
            return start()
        except Exception as error:
            if LATE not in str(error) or not left:
                raise
            print(f"proveout_cpu: Ray did not start in time, tried again: {error}", flush=True)
            ray.shutdown()
    return None


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
