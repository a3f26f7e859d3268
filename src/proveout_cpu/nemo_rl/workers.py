"""How NeMo-RL makes its worker processes, which on few cores is most of the time that a short run takes."""

from __future__ import annotations

import functools
from typing import Any

from proveout_cpu.repair import Repair, expect, repair


@repair(
    "nemo_rl.distributed.worker_groups",
    "nemo_rl/distributed/worker_groups.py",
    "a process of its own imports each class of workers in their environment, which here is the driver's",
)
def made_by_the_driver(module: Any) -> None:
    """The driver, which has imported most of it, makes the workers itself, by NeMo-RL's own ``create_worker``."""
    builder = expect(module, "RayWorkerBuilder")
    actor = expect(builder, "IsolatedWorkerInitializer")
    group = expect(module, "RayWorkerGroup")
    plain = expect(group, "shutdown", "self._initializer_pool")
    own = expect(actor, "__ray_metadata__.modified_class")
    expect(own, "create_worker", "importlib.import_module", "worker_class.options(**options).remote")

    class Maker:
        """Answers as the actor does."""

        def __init__(self, *args: Any, **named: Any) -> None:
            self._maker = own(*args, **named)
            self.create_worker = self

        def remote(self, *args: Any, **named: Any) -> Any:
            return module.ray.put(self._maker.create_worker(*args, **named))

    class Initializer:
        """Takes the place of the actor's class."""

        @staticmethod
        def options(**_: Any) -> Any:
            return Initializer

        @staticmethod
        def remote(*args: Any, **named: Any) -> Maker:
            return Maker(*args, **named)

    @functools.wraps(plain)
    def shutdown(self: Any, *args: Any, **named: Any) -> Any:
        self._initializer_pool = {}
        return plain(self, *args, **named)

    builder.IsolatedWorkerInitializer = Initializer
    group.shutdown = shutdown


REPAIRS: tuple[Repair, ...] = (made_by_the_driver,)
