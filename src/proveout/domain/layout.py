"""The one place that knows the file names of a run directory."""

from __future__ import annotations

from pathlib import Path

from proveout.domain.step import Step

STATE_DIR = ".proveout"
RUNS_DIR = "runs"
HISTORY_FILE = "history.sqlite"


class AttemptLayout:
    """File names of one attempt directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.command = root / "command.sh"
        self.job = root / "job.json"
        self.env = root / "env.json"
        self.log = root / "run.log"
        self.metrics = root / "metrics.json"
        self.exit = root / "exit.json"
        self.process = root / "process.json"
        self.launch = root / "launch.json"
        self.config = root / "config.json"
        self.result = root / "result.json"
        self.findings = root / "findings.json"
        self.tensorboard = root / "tensorboard"
        self.checkpoints = root / "checkpoints"
        self.kept = root / "kept"
        self.seen = root / "seen.json"


class RunLayout:
    """File names of one run directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plan = root / "plan.json"
        self.checkouts = root / "checkouts.json"
        self.patches = root / "patches"
        self.preflight = root / "preflight.json"
        self.imports = root / "imports.json"
        self.launch = root / "launch.json"
        self.journal = root / "events.jsonl"
        self.lock = root / "lock"
        self.attempts = root / "attempts"
        self.reruns = root / "isolation"
        self.isolation = root / "isolation.json"
        self.against = root / "against"
        self.attributions = root / "against.json"
        self.without_graphs = root / "no-graph"
        self.junit = root / "junit.xml"
        self.driver = root / "driver.json"
        self.driver_log = root / "driver.log"
        self.cancel = root / "cancel.json"

    @property
    def id(self) -> str:
        """The run's identifier: its directory's name."""
        return self.root.name

    @property
    def journal_size(self) -> int:
        """Bytes in the journal; 0 where there is none."""
        try:
            return self.journal.stat().st_size
        except OSError:
            return 0

    def patch(self, role: str) -> Path:
        """The working tree's difference from its commit, of one checkout."""
        return self.patches / f"{role}.patch"

    def report(self, suffix: str) -> Path:
        """The report file of one format, by its suffix without the dot; JUnit's ``xml`` has its usual name."""
        return self.junit if suffix == "xml" else self.root / f"report.{suffix}"

    def attempt(self, number: int, step: Step) -> AttemptLayout:
        """The directory of one attempt; ``number`` counts from 1 over the whole run."""
        where = step.coverage
        return AttemptLayout(self.attempts / f"{number:02d}-{where.loop}-L{where.level}-{where.variant}")

    def rerun(self, number: int, step: Step, rung: str) -> AttemptLayout:
        """The directory of one re-run for isolation; ``number`` counts these alone, from 1."""
        where = step.coverage
        return AttemptLayout(self.reruns / f"{number:02d}-{where.loop}-L{where.level}-{where.variant}-{rung}")
