"""Trainable: the run says how many of its parameters are trained, and it is more than none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.judge.signals import frozen
from proveout.judge.signals.view import View


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


def trainable(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """A count of trainable parameters above 0 stands in the metrics or on the log; silence is an ERROR."""
    msgspec.convert(dict(params), Params)
    said = frozen.trainable(View(evidence, {}), required=True)
    return CriterionResult(kind="trainable", findings=said.findings, held=said.held)
