"""``proveout unit``: the documented unit test configurations of a NeMo-RL checkout."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from proveout.domain.errors import UsageError
from proveout.domain.verdict import EXIT_STATUS, EXIT_USAGE

if TYPE_CHECKING:
    from proveout.testaids.unit import Outcome

_NAMES = ("default", "hf-gated", "mcore", "mcore-hf-gated")
_JUNIT = "unit.xml"


@click.command(name="unit", context_settings={"ignore_unknown_options": True})
@click.argument("configuration", type=click.Choice(_NAMES))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST ARGUMENTS]")
@click.option(
    "--repo", type=click.Path(path_type=Path), help="The checkout (default: $NEMO_RL_REPO, or here)."
)
@click.option("--python", metavar="PATH", help="Use this interpreter instead of uv run.")
@click.option("--gpus", default=2, show_default=True, type=click.IntRange(0), help="GPUs that must be here.")
@click.option("--container", metavar="IMAGE", help="Run in a container of this image.")
@click.option("--hermetic", is_flag=True, help="Run in a container of the image that $CONTAINER names.")
@click.option("--engine", default="docker", show_default=True, help="docker or podman.")
@click.option("--dry-run", is_flag=True, help="Print the command and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON after pytest's output.")
def command(
    configuration: str,
    arguments: tuple[str, ...],
    repo: Path | None,
    python: str | None,
    gpus: int,
    container: str | None,
    hermetic: bool,
    engine: str,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run a documented CONFIGURATION of the unit tests; what follows -- goes to pytest, word by word.

    \b
    default         without the hf_gated and mcore tests
    hf-gated        the default and hf_gated tests, without mcore
    mcore           only mcore tests, without those marked hf_gated
    mcore-hf-gated  only mcore tests, with those marked hf_gated

    A run in which no test passed is never a success.
    """
    from proveout.testaids.checkout import find_checkout
    from proveout.testaids.configurations import CONFIGURATIONS, environment_of, junit_of, unit_command
    from proveout.testaids.container import out_in_container
    from proveout.testaids.gpus import gpu_environment
    from proveout.testaids.unit import run_pytest

    root = find_checkout(repo)
    chosen = CONFIGURATIONS[configuration]
    image = container or (_image_of_the_environment() if hermetic else None)
    environment = environment_of(chosen, None if image else python)
    with TemporaryDirectory(prefix="proveout-unit-") as out:
        junit = junit_of(root, arguments)
        words = arguments
        if junit is None:
            junit = Path(out) / _JUNIT
            words = (*arguments, f"--junitxml={out_in_container(_JUNIT) if image else junit}")
        built = unit_command(root, chosen, words, environment, os.environ)
        argv, env, cwd = built.argv, dict(built.env), built.cwd
        if image:
            argv, env = _contained(root, image, argv, Path(out), engine), {}
        if dry_run:
            shown = [f"{name}={value}" for name, value in env.items()]
            click.echo(f"cd {shlex.quote(cwd)} && {shlex.join([*shown, *argv])}")
            return 0
        if not image:
            env |= gpu_environment(gpus, environment, root, os.environ)
        outcome = run_pytest(argv, cwd=cwd, env={**os.environ, **env}, junit=junit)
    return _say(outcome, configuration, _hint(outcome, root, configuration, arguments), as_json)


def _image_of_the_environment() -> str:
    image = os.environ.get("CONTAINER")
    if not image:
        raise UsageError(
            "--hermetic needs an image", where="CONTAINER", remedy="set it, or use --container IMAGE"
        )
    return image


def _contained(root: Path, image: str, argv: tuple[str, ...], out: Path, engine: str) -> tuple[str, ...]:
    from proveout.testaids.container import container_argv, unit_in_container

    hf_home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    interactive = os.environ.get("CI") != "true" and sys.stdin.isatty()
    run = unit_in_container(root, image, argv, hf_home=hf_home, out=out, interactive=interactive)
    return container_argv(run, engine)


def _hint(outcome: Outcome, root: Path, configuration: str, arguments: tuple[str, ...]) -> str:
    """Where no test ran: the configuration that the named test files are marked for."""
    from proveout.testaids.configurations import is_place
    from proveout.testaids.unit import marks_in

    if outcome.exit_status != 5:
        return ""
    files = [each.partition("::")[0] for each in arguments if is_place(root, arguments, each)]
    paths = [path for file in files for path in (root / "tests" / file, root / file) if path.exists()]
    marks = marks_in(paths)
    parts = [name for mark, name in (("mcore", "mcore"), ("hf_gated", "hf-gated")) if mark in marks]
    wanted = "-".join(parts)
    return f"these tests are marked for: proveout unit {wanted}" if wanted not in ("", configuration) else ""


def _say(outcome: Outcome, configuration: str, hint: str, as_json: bool) -> int:
    if as_json:
        import msgspec

        answer = {"configuration": configuration, "hint": hint, **msgspec.to_builtins(outcome)}
        click.echo(msgspec.json.encode(answer).decode())
    else:
        click.echo(f"{outcome.verdict}: unit tests, {configuration}: {outcome.reason}")
        if hint:
            click.echo(f"  {hint}")
    return EXIT_USAGE if outcome.usage_error else EXIT_STATUS[outcome.verdict]
