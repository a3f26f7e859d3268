"""Triage: from the logs of a run to the boundary at fault, the line that caused it, and what to do."""

from proveout.triage.engine import triage
from proveout.triage.stages import provider_constructed, stages_reached

__all__ = ["provider_constructed", "stages_reached", "triage"]
