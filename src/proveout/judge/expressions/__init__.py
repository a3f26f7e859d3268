"""Metric expressions: parsed and evaluated over an allow-list of syntax, never by Python's own evaluation."""

from proveout.judge.expressions.check import Outcome, check_all
from proveout.judge.expressions.data import Data

__all__ = ["Data", "Outcome", "check_all"]
