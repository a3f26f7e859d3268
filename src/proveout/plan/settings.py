"""Checkouts named in ``proveout.toml``: the table ``[checkouts]``, one key for each role."""

from __future__ import annotations

import tomllib
from pathlib import Path

from proveout.domain.checkout import ROLES
from proveout.domain.errors import UsageError, nearest

FILE = "proveout.toml"


def read_settings(folder: Path) -> dict[str, str]:
    """Role -> path (relative ones to ``folder``); empty without the file.

    Raises UsageError for what is wrong in it.
    """
    path = folder / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    table = data.get("checkouts", {})
    if not isinstance(table, dict):
        raise UsageError(
            "checkouts is no table", where=str(path), remedy='write [checkouts] and bridge = "PATH"'
        )
    found = {}
    for role, value in table.items():
        if role not in ROLES:
            raise UsageError(f"no role {role!r}{nearest(role, ROLES)}", where=f"{path}, key checkouts.{role}")
        if not isinstance(value, str):
            raise UsageError("a path is text", where=f"{path}, key checkouts.{role}")
        found[role] = str(folder / Path(value).expanduser())
    return found
