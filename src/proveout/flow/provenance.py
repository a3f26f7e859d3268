"""From where a loop's workers import: asked before the run, kept with it, asked again where nobody was there."""

from __future__ import annotations

import os

from proveout.domain.evidence import ImportRecord, StepResult
from proveout.domain.files import write_json
from proveout.domain.finding import Finding
from proveout.domain.preflight import PreflightContext
from proveout.domain.step import Step
from proveout.preflight import import_records, preflight_with_imports
from proveout.store.runs import Run

FOREIGN = "judge.provenance.foreign"


def preflight_run(run: Run) -> tuple[Finding, ...]:
    """Preflight a run; findings and imports are kept in its directory."""
    findings, imports = preflight_with_imports(_context(run))
    write_json(run.layout.preflight, findings)
    write_json(run.layout.imports, imports)
    return findings


def imports_of(run: Run, step: Step) -> tuple[ImportRecord, ...]:
    """What the workers of the step's loop said; a loop that builds their environments itself is asked after it."""
    loop, known = step.coverage.loop, run.imports()
    if not known.get(loop) and any(criterion.kind == "provenance" for criterion in step.criteria):
        known |= import_records(_context(run))
        write_json(run.layout.imports, known)
    return known.get(loop, ())


def wrong_tree(step: Step, settled: dict[str, StepResult]) -> str:
    """Why nothing more of the step's loop is evidence: an earlier step ran other code than that under test."""
    for result in settled.values():
        if result.coverage.loop == step.coverage.loop:
            for finding in result.attempts[-1].findings if result.attempts else ():
                if finding.id == FOREIGN:
                    return f"{result.id} ran other code than that under test: {finding.what}"
    return ""


def _context(run: Run) -> PreflightContext:
    plan = run.plan
    running = tuple(step for step in plan.steps if not step.skip_reason)
    return PreflightContext(
        loops=tuple(dict.fromkeys(step.coverage.loop for step in plan.steps)),
        steps=running,
        checkouts={checkout.role: checkout.path for checkout in run.checkouts()},
        run_dir=str(run.layout.root),
        env=dict(os.environ),
        image=str((run.launch_site() or {}).get("image", "")),
        gpus=max((step.resources.gpus for step in running), default=0),
    )
