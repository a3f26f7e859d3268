"""What the ``pytest11`` entry point loads: a list of parts, each a pytest plugin module of its own.

Every pytest start in an environment that has proveout pays for these imports, so a part imports nothing heavy
at its top. A new part is one module and one line here.
"""

from __future__ import annotations

pytest_plugins = (
    "proveout.pytest_plugin.tracking.hooks",
    "proveout.pytest_plugin.marks.hooks",
    "proveout.pytest_plugin.impacted.hooks",
)
