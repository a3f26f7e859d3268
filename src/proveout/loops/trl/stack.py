"""Which interpreter runs TRL, and how it finds the program that drives it."""

from __future__ import annotations

import os
from pathlib import Path

from proveout.domain.errors import BlockedError
from proveout.domain.loop import LoopContext

STACK = "trl"


def python_of(context: LoopContext) -> str:
    """The option ``python`` of the loop, else the interpreter of the stack, installed or not."""
    from proveout.stacks.place import Place, root

    return context.options.get("python") or str(Place(root(os.environ), STACK).python)


def require(context: LoopContext) -> None:
    """Raises BlockedError where there is no such interpreter."""
    python = python_of(context)
    if not Path(python).exists():
        raise BlockedError(
            "loop trl has no environment to run in",
            where=python,
            remedy="'proveout stack install trl' makes one; --set trl:python=PATH names another",
        )


def program_path() -> str:
    """A directory for PYTHONPATH that holds the program and nothing else."""
    from proveout.stacks.place import root
    from proveout.stacks.shipped import platform_path

    return str(platform_path(root(os.environ)))
