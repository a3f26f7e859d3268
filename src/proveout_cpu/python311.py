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


def typed_dict() -> None:
    """``typing.TypedDict`` in models of pydantic, which takes only that of typing_extensions before Python 3.12."""
    import sys

    if sys.version_info < (3, 12):
        try:
            import typing_extensions
        except ImportError:
            return
        typing.TypedDict = typing_extensions.TypedDict
        record("typed_dict", "nemo_rl/models/policy/__init__.py", "pydantic refuses typing.TypedDict here")
