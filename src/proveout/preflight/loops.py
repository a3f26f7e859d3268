"""Which loops a check is about."""

from __future__ import annotations

from collections.abc import Callable

from proveout.domain.preflight import PreflightContext

STACK = frozenset({"nemo-rl", "verl"})


def needs_stack(context: PreflightContext) -> bool:
    """Whether a loop is wanted that runs on GPUs through Ray."""
    return bool(context.wanted & STACK)


def wants(*loops: str) -> Callable[[PreflightContext], bool]:
    """Applies when one of these loops is wanted."""
    return lambda context: bool(context.wanted & set(loops))


def has_checkout(*roles: str) -> Callable[[PreflightContext], bool]:
    """Applies when a checkout of one of these roles is given."""
    return lambda context: any(role in context.checkouts for role in roles)


def size(context: PreflightContext) -> str:
    """The class of limits that holds: ``stack``, or ``small`` for what needs no GPU, a stack on platform cpu too."""
    on_cpu = bool(context.running) and not any(step.resources.gpus for step in context.running)
    return "stack" if needs_stack(context) and not on_cpu else "small"
