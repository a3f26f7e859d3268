"""``proveout doctor``: preflight alone."""

from __future__ import annotations

import os
import sys

import click

from proveout.domain.preflight import PreflightContext, Worker

ROLES = {"bridge": "BRIDGE_REPO", "mcore": "MCORE_REPO", "nemo-rl": "NEMO_RL_REPO", "verl": "VERL_REPO"}


@click.command(name="doctor")
@click.option("--loop", "loops", multiple=True, help="Loop that the run will use (again for more). [bench]")
@click.option("--bridge", help="Megatron-Bridge checkout under test. [$BRIDGE_REPO]")
@click.option("--mcore", help="Megatron-Core checkout under test. [$MCORE_REPO]")
@click.option("--nemo-rl", help="NeMo-RL checkout. [$NEMO_RL_REPO]")
@click.option("--verl", help="verl checkout. [$VERL_REPO]")
@click.option("--model", help="Model directory or ORG/NAME. [$MODEL_PATH]")
@click.option("--gpus", default=0, show_default=True, help="GPUs that the run wants.")
@click.option("--run-dir", default=".", show_default=True, help="Where the run will write.")
@click.option(
    "--python", "pythons", multiple=True, help="Interpreter of the loop's workers (again for more)."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Replace a limit or switch.")
@click.option("--only", multiple=True, metavar="ID", help="Only this check (again for more).")
@click.option("--list", "listing", is_flag=True, help="List the checks instead.")
@click.option("--markdown", is_flag=True, help="With --list: as the page docs/preflight.md.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    loops: tuple[str, ...],
    bridge: str | None,
    mcore: str | None,
    nemo_rl: str | None,
    verl: str | None,
    model: str | None,
    gpus: int,
    run_dir: str,
    pythons: tuple[str, ...],
    settings: tuple[str, ...],
    only: tuple[str, ...],
    listing: bool,
    markdown: bool,
    as_json: bool,
) -> int:
    """Would a run here test the change? Exit status 0, or 3 when something blocks it."""
    from proveout.preflight import examine, show

    if listing:
        click.echo(show.catalogue_json() if as_json else show.catalogue(markdown=markdown), nl=False)
        return 0
    wanted = loops or ("bench",)
    paths = {"bridge": bridge, "mcore": mcore, "nemo-rl": nemo_rl, "verl": verl}
    checkouts = {role: paths[role] or os.environ.get(name) for role, name in ROLES.items()}
    context = PreflightContext(
        run_dir=run_dir,
        loops=wanted,
        checkouts={role: path for role, path in checkouts.items() if path},
        env=dict(os.environ),
        workers=tuple(
            Worker(name=f"{loop} ({python})", argv=(python,), loop=loop)
            for loop in wanted
            for python in pythons
        ),
        model=model or os.environ.get("MODEL_PATH"),
        gpus=gpus,
        settings=_settings(settings),
    )
    progress = show.Progress(sys.stderr, quiet=as_json)
    results = examine(context, only, progress.begin)
    progress.end()
    click.echo(show.results_json(results) if as_json else show.results(results), nl=False)
    return show.exit_status(results)


def _settings(words: tuple[str, ...]) -> dict[str, str]:
    for word in words:
        if "=" not in word:
            raise click.UsageError(f"--set takes NAME=VALUE, not {word!r}")
    return dict(word.split("=", 1) for word in words)
