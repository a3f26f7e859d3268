"""Which files this process really imported."""

from __future__ import annotations

import platform
import sys
from typing import Any

REPORTED = ("torch", "transformers", "tokenizers", "proveout_bench", "megatron.core", "megatron.bridge")


def collect(backend: str, device: str, threads: int) -> dict[str, Any]:
    """Interpreter, backend, device and, for each reported module that is loaded, its version and file."""
    modules = {
        name: {
            "version": str(getattr(sys.modules[name], "__version__", "")),
            "file": sys.modules[name].__file__,
        }
        for name in REPORTED
        if name in sys.modules
    }
    return {
        "python": {"version": platform.python_version(), "file": sys.executable},
        "modules": modules,
        "backend": backend,
        "device": device,
        "threads": threads,
    }


def lines(record: dict[str, Any]) -> list[str]:
    """One console line for the interpreter and each module."""
    rows = {"python": record["python"], **record["modules"]}
    found = [f"Provenance: {name} {row['version'] or '-'} from {row['file']}" for name, row in rows.items()]
    where = f"Provenance: backend {record['backend']} on {record['device']} with {record['threads']} threads"
    return [*found, where]
