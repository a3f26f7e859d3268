"""``proveout typecheck``: static typing with the checkout's own checker and configuration."""

from __future__ import annotations

from pathlib import Path

import click

from proveout.domain.verdict import EXIT_STATUS


@click.command(name="typecheck")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--checker", metavar="NAME", help="mypy, pyrefly or pyright (default: the one configured).")
@click.option("--python", metavar="PATH", help="The interpreter whose environment has the checker.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(files: tuple[Path, ...], checker: str | None, python: str | None, as_json: bool) -> int:
    """Check the types of each FILE as its checkout does; needs no GPU.

    The configuration is the nearest above the file: pyrefly.toml, pyrightconfig.json, mypy.ini, or the
    checker's table in pyproject.toml. The checker runs in the checkout's environment: uv's, else .venv, else
    this one.
    """
    from proveout.testaids.typecheck.check import check_files, overall

    answers = check_files(files, python=python, checker=checker)
    verdict = overall(answers)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode({"verdict": verdict, "checks": answers}).decode())
        return EXIT_STATUS[verdict]
    for answer in answers:
        for finding in answer.findings:
            click.echo(f"{finding.where}: {finding.severity}: {finding.what} [{finding.id}]")
        click.echo(answer.line)
    return EXIT_STATUS[verdict]
