"""``proveout resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proveout.cli import options
from proveout.cli.launching import launch_of, launch_options


@click.command("resume")
@click.argument("run", default="latest")
@launch_options
@options.state_dir
@options.as_json
def command(run: str, state_dir: Path | None, as_json: bool, **asked: Any) -> int:
    """Go on with the steps of RUN (its name, a prefix, a path, or latest) that are left.

    An attempt that outlived proveout is followed to its end and judged; what was Blocked is tried again.
    Attempts are started as the run started them, unless options say otherwise.
    """
    from proveout.cli.progress import ConsoleObserver
    from proveout.cli.show import show_report
    from proveout.flow.execute import Policy
    from proveout.flow.prove import AGAIN_ON_RESUME, go_on
    from proveout.store.runs import find, runs_root

    found = find(runs_root(state_dir), run)
    policy = Policy(launch=launch_of(asked, found.launch_site()), again=AGAIN_ON_RESUME)
    return show_report(go_on(found, policy, ConsoleObserver()), "json" if as_json else "text")
