"""Preflight: proves, before an hour is spent, that a run here would test the change."""

from proveout.preflight.catalogue import CATALOGUE
from proveout.preflight.check import Check, Cost
from proveout.preflight.records import import_records
from proveout.preflight.run import CheckResult, State, examine, preflight, preflight_with_imports

__all__ = [
    "CATALOGUE",
    "Check",
    "CheckResult",
    "Cost",
    "State",
    "examine",
    "import_records",
    "preflight",
    "preflight_with_imports",
]
