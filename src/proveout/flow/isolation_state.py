"""What an earlier step left beside the attempts for a later one, copied to where a re-run looks for it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from proveout.domain.step import ATTEMPT_DIR, Step
from proveout.store.runs import Run

_BESIDE = re.compile(re.escape(ATTEMPT_DIR) + r"/\.\./([\w.-]+)")


def bring_state(run: Run, step: Step) -> None:
    """A fresh copy of every directory beside the attempts that a step with ``needs`` names, for its re-run.

    The re-run writes into the copy, so what the run itself left stays as it was. Raises OSError where it cannot
    be copied.
    """
    for name in _named(step):
        copy, source = run.layout.reruns / name, run.layout.attempts / name
        if copy.exists():
            shutil.rmtree(copy)
        if step.needs and source.is_dir():
            shutil.copytree(source, copy)


def forget_state(folder: Path, step: Step) -> None:
    """Remove what earlier runs in ``folder`` left beside themselves for ``step``, so that it is made anew."""
    for name in _named(step):
        shutil.rmtree(folder / name, ignore_errors=True)


def _named(step: Step) -> list[str]:
    named = " ".join((*step.command.argv, *step.command.env.values()))
    return list(dict.fromkeys(_BESIDE.findall(named)))
