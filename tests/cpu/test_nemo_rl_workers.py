"""NeMo-RL's workers on the CPU platform: made by the driver, with NeMo-RL's own code, and ended as before."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from proveout_cpu.nemo_rl import workers
from proveout_cpu.repair import UnknownVersionError


def upstream(kept: list[Any]) -> ModuleType:
    """The part of worker_groups that matters; ``kept`` gets what its shutdown still found to end."""

    class Isolated:
        def __init__(self, name: str, *args: Any, **named: Any) -> None:
            self.name, self.args, self.named = name, args, named

        def create_worker(self, place: str, **options: Any) -> Any:
            module_name, class_name = self.name.rsplit(".", 1)
            worker_class = getattr(importlib.import_module(module_name), class_name)
            if isinstance(worker_class, type):
                return worker_class(self.args, self.named, place, options)
            return worker_class.options(**options).remote(*self.args)

    class RayWorkerBuilder:
        IsolatedWorkerInitializer = SimpleNamespace(
            __ray_metadata__=SimpleNamespace(modified_class=Isolated),
            options=lambda **_: pytest.fail("a process was started"),
        )

    class RayWorkerGroup:
        _initializer_pool: Any = None

        def shutdown(self) -> bool:
            kept.append(self._initializer_pool)
            return True

    module: Any = ModuleType("nemo_rl.distributed.worker_groups")
    module.RayWorkerBuilder, module.RayWorkerGroup = RayWorkerBuilder, RayWorkerGroup
    module.ray = SimpleNamespace(put=lambda value: ("reference", value))
    return module  # type: ignore[no-any-return]


class Worker:
    """What a worker was made with."""

    def __init__(self, args: Any, named: Any, place: str, options: Any) -> None:
        self.made = (args, named, place, options)


def test_a_worker_is_made_here_with_what_the_process_would_have_got() -> None:
    kept: list[Any] = []
    module: Any = upstream(kept)
    workers.made_by_the_driver.function(module)
    initializer = module.RayWorkerBuilder.IsolatedWorkerInitializer.options(
        num_cpus=0, runtime_env={}
    ).remote(f"{__name__}.Worker", {"config": 1}, seed=2)
    kind, worker = initializer.create_worker.remote("group", num_gpus_per_node=2, name="policy-0")
    assert kind == "reference"
    assert worker.made == (
        ({"config": 1},),
        {"seed": 2},
        "group",
        {"num_gpus_per_node": 2, "name": "policy-0"},
    )


def test_the_end_of_a_group_ends_no_process_that_is_none() -> None:
    kept: list[Any] = []
    module: Any = upstream(kept)
    workers.made_by_the_driver.function(module)
    group = module.RayWorkerGroup()
    group._initializer_pool = {0: "maker"}
    assert group.shutdown() is True and kept == [{}]


def test_another_version_is_not_touched() -> None:
    module: Any = upstream([])
    module.RayWorkerBuilder.IsolatedWorkerInitializer.__ray_metadata__.modified_class = Worker
    with pytest.raises(UnknownVersionError, match="no create_worker"):
        workers.made_by_the_driver.function(module)
