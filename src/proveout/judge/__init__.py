"""Judge: criteria as small modules that read the evidence of one attempt, and the verdict that follows."""

from proveout.judge.engine import judge

__all__ = ["judge"]
