"""What the stacks take from the standard library of Python 3.12 and later, on 3.11."""

from __future__ import annotations

import typing

from proveout_cpu.repair import record


def typing_override() -> None:
    """``from typing import override``, as in megatron/training/models/hybrid.py."""
    if not hasattr(typing, "override"):
        import typing_extensions

        typing.override = typing_extensions.override  # type: ignore[attr-defined]
        record("typing_override", "megatron/training/models/hybrid.py", "typing.override needs Python 3.12")
