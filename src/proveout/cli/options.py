"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

state_dir = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="PROVEOUT_STATE_DIR",
    help="Where runs are kept; .proveout of the current directory by default.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def numbers(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """``0,1,2`` or ``0-2`` as numbers."""
    found: list[int] = []
    for part in (value or "").replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not part:
            continue
        if not first.isdigit() or (dash and not last.isdigit()):
            raise click.BadParameter(f"{part!r} is not a level; give numbers such as 0,6 or 0-2")
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def words(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """``a,b`` as words."""
    return tuple(dict.fromkeys(word for word in (value or "").replace(" ", "").split(",") if word))


def echo_json(value: Any) -> None:
    """Print plain data or msgspec structs as indented JSON; NaN and infinities become null."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
