"""``proveout watch``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.cli import options

if TYPE_CHECKING:
    from rich.console import Group

    from proveout.domain.metrics import Series
    from proveout.flow.watching import View, Watcher

TERMINAL_SECONDS = 0.5
PLAIN_SECONDS = 2.0
_STYLES = {"Pass": "green", "Fail": "red", "Blocked": "yellow", "running": "cyan"}


@click.command("watch")
@click.argument("run", default="latest")
@options.state_dir
@options.as_json
def command(run: str, state_dir: Path | None, as_json: bool) -> int:
    """Follow RUN (its name, a prefix, a path, or latest) from this or any other terminal.

    Only the run directory is read. On a terminal a view is redrawn; elsewhere a line is printed when something
    changed (--json: one JSON object a line). Ends when the run ends, with its exit status; Ctrl-C ends watching, not
    the run.
    """
    from proveout.domain.verdict import EXIT_STATUS
    from proveout.flow.reporting import build
    from proveout.flow.watching import Watcher
    from proveout.store.runs import find, runs_root

    found = find(runs_root(state_dir), run)
    watcher = Watcher(found)
    if as_json or not sys.stdout.isatty():
        _lines(watcher, as_json)
    else:
        _live(watcher)
    report = build(found)
    if as_json:
        _print_line({"run": found.layout.id, "result": report.result, "summary": report.summary})
    else:
        click.echo(f"Result: {report.result} - {report.summary}")
    return EXIT_STATUS[report.result]


def _lines(watcher: Watcher, as_json: bool) -> None:
    said: dict[str, str] = {}
    while True:
        view = watcher.look()
        now = _changes(view)
        if as_json and now != said:
            _print_line(_as_data(view))
        elif not as_json:
            for line in (value for name, value in now.items() if value and said.get(name) != value):
                click.echo(line)
        said = now
        if view.ended:
            return
        sys.stdout.flush()
        time.sleep(PLAIN_SECONDS)


def _changes(view: View) -> dict[str, str]:
    """What is worth a line when it changes."""
    lines: dict[str, str] = {
        step.step: f"{step.coverage}: {step.state}" + (f", {step.seconds:.0f} s" if step.seconds else "")
        for step in view.steps
        if step.state != "waiting"
    }
    if view.progress is not None:
        state = view.progress
        parts = [f"step {state.step}/{state.total}" if state.step is not None else state.phase]
        values = (("reward", state.reward), ("loss", state.loss))
        parts += [f"{name} {value:.4g}" for name, value in values if value is not None]
        lines["progress"] = f"{view.running}: {', '.join(parts)}"
    lines["finding"] = view.finding
    return lines


def _as_data(view: View) -> dict[str, object]:
    import msgspec

    def points(series: Series | None) -> dict[int, float] | None:
        return series.as_dict() if series is not None else None

    data = {name: getattr(view, name) for name in view.__struct_fields__}
    data |= {"reward": points(view.reward), "loss": points(view.loss)}
    plain: dict[str, object] = msgspec.to_builtins(data, str_keys=True)
    return plain


def _print_line(data: dict[str, object]) -> None:
    import msgspec

    click.echo(msgspec.json.encode(data).decode())
    sys.stdout.flush()


def _live(watcher: Watcher) -> None:
    from rich.live import Live

    view = watcher.look()
    with Live(draw(view), refresh_per_second=4) as live:
        while not view.ended:
            time.sleep(TERMINAL_SECONDS)
            view = watcher.look()
            live.update(draw(view))


def draw(view: View) -> Group:
    """The view as something that rich prints."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table("step", "state", "attempts", "time", box=None, header_style="dim")
    for step in view.steps:
        seconds = view.progress.seconds if view.progress and step.step == view.running else step.seconds
        state = Text(step.state, style=_STYLES.get(step.state, ""))
        table.add_row(
            Text(step.coverage), state, str(step.attempts or ""), f"{seconds:.0f} s" if seconds else ""
        )
    parts: list[Text | Table] = [Text(f"run {view.run}", style="bold"), table]
    if view.progress is not None:
        parts.append(Text(_where(view)))
    parts += [Text(line) for line in (_spark("reward", view.reward), _spark("loss", view.loss)) if line]
    if view.finding:
        parts.append(Text(f"last finding: {view.finding}", style="yellow"))
    return Group(*parts)


def _where(view: View) -> str:
    state = view.progress
    if state is None:
        return ""
    parts = [f"phase {state.phase}"]
    parts += [f"training step {state.step} of {state.total}"] if state.step is not None else []
    parts += [f"about {view.eta:.0f} s left"] if view.eta is not None else []
    return ", ".join(parts)


def _spark(name: str, series: Series | None) -> str:
    from proveout.judge.sparkline import bars_for, sparkline

    if series is None or not len(series):
        return ""
    bars, _ = sparkline(series, bars=bars_for(sys.stdout.encoding))
    return f"{name:<7}{bars} {series.values[-1]:.4g}"
