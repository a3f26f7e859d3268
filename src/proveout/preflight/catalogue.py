"""All checks, in the order in which they run. A new check is one module and one line here."""

from __future__ import annotations

from proveout.preflight.check import Check
from proveout.preflight.checks import (
    cores,
    disk,
    imports,
    memory,
    packages,
    python,
    ray_cluster,
    ray_imports,
    run_directory,
)

CATALOGUE: dict[str, Check] = {
    check.id: check
    for check in (
        run_directory.CHECK,
        disk.CHECK,
        memory.CHECK,
        cores.CHECK,
        python.CHECK,
        packages.CHECK,
        imports.CHECK,
        ray_cluster.CHECK,
        ray_imports.CHECK,
    )
}
