"""Whether the loop would take a rung: the check that a planned step gets, asked of the changed step."""

from __future__ import annotations

import sys

from proveout import loops
from proveout.domain.errors import UsageError
from proveout.domain.finding import Severity
from proveout.domain.loop import LoopContext, VerifiedLoop
from proveout.domain.step import Step
from proveout.store.runs import Run


def rejected(run: Run, step: Step, changed: Step) -> str:
    """Why the checkout under test rejects the changed step although it takes the step itself; '' where it does not.

    A loop that runs from no checkout has nothing to ask; what it makes of the change only its run shows.
    """
    loop = loops.get(step.coverage.loop)
    if not isinstance(loop, VerifiedLoop):
        return ""
    context = LoopContext(
        python=sys.executable, checkouts={checkout.role: checkout.path for checkout in run.checkouts()}
    )
    before = _errors(loop, step, context)
    return next((what for what in _errors(loop, changed, context) if what not in before), "")


def _errors(loop: VerifiedLoop, step: Step, context: LoopContext) -> list[str]:
    try:
        found = loop.verify(step, context)
    except UsageError as error:
        return [str(error)]
    return [item.what for item in found if item.severity is Severity.ERROR]
