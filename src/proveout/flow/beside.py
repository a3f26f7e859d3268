"""Runs of a step beside its attempts: judged by its own criteria, kept in the journal, gone on with by resume.

What they show is told beside the step's verdict and never changes it.
"""

from __future__ import annotations

from pathlib import Path

from proveout.domain.evidence import AttemptResult, End, Evidence, ExitRecord, ImportRecord
from proveout.domain.files import read_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.attempt import conclude, follow, start
from proveout.flow.evidence import gather
from proveout.flow.observer import Observer
from proveout.launch import Job, Launch
from proveout.store.runs import Run

STARTED, JUDGED = "beside_started", "beside_judged"


class Beside:
    """Runs of one kind (``against-base``, ``no-graph`` ...) in a directory of the run."""

    def __init__(self, run: Run, kind: str, folder: Path, launch: Launch, observer: Observer) -> None:
        self._run, self._kind, self.folder = run, kind, folder
        self._launch, self._observer = launch, observer

    def judged(self, step: Step) -> list[tuple[AttemptLayout, AttemptResult]]:
        """The runs of ``step`` that came to an end, oldest first."""
        found = [
            (files, read_json(files.result, AttemptResult))
            for _, files in self._started(step)
            if files.result.exists()
        ]
        return [(files, result) for files, result in found if result.verdict is not Verdict.INCOMPLETE]

    def once_more(
        self, step: Step, related: dict[str, Evidence], imports: tuple[ImportRecord, ...] = ()
    ) -> AttemptResult:
        """Finish the run of ``step`` that an earlier process left, or make a new one.

        Raises:
            BlockedError: it cannot be started.
        """
        for number, files in self._started(step):
            if not files.result.exists():
                files.root.mkdir(parents=True, exist_ok=True)
                found = self._launch.reattach(files)
                ended = (
                    found
                    if isinstance(found, ExitRecord)
                    else self._watch(step, number, files, found, related)
                )
                result = self._conclude(step, number, files, ended, related, imports)
                if ended.end not in (End.LOST, End.INTERRUPTED):
                    return result
        number = 1 + sum(event["event"] == STARTED for event in self._run.journal.read())
        where = step.coverage
        files = AttemptLayout(self.folder / f"{number:02d}-{where.loop}-L{where.level}-{where.variant}")
        self._run.journal.append(
            STARTED, kind=self._kind, number=number, step=step.id, directory=self._within(files)
        )
        job = start(step, files, self._launch)
        ended = self._watch(step, number, files, job, related)
        return self._conclude(step, number, files, ended, related, imports)

    def evidence(self, step: Step) -> Evidence | None:
        """What the last run of ``step`` left, for a step that needs it."""
        judged = self.judged(step)
        if not judged:
            return None
        files, result = judged[-1]
        return gather(step, result.number, files, result.exit, {})

    def _started(self, step: Step) -> list[tuple[int, AttemptLayout]]:
        return [
            (int(event["number"]), AttemptLayout(self._run.layout.root / str(event["directory"])))
            for event in self._run.journal.read()
            if event["event"] == STARTED and (event["kind"], event["step"]) == (self._kind, step.id)
        ]

    def _watch(
        self, step: Step, number: int, files: AttemptLayout, job: Job, related: dict[str, Evidence]
    ) -> ExitRecord:
        self._observer.started(step, number, files)
        try:
            return follow(step, job, files, self._observer)
        except KeyboardInterrupt:
            self._conclude(step, number, files, job.cancel(), related, ())
            raise

    def _conclude(  # noqa: PLR0917 - one run
        self,
        step: Step,
        number: int,
        files: AttemptLayout,
        ended: ExitRecord,
        related: dict[str, Evidence],
        imports: tuple[ImportRecord, ...],
    ) -> AttemptResult:
        result = conclude(step, number, files, ended, related, imports=imports)
        self._run.journal.append(JUDGED, kind=self._kind, number=number, step=step.id, verdict=result.verdict)
        return result

    def _within(self, files: AttemptLayout) -> str:
        return str(files.root.relative_to(self._run.layout.root))
