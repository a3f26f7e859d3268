"""``proveout triage``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from proveout.cli import options


@click.command("triage")
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path))
@options.as_json
@click.option("--rules", "list_rules", is_flag=True, help="List the rules with what they mean.")
@click.option("--prepare", is_flag=True, help="Only compile the rules, which else follows the first answer.")
@click.option("--why", metavar="LINE", help="Explain one line: its text, or its number in the first LOG.")
@click.option("--label", metavar="BOUNDARY", help="Store LOG as a case with the boundary that is right.")
@click.option("--subkind", default="", metavar="NAME", help="With --label: the sub-kind.")
@click.option(
    "--cause", default="", metavar="LINE", help="With --label: the line that caused it (number or text)."
)
@click.option("--remedy", default="", metavar="TEXT", help="With --label: what to do about it.")
def command(
    logs: tuple[Path, ...],
    as_json: bool,
    list_rules: bool,
    prepare: bool,
    why: str | None,
    label: str | None,
    subkind: str,
    cause: str,
    remedy: str,
) -> int:
    """Say which boundary failed from LOGs alone, which line caused it, and what to do.

    LOGS: the main console first, then worker, Slurm or kernel logs of the same run; plain or gzip. Exit status:
    that of the verdict (0 Pass, 1 Fail, 3 Blocked, 4 Incomplete), 2 for wrong usage.

    --label stores the log's case in the user's rules directory (PROVEOUT_RULES) and, where --cause names the
    line, a rule of one's own made from it, checked like the shipped ones.
    """
    from proveout.domain.errors import UsageError

    if prepare:
        return _prepare()
    if list_rules:
        return _rules(as_json)
    if why is not None:
        return _why(why, logs, as_json)
    if not logs:
        raise UsageError("no log to read", remedy="proveout triage LOG [LOG...]")
    if label is not None:
        from proveout.triage.learn import learn

        stored = learn(logs, label, subkind=subkind, cause=cause, remedy=remedy)
        click.echo(json.dumps(stored.as_object(), indent=2) if as_json else stored.as_text())
        return 0 if stored.right else 1
    return _answer(logs, as_json)


def _answer(logs: tuple[Path, ...], as_json: bool) -> int:
    from proveout.domain.verdict import EXIT_STATUS
    from proveout.triage import triage
    from proveout.triage.engine import scanner
    from proveout.triage.render import as_object, as_text

    result = triage(logs)
    click.echo(json.dumps(as_object(result), indent=2, ensure_ascii=False) if as_json else as_text(result))
    scanner().prepare_next()
    return EXIT_STATUS[result.verdict]


def _prepare() -> int:
    from proveout.triage.engine import scanner

    scanner().prepare_next()
    return 0


def _rules(as_json: bool) -> int:
    from proveout.triage.catalog import load
    from proveout.triage.explain import rule_object, rule_text

    rules = load().rules
    if as_json:
        click.echo(json.dumps([rule_object(rule) for rule in rules], indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join(rule_text(rule) for rule in rules) + f"\n\n{len(rules)} rules")
    return 0


def _why(line: str, logs: tuple[Path, ...], as_json: bool) -> int:
    from proveout.triage.explain import explain, rule_object, rule_text
    from proveout.triage.reader import line_number

    if line.isdigit() and logs:
        line = line_number(logs[0], int(line))
    rules = explain(line)
    if as_json:
        click.echo(json.dumps({"line": line, "rules": [rule_object(rule) for rule in rules]}, indent=2))
    else:
        click.echo(line.strip())
        click.echo("\n\n".join(rule_text(rule) for rule in rules) if rules else "  no rule knows this line")
    return 0
