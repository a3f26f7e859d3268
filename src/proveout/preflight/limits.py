"""Limits and switches of the checks: ``limits.toml``, each of which a setting of the same name replaces.

Settings of the context come first, then ``PROVEOUT_LIMITS`` of its environment: ``NAME=VALUE,NAME=VALUE``.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from proveout.domain.errors import UsageError, nearest
from proveout.domain.preflight import PreflightContext

VARIABLE = "PROVEOUT_LIMITS"
_FILE = "limits.toml"


@cache
def defaults() -> dict[str, float | str]:
    """Every limit and switch by its dotted name."""
    sections = tomllib.loads(files("proveout.preflight").joinpath(_FILE).read_text(encoding="utf-8"))
    return {
        f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()
    }


def validate(context: PreflightContext) -> None:
    """Raise UsageError for a setting that is not known or not of its limit's kind."""
    known = defaults()
    for name in settings(context):
        if name not in known:
            raise UsageError(
                f"no preflight setting {name!r}{nearest(name, known)}",
                remedy=f"known settings: {', '.join(sorted(known))}",
            )
        if not isinstance(known[name], str):
            number(context, name)


def settings(context: PreflightContext) -> dict[str, str]:
    """What replaces defaults. Raises UsageError where the variable is no list of settings."""
    words = [word.strip() for word in context.env.get(VARIABLE, "").split(",") if word.strip()]
    for word in words:
        if "=" not in word:
            raise UsageError(f"{word!r} is no NAME=VALUE", where=VARIABLE)
    return {**dict(word.split("=", 1) for word in words), **context.settings}


def number(context: PreflightContext, name: str) -> float:
    """A limit as a number; its unit is the end of its name."""
    value = settings(context).get(name, defaults()[name])
    try:
        return float(value)
    except ValueError:
        raise UsageError(
            f"{value!r} is not a number", where=f"preflight setting {name}", remedy="give a number"
        ) from None


def text(context: PreflightContext, name: str) -> str:
    """A switch or a path."""
    return str(settings(context).get(name, defaults()[name]))
