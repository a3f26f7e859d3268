"""``proveout skill``."""

from __future__ import annotations

from importlib.resources import files

import click


@click.command("skill")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(as_json: bool) -> int:
    """Print a short file that tells a coding agent when to use which command and how to read the JSON."""
    text = (files("proveout.cli") / "skill.md").read_text(encoding="utf-8")
    if as_json:
        import msgspec

        text = msgspec.json.encode({"name": "proveout", "text": text}).decode() + "\n"
    click.echo(text, nl=False)
    return 0
