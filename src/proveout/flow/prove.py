"""The whole flow for one request, from plan to report; and going on with an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from proveout.domain.attribution import Against
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.files import write_atomic, write_json
from proveout.domain.finding import Finding
from proveout.domain.report import Report
from proveout.domain.step import Plan
from proveout.domain.verdict import Verdict
from proveout.flow.against import attribute, request
from proveout.flow.driving import driving
from proveout.flow.execute import Policy, execute_all
from proveout.flow.indexing import index_run
from proveout.flow.no_graph import rerun_without_graphs
from proveout.flow.observer import Observer
from proveout.flow.planning import Planned
from proveout.flow.provenance import preflight_run
from proveout.flow.reporting import build
from proveout.flow.warm import warm_runs
from proveout.report import FORMATS, render
from proveout.store.runs import Run, create

AGAIN_ON_RESUME = frozenset({Verdict.INCOMPLETE, Verdict.BLOCKED, Verdict.SKIPPED})


def refuse_rejected(plan: Plan) -> None:
    """Raises UsageError where something that was asked for would be rejected by the loop's own tree."""
    rejected = [finding for finding in plan.findings if finding.decides]
    if rejected:
        first, more = rejected[0], len(rejected) - 1
        also = f" (and {more} more: 'proveout plan' lists them)" if more else ""
        raise UsageError(first.what + also, where=str(first.where), remedy=first.remedy)


def prove(
    planned: Planned, root: Path, policy: Policy, observer: Observer, against: Against | None = None
) -> Report:
    """Run a plan in a new run directory under ``root``. Raises BlockedError as ``prepare`` and ``go_on`` do."""
    return go_on(prepare(planned, root, policy, against), policy, observer)


def prepare(planned: Planned, root: Path, policy: Policy, against: Against | None = None) -> Run:
    """A new run directory for a plan, with the state of its checkouts and how its attempts are to be started.

    ``against`` is a commit on which steps that do not pass are run again, to tell whose failure it is.

    Raises:
        BlockedError: no run directory can be made or written.
    """
    run = create(root, planned.plan)
    write_json(run.layout.checkouts, planned.checkouts)
    write_json(run.layout.launch, policy.launch.site.as_table())
    for role, patch in planned.patches().items():
        run.layout.patches.mkdir(exist_ok=True)
        write_atomic(run.layout.patch(role), patch)
    if against is not None:
        request(run, against)
    return run


def go_on(run: Run, policy: Policy, observer: Observer) -> Report:
    """Preflight and run the steps of ``run`` that are left, then write and return its report.

    Raises:
        BlockedError: another process drives the run, or its directory cannot be written any more.

    Ctrl-C, or a request to cancel, stops what runs, with its children, and gives the report of the incomplete run.
    """
    return go_on_all([run], policy, observer)[0]


def go_on_all(runs: Sequence[Run], policy: Policy, observer: Observer) -> list[Report]:
    """The same for several runs, which share the budget of the policy."""
    with ExitStack() as held:
        for run in runs:
            held.enter_context(run.held())
            observer.planned(run, run.plan)
        try:
            with driving(runs):
                going = [run for run in runs if _preflighted(run, policy, observer)]
                with warm_runs(going, policy):
                    execute_all(going, policy, observer)
                for run in going:
                    rerun_without_graphs(run, policy.launch, observer)
                    attribute(run, policy.launch, observer)
        except KeyboardInterrupt:
            for run in runs:
                run.journal.append("interrupted")
        except OSError as error:
            raise BlockedError(
                f"the run directory cannot be written: {error.strerror or error}",
                where=str(runs[0].layout.root),
                remedy="free space there; 'proveout resume' then goes on",
            ) from error
        return [write_reports(run) for run in runs]


def _preflighted(run: Run, policy: Policy, observer: Observer) -> bool:
    """Whether preflight lets the run go on; where not, its steps are settled."""
    findings = preflight_run(run)
    observer.preflighted(findings)
    blocking = [finding for finding in findings if finding.decides]
    if blocking:
        _block(run, blocking, policy)
    return not blocking


def _block(run: Run, findings: list[Finding], policy: Policy) -> None:
    reason = "; ".join(finding.what for finding in findings)
    judged = run.results()
    for step in run.plan.steps:
        known = judged.get(step.id)
        if not step.skip_reason and (known is None or known[-1].verdict in policy.again):
            run.journal.append("step_settled", step=step.id, verdict=Verdict.BLOCKED, reason=reason)
    run.journal.append("run_finished")


def write_reports(run: Run) -> Report:
    """The report of a run as it stands, written in every format and put into the history."""
    report = build(run)
    for name, (suffix, _) in FORMATS.items():
        write_atomic(run.layout.report(suffix), render(report, name))
    index_run(run, report)
    return report
