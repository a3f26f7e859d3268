"""The table of commands: name -> module and one-line help. A new command is one module and one line here."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("proveout.cli.run", "Plan, preflight, launch, judge, triage and report; what most people type."),
    "plan": ("proveout.cli.plan", "The levels that a change needs, with reasons and exact commands."),
    "resume": ("proveout.cli.resume", "Go on with the steps of a run that are left."),
    "doctor": ("proveout.cli.doctor", "Preflight alone: would a run here test the change?"),
    "data": ("proveout.cli.data", "Write data sets in the shape that verl reads."),
    "model": ("proveout.cli.model", "Look at, fetch or make a model."),
    "report": ("proveout.cli.report", "Print the report of a run."),
    "watch": ("proveout.cli.watch", "Follow a run from any terminal until it ends."),
    "attach": ("proveout.cli.attach", "Does an attach script of ray.sub still lead anywhere?"),
    "cancel": ("proveout.cli.cancel", "Stop a run with all that it started, whoever drives it."),
    "sync": (
        "proveout.cli.sync",
        "Copy checkouts exactly as they are to another machine, and verify them there.",
    ),
    "runs": ("proveout.cli.runs", "List the runs of this directory."),
    "dump": ("proveout.cli.dump", "Write the scalars of event files as JSON (as json_dump_tb_logs.py does)."),
    "check": ("proveout.cli.check", "Check metric expressions (as check_metrics.py does)."),
    "compare": ("proveout.cli.compare", "Compare two runs or metric files; write a golden file."),
    "judge": ("proveout.cli.judge", "Judge a finished run again from its evidence."),
    "history": ("proveout.cli.history", "What happened before: runs, trends, regressions, flaky steps."),
    "init": ("proveout.cli.init", "Write proveout.toml and the CI workflow for this checkout."),
    "skill": ("proveout.cli.skill", "Print how a coding agent uses proveout."),
    "unit": ("proveout.cli.unit", "NeMo-RL's documented unit test configurations; no test is no success."),
    "functional": (
        "proveout.cli.functional",
        "One functional script of NeMo-RL, judged, its checks printed.",
    ),
    "assets": ("proveout.cli.assets", "Prepare test assets once, and reuse them by content."),
    "stack": (
        "proveout.cli.stack",
        "Environments in which real stacks run on a CPU: install, list, check, remove.",
    ),
    "isolate": (
        "proveout.cli.isolate",
        "Re-run a failed step with one thing changed, to find what the failure needs.",
    ),
    "typecheck": ("proveout.cli.typecheck", "Static typing with the checkout's own checker."),
    "impacted": ("proveout.cli.impacted", "List the tests that a change can reach, each with its reason."),
    "faults": ("proveout.cli.faults", "Inject known faults into the bench loop: which would be caught?"),
    "triage": ("proveout.cli.triage", "Say which boundary failed from logs alone, and which line caused it."),
}
