"""Modules of NeMo-RL that cannot run on a CPU at all, each replaced by one of this package under the same name."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from proveout_cpu.repair import BLOCKED, UnknownVersionError, record

REPLACED = {
    "nemo_rl.models.generation.vllm.vllm_worker": (
        "vllm_worker.py",
        "VllmGenerationWorkerImpl",
        (
            "configure_worker",
            "post_init",
            "generate",
            "report_device_id",
            "prepare_refit_info",
            "update_weights_via_ipc_zmq",
            "sleep",
            "wake_up",
            "shutdown",
        ),
    )
}


def install() -> None:
    """From now on these names give the replacements, wherever the platform is on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in REPLACED:
            return None
        from proveout_cpu.nemo_rl.devices import no_cuda

        upstream = PathFinder.find_spec(fullname, path, target)
        if upstream is None or not no_cuda():
            return upstream
        own, holder, methods = REPLACED[fullname]
        _check(fullname, upstream.origin or "", holder, methods)
        record(f"replaced:{fullname}", fullname.replace(".", "/") + ".py", "it serves a vLLM engine")
        return importlib.util.spec_from_file_location(fullname, Path(__file__).with_name(own))


def _check(name: str, file: str, holder: str, methods: Sequence[str]) -> None:
    """Raise UnknownVersionError where upstream's class has not the methods that its replacement answers."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found = {
        item.name
        for node in classes.values()
        for item in node.body
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    missing = [name for name in methods if name not in found]
    if holder not in classes or missing:
        lacking = f"no {', '.join(missing)}" if missing else f"no class {holder}"
        message = f"{BLOCKED}: {name}: {lacking} (in {file})"
        print(message, file=sys.stderr, flush=True)
        raise UnknownVersionError(message)
