"""What a Ray worker would import: runs ``interpreter.report`` in a task of the given cluster.

argv[1] is JSON: ``address`` ("local" starts a cluster of one CPU), ``runtime_env`` (as the loop gives it to
ray.init), and the question for ``interpreter.report``. The answer holds ``worker`` and ``driver`` (ray and
python versions), or ``error``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")


def interpreter_module() -> Any:
    """``interpreter.py`` beside this file, under a name that nothing else has."""
    spec = importlib.util.spec_from_file_location(
        "proveout_interpreter_probe", Path(__file__).with_name("interpreter.py")
    )
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["proveout_interpreter_probe"] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def ask(question: dict[str, Any]) -> dict[str, Any]:
    """The answer of a worker. Ray is shut down again; a cluster that was there goes on."""
    interpreter = interpreter_module()
    ray: Any = importlib.import_module("ray")

    ray.cloudpickle.register_pickle_by_value(interpreter)
    local = question["address"] == "local"
    driver = {"ray": ray.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    try:
        options = {"num_cpus": 1, "include_dashboard": False} if local else {}
        ray.init(
            address=question["address"],
            runtime_env=question.get("runtime_env") or None,
            log_to_driver=False,
            logging_level="ERROR",
            **options,
        )
        task = ray.remote(num_cpus=0, max_retries=0)(interpreter.report)
        worker = ray.get(task.remote(question), timeout=question.get("seconds", 60))
        return {"driver": driver, "worker": worker, "error": None}
    except Exception as problem:
        return {"driver": driver, "worker": None, "error": f"{type(problem).__name__}: {problem}"}
    finally:
        ray.shutdown()


if __name__ == "__main__":
    print("\nPROVEOUT-PROBE " + json.dumps(ask(json.loads(sys.argv[1]))), flush=True)
