"""``proveout resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proveout.cli import options
from proveout.cli.launching import (
    budget_of,
    budget_options,
    budget_words,
    launch_of,
    launch_options,
    stop_words,
)


@click.command("resume")
@click.argument("run", default="latest")
@launch_options
@budget_options
@click.option("--stop-at-first/--keep-going", default=False, help="Stop after the first step that fails.")
@click.option("--detach", is_flag=True, help="Go on in the background.")
@options.state_dir
@options.as_json
def command(
    run: str, stop_at_first: bool, detach: bool, state_dir: Path | None, as_json: bool, **asked: Any
) -> int:
    """Go on with the steps of RUN (its name, a prefix, a path, or latest) that are left.

    An attempt that outlived proveout is followed to its end and judged; what was Blocked is tried again.
    Attempts are started as the run started them, unless options say otherwise.
    """
    from proveout.cli.detached import go_on_detached
    from proveout.cli.progress import ConsoleObserver
    from proveout.cli.show import show_report
    from proveout.domain.files import write_json
    from proveout.flow.execute import Policy
    from proveout.flow.prove import AGAIN_ON_RESUME, go_on
    from proveout.store.runs import find, runs_root

    found = find(runs_root(state_dir), run)
    launch, budget = launch_of(asked, found.launch_site()), budget_of(asked)
    if detach:
        write_json(found.layout.launch, launch.site.as_table())
        return go_on_detached(found, [*stop_words(stop_at_first), *budget_words(budget)], as_json)
    policy = Policy(launch=launch, budget=budget, again=AGAIN_ON_RESUME, keep_going=not stop_at_first)
    return show_report(go_on(found, policy, ConsoleObserver()), "json" if as_json else "text")
