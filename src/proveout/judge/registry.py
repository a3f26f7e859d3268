"""The table of criteria: kind -> function. A new criterion is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.judge.criteria.artifacts import artifacts
from proveout.judge.criteria.checks import checks
from proveout.judge.criteria.completion import completion
from proveout.judge.criteria.exit_status import exit_status
from proveout.judge.criteria.false_pass import false_pass
from proveout.judge.criteria.finite import finite

CriterionFunction = Callable[[Evidence, Mapping[str, Any]], CriterionResult]

CRITERIA: dict[str, CriterionFunction] = {
    "exit": exit_status,
    "completion": completion,
    "artifacts": artifacts,
    "finite": finite,
    "false_pass": false_pass,
    "checks": checks,
}

ALWAYS = ("exit", "completion", "artifacts", "finite", "false_pass")
