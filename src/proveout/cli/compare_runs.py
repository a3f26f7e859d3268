"""Shows the comparison of two runs as text, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from proveout.cli import options

if TYPE_CHECKING:
    from proveout.flow.comparing import Difference, RunComparison, StepComparison
    from proveout.judge.compare import Comparison

_MOST = 40


def show(found: RunComparison, form: str) -> None:
    """Print the comparison in one format."""
    if form == "json":
        options.echo_json(_document(found))
    elif form == "markdown":
        from proveout.report.clean import redactor

        click.echo(redactor()("\n".join(_markdown(found))))
    else:
        _text(found)


def _document(found: RunComparison) -> dict[str, object]:
    import msgspec

    from proveout.cli.compare import metrics_document

    document: dict[str, object] = msgspec.to_builtins(found)
    steps = [
        msgspec.to_builtins(step)
        | {"metrics": metrics_document(step.metrics) if step.metrics is not None else None}
        for step in found.steps
    ]
    return {"ok": found.ok} | document | {"steps": steps}


def _text(found: RunComparison) -> None:
    from proveout.cli.compare import show_metrics
    from proveout.report.clean import plain

    click.echo(f"{found.run}: {found.verdict}{_of(found.change)}")
    click.echo(f"baseline {found.baseline}: {found.baseline_verdict}{_of(found.baseline_change)}")
    for step in found.steps:
        click.echo(
            f"\n{step.standing}: {step.coverage}: {_verdicts(step)}"
            + (f" - {plain(step.why)}" if step.why else "")
        )
        for name, differences in (("configuration", step.config), ("environment", step.environment)):
            for line in _lines(differences):
                click.echo(f"  {name}: {plain(line)}")
        if step.metrics is not None:
            show_metrics(step.metrics)


def _of(change: str) -> str:
    return f", {change}" if change else ""


def _verdicts(step: StepComparison) -> str:
    return f"{step.verdict or 'not there'}, baseline {step.baseline_verdict or 'not there'}"


def _lines(differences: tuple[Difference, ...]) -> Iterator[str]:
    for one in differences[:_MOST]:
        yield f"{one.key}: {_shown(one.baseline)} -> {_shown(one.run)}"
    if len(differences) > _MOST:
        yield f"and {len(differences) - _MOST} more; --json has all of them"


def _shown(value: str | None) -> str:
    return "not set" if value is None else value


def _markdown(found: RunComparison) -> Iterator[str]:
    yield f"### {found.run} against {found.baseline}"
    yield ""
    yield (
        f"Result: **{found.verdict}**{_of(_code(found.change))}; baseline: **{found.baseline_verdict}**"
        + _of(_code(found.baseline_change))
    )
    yield ""
    yield "| Step | Run | Baseline | Standing | Why |"
    yield "|---|---|---|---|---|"
    for step in found.steps:
        cells = (
            str(step.coverage),
            step.verdict or "-",
            step.baseline_verdict or "-",
            step.standing,
            step.why,
        )
        yield "| " + " | ".join(map(_cell, cells)) + " |"
    for step in found.steps:
        if step.metrics is not None:
            yield ""
            yield f"**Metrics of {_cell(str(step.coverage))}**"
            yield ""
            yield from metrics_as_markdown(step.metrics)
        for name, differences in (("Configuration", step.config), ("Environment", step.environment)):
            if differences:
                yield ""
                yield f"<details><summary>{name} of {_cell(str(step.coverage))}: {len(differences)} differ</summary>"
                yield ""
                yield from _table(differences)
                yield ""
                yield "</details>"


def _table(differences: tuple[Difference, ...]) -> Iterator[str]:
    yield "| Key | Baseline | Run |"
    yield "|---|---|---|"
    for one in differences:
        yield f"| {_code(one.key)} | {_code(_shown(one.baseline))} | {_code(_shown(one.run))} |"


def metrics_as_markdown(found: Comparison) -> Iterator[str]:
    """What differs as a table, what is within tolerance as a number."""
    judged = [tag for tag in found.tags if tag.judged]
    same = sum(1 for tag in judged if tag.ok)
    yield f"{same} of {len(judged)} judged tags are within tolerance."
    if found.failing:
        yield ""
        yield "| Tag | Steps | Largest error | Relative | Allowed | Only in the run | Only in the baseline |"
        yield "|---|---|---|---|---|---|---|"
    for tag in found.failing:
        far = f"{tag.max_abs:.6g}" + (f" (step {tag.max_abs_step})" if tag.max_abs_step is not None else "")
        farther = f"{tag.max_rel:.3g}" + (
            f" (step {tag.max_rel_step})" if tag.max_rel_step is not None else ""
        )
        lacking = (str(len(tag.only_run)), str(len(tag.only_baseline)))
        yield f"| {_code(tag.tag)} | {len(tag.steps)} | {far} | {farther} | {tag.tolerance} | {' | '.join(lacking)} |"
    for side, names in (("baseline", found.only_run), ("run", found.only_baseline)):
        if names:
            yield ""
            yield f"The {side} lacks {len(names)} tags: {', '.join(map(_code, names))}"


def _cell(text: str) -> str:
    """Text that a Markdown table shows as it is."""
    flat = " ".join(text.split())
    for sign in "\\`*_[]<>|~":
        flat = flat.replace(sign, f"&#{ord(sign)};")
    return flat


def _code(text: str) -> str:
    """A value as code inside a table; a text that has none of its own back-quotes."""
    flat = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{flat}`" if flat else ""
