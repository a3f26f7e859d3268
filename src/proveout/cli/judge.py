"""``proveout judge``: a finished run judged again from its evidence; nothing is run and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proveout.cli import options

if TYPE_CHECKING:
    from proveout.domain.evidence import Judgement
    from proveout.domain.layout import AttemptLayout
    from proveout.domain.step import Step
    from proveout.domain.verdict import Verdict
    from proveout.store.runs import Run


@click.command("judge")
@click.argument("run", default="latest")
@options.state_dir
@options.as_json
def command(run: str, state_dir: Path | None, as_json: bool) -> int:
    """Judge the last attempt of every step of RUN again (a name, a prefix, a path, or latest).

    The evidence is read anew from the attempts' directories; the stored results stay as they are.

    Exit status: that of the verdict, as of a run.
    """
    import msgspec

    from proveout.domain.verdict import EXIT_STATUS, overall
    from proveout.store.runs import find, runs_root

    found = find(runs_root(state_dir), run)
    steps = {step.id: step for step in found.plan.steps}
    rows: list[dict[str, Any]] = []
    levels: dict[tuple[str, int], list[Verdict]] = {}
    last = {step_id: (number, files) for number, step_id, files in found.attempts()}
    for step_id, step in steps.items():
        row = _row(step, last.get(step_id), found, steps)
        rows.append(row)
        levels.setdefault((step.coverage.loop, step.coverage.level), []).append(row["verdict"])
    verdict = overall(levels.values())
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode({"result": verdict, "steps": rows}), indent=2))
    else:
        for row in rows:
            _show(row)
        click.echo(f"Result: {verdict}")
    return EXIT_STATUS[verdict]


def _row(
    step: Step, attempt: tuple[int, AttemptLayout] | None, run: Run, steps: dict[str, Step]
) -> dict[str, Any]:
    from proveout.domain.verdict import Verdict

    if attempt is None:
        verdict = Verdict.SKIPPED if step.skip_reason else Verdict.INCOMPLETE
        return {"step": step.id, "verdict": verdict, "reason": step.skip_reason or "no attempt was made"}
    number, files = attempt
    judgement, verdict, stored = _judged(step, number, files, run, steps)
    return {
        "step": step.id,
        "attempt": number,
        "verdict": verdict,
        "stored": stored,
        "findings": judgement.findings,
        "held": [citation for result in judgement.results for citation in result.held],
        "checks": [row for result in judgement.results for row in result.checks],
    }


def _judged(
    step: Step, number: int, files: AttemptLayout, run: Run, steps: dict[str, Step]
) -> tuple[Judgement, Verdict, Verdict | None]:
    from proveout.domain.errors import UsageError
    from proveout.domain.evidence import AttemptResult, End, ExitRecord
    from proveout.domain.files import read_json
    from proveout.flow.attempt import construction_of
    from proveout.flow.evidence import gather, related_to
    from proveout.flow.settle import settle
    from proveout.judge import judge

    try:
        stored = read_json(files.result, AttemptResult)
        ended = stored.exit
    except UsageError:
        stored = None
        ended = read_json(files.exit, ExitRecord) if files.exit.exists() else ExitRecord(end=End.LOST)
    imports = run.imports().get(step.coverage.loop, ())
    evidence = gather(step, number, files, ended, related_to(step, run, steps), imports=imports)
    judgement = judge(evidence)
    verdict = settle(ended, judgement, stored.triage if stored else None, construction_of(evidence))
    return judgement, verdict, stored.verdict if stored else None


def _show(row: dict[str, Any]) -> None:
    changed = row.get("stored") not in (None, row["verdict"])
    click.echo(f"{row['step']}: {row['verdict']}" + (f" (stored: {row['stored']})" if changed else ""))
    if "reason" in row:
        click.echo(f"  {row['reason']}")
    for finding in row.get("findings", ()):
        click.echo(f"  {finding.severity}: {finding.what} [{finding.id}] {finding.where}")
    for citation in row.get("held", ()):
        where = f" ({citation.where})" if str(citation.where) else ""
        click.echo(f"  held: {citation.what}{where}")
