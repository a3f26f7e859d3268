"""``proveout runs``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proveout.cli import options


@click.command("runs")
@options.state_dir
@options.as_json
def command(state_dir: Path | None, as_json: bool) -> int:
    """List the runs of this directory, oldest first, each with its verdict and coverage."""
    import msgspec

    from proveout.domain.errors import UsageError
    from proveout.flow.reporting import build
    from proveout.store.runs import find, identifiers, runs_root

    root = runs_root(state_dir)
    rows: list[dict[str, Any]] = []
    for name in identifiers(root):
        try:
            run = find(root, name)
            report = build(run)
            coverage = [str(each) for each in report.requested_coverage]
            rows.append({"id": name, "result": report.result, "active": run.active, "coverage": coverage})
        except UsageError as error:
            rows.append({"id": name, "result": "unreadable", "active": False, "coverage": [str(error)]})
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))
        return 0
    for row in rows:
        going = ", still going" if row["active"] else ""
        click.echo(f"{row['id']}  {row['result']}{going}  {', '.join(row['coverage'])}")
    if not rows:
        click.echo(f"no runs in {root}", err=True)
    return 0
