"""One result for each kind of answer: a cause, a reading, a hang, incomplete, unknown, noise, none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from proveout.domain.evidence import End, ExitRecord, TriageResult
from proveout.domain.finding import Boundary, Citation
from proveout.domain.metrics import MetricTable
from proveout.domain.verdict import Verdict
from proveout.triage import numerics, recorder
from proveout.triage.catalog import STAGES, Rule, load
from proveout.triage.citing import cite, cite_all, telling
from proveout.triage.decide import Candidate, Ending, Sorted, is_exception
from proveout.triage.hang import Hang
from proveout.triage.scan import Event, LogScan
from proveout.triage.stages import last_mark, markers

_UNFINISHED = {
    End.TIMED_OUT: "the launcher stopped it at its time limit; nothing in the log says why it took so long",
    End.INTERRUPTED: "it was interrupted",
    End.NOT_STARTED: "it was never started",
    End.EVICTED: "the scheduler or the machine ended it",
    End.LOST: "nobody saw it end",
}
_VERDICTS = {
    Boundary.ENVIRONMENT: Verdict.BLOCKED,
    Boundary.INCOMPLETE: Verdict.INCOMPLETE,
    Boundary.UNKNOWN: Verdict.INCOMPLETE,
    Boundary.NOISE: Verdict.PASS,
    Boundary.NONE: Verdict.PASS,
}
_FRAME_STAGES = (
    ("checkpoint", ("save_checkpoint", ":_save_")),
    ("resume", ("load_checkpoint", "load_dist_checkpoint", "load_fsdp_dtensor_checkpoint")),
    (
        "refit",
        ("update_weight", "refit_policy", "sync_model_weights", "_broadcast_to_vllm", "sharding_manager"),
    ),
    ("logprob", ("get_logprobs", "compute_log_prob", "policy_logprobs")),
    ("rollout", ("generate_sequences", "run_multi_turn_rollout", "compute_reward", "compute_score")),
    (
        "train_step",
        (
            "forward_backward",
            "megatron_policy_worker.py:train",
            "policy_worker.py:train",
            "update_actor",
            "train_step",
            "optimizer.step",
            "policy_training",
        ),
    ),
    (
        "provider_build",
        ("provide_distributed_model", "_build_model_optimizer", "load_hf_weights", "load_weights_hf"),
    ),
    ("engine_start", ("run_engine_core", "init_device", "wait_for_engine_startup")),
)


_WORK = ("rollout", "logprob", "train_step")
_BEFORE_WORK = ("preflight", "ray_start", "provider_build")


class Answers:
    """Builds the result for each kind of answer."""

    def __init__(
        self,
        scans: Sequence[LogScan],
        found: Sorted,
        end: Ending,
        alive: list[Candidate],
        outlived: list[Candidate],
    ) -> None:
        self.scans, self.found, self.end = scans, found, end
        self.alive, self.outlived = alive, outlived

    def forget_survived(self) -> None:
        """Where nothing tells of a bad end, what the run trained on after is no cause of anything."""
        if all(c.survived for c in self.alive) and not self.end.failed and not self._bad_signs(None):
            self.outlived += self.alive
            self.alive = []

    def cause(self, best: Candidate) -> TriageResult:
        """A failure with its cause."""
        rule = best.rule
        confidence = _confidence(best, self.alive)
        if rule is not None:
            remedy, what = rule.remedy, rule.explanation
        else:
            remedy = f"read the traceback that ends at {self._place(best.event)}"
            what = f"raised in {best.frame}" if best.frame else "an exception that no rule knows"
        return TriageResult(
            boundary=best.boundary,
            verdict=_verdict(best.boundary, rule),
            subkind=best.subkind,
            stage=self._stage(best.event),
            confidence=confidence,
            cause=self._cite(telling(best.event), what),
            aftermath=self._after(best),
            noise=self._noise(),
            remedy=remedy,
        )

    def reading(self, event: Event) -> TriageResult:
        """A number in the log that is wrong."""
        rule = event.rule
        return TriageResult(
            boundary=rule.boundary if rule else Boundary.NUMERICS,
            verdict=Verdict.FAIL,
            subkind=rule.subkind if rule else "",
            stage="train_step",
            confidence="high" if event.count > 1 else "medium",
            cause=self._cite(event, rule.explanation if rule else "a value out of bounds"),
            aftermath=self._after(None),
            noise=self._noise(),
            remedy=rule.remedy if rule else "",
        )

    def metric(self, told: numerics.Reading) -> TriageResult:
        """A number in the metric table that is wrong."""
        rule = load().by_id.get(
            "numerics-token-mult-prob-error" if told.subkind == "logprob-mismatch" else ""
        )
        return TriageResult(
            boundary=Boundary.NUMERICS,
            verdict=Verdict.FAIL,
            subkind=told.subkind,
            stage="train_step",
            confidence="high",
            cause=Citation(what=told.story, where=told.citation.where, text=told.citation.text),
            aftermath=self._after(None),
            noise=self._noise(),
            remedy=rule.remedy
            if rule
            else "compare this run's first bad step with a run of the unchanged checkout",
        )

    def hang(self, stuck: Hang) -> TriageResult:
        """A collective that not all ranks entered."""
        rule = stuck.first.rule
        return TriageResult(
            boundary=Boundary.HANG,
            verdict=Verdict.BLOCKED if stuck.blocked else Verdict.FAIL,
            subkind=stuck.subkind,
            stage=self._stage(stuck.first),
            confidence="medium",
            cause=self._cite(stuck.first, stuck.story),
            aftermath=self._after(None),
            noise=self._noise(),
            remedy="; ".join(part for part in (stuck.story, rule.remedy if rule else "") if part),
        )

    def stuck(self, found: recorder.Recorded | None, told: Hang | None) -> TriageResult:
        """A collective that not all ranks entered: by the flight recorder where there is one, else by the log."""
        if found is not None:
            return self._by_recorder(found, told)
        if told is None:
            raise ValueError("neither a dump nor a log line")
        return self.hang(told)

    def _by_recorder(self, found: recorder.Recorded, stuck: Hang | None) -> TriageResult:
        """What torch's flight recorder shows of the collective that did not end."""
        return recorder.result(
            found,
            stage=self._stage(stuck.first if stuck else None),
            cause=self._cite(stuck.first, found.story) if stuck else None,
            aftermath=self._after(None),
            noise=self._noise(),
        )

    def incomplete(self, why: str, event: Event | None = None) -> TriageResult:
        """A run that shows no failure and no end."""
        place = f" ({self._place(event)})" if event is not None else ""
        rule = event.rule if event is not None else None
        return TriageResult(
            boundary=Boundary.INCOMPLETE,
            verdict=Verdict.INCOMPLETE,
            subkind=rule.subkind if rule else "log-ends",
            stage=self._stage(event),
            confidence="medium",
            cause=self._cite(event, why) if event is not None else None,
            noise=self._noise(),
            remedy=rule.remedy if rule else "",
            undecided_because=why + place,
        )

    def unreadable(self) -> TriageResult:
        """A file that is no log: what looks like words in it says nothing."""
        return self.incomplete("the file does not look like a log: most of it is not text")

    def rest(
        self,
        best: Candidate | None,
        exit_: ExitRecord | None,
        planned: int | None,
        metrics: MetricTable | None,
    ) -> TriageResult:
        """No cause: unknown, incomplete, noise or none."""
        if exit_ is not None and exit_.end in _UNFINISHED:
            return self.incomplete(_UNFINISHED[exit_.end])
        ended_well = self._ended_well(exit_)
        if (exit_ is not None and not exit_.ok) or (not ended_well and self._bad_signs(best)):
            return self._unknown(best, exit_)
        reached = self._last_step(metrics)
        if planned is not None and reached is not None and reached < planned:
            return self.incomplete(f"the last step shown is {reached} of {planned} planned")
        if exit_ is not None:
            return self._judged()
        return self._shown_well() if ended_well else self.incomplete(self._no_end())

    def _shown_well(self) -> TriageResult:
        """The log shows a good end: Pass where it also shows work of its own, or nothing of a loop at all."""
        if self._only_resumed():
            return self._resumed_past_end()
        if self._only_planned():
            return self.incomplete("training steps were planned and none is printed, though it ended well")
        if self._without_work():
            return self.incomplete("it exited with status 0 and shows no training, generation or test")
        return self._quiet()

    def _without_work(self) -> bool:
        """Whether the whole log was seen, its exit status alone says that it ended well, and no work is shown."""
        scan = self.scans[0]
        if scan.tail_offset or self.end.completed >= 0 or self.end.last_progress >= 0:
            return False
        return scan.tracker.reached <= set(_BEFORE_WORK)

    def _only_resumed(self) -> bool:
        """Whether it took up a checkpoint and printed neither a step nor a rollout of its own."""
        tail, begins = self.scans[0].tail, self.scans[0].tail_offset
        resumed = last_mark("resume", tail)
        if resumed < 0 or begins + resumed < self.end.last_progress:
            return False
        return all(last_mark(stage, tail[resumed:]) < 0 for stage in _WORK)

    def _only_planned(self) -> bool:
        """Whether the whole log was seen, tells of planned training steps, and shows none."""
        scan = self.scans[0]
        if scan.tail_offset or "train_step" in scan.tracker.reached or self.end.last_progress >= 0:
            return False
        return markers().planned.search(scan.tail) is not None

    def _resumed_past_end(self) -> TriageResult:
        said = self.incomplete("it resumed from a checkpoint and printed no step of its own")
        return replace(
            said,
            subkind="resumed-past-end",
            remedy="resume with more total steps than the checkpoint has, or start afresh",
        )

    def _judged(self) -> TriageResult:
        """It exited with status 0, yet somebody asks: the log does not say what the criteria found."""
        return TriageResult(
            boundary=Boundary.UNKNOWN,
            verdict=Verdict.INCOMPLETE,
            subkind="no-cause",
            stage=self._stage(None),
            confidence="low",
            noise=self._noise(),
            remedy="read what the criteria found; the log itself names no failure",
            undecided_because="it exited with status 0 and neither the log nor the metrics show a failure",
        )

    def _ended_well(self, exit_: ExitRecord | None) -> bool:
        end = self.end
        return end.exit_zero > end.exit_failed or (
            exit_ is None and end.exit_failed < 0 and end.completed >= 0
        )

    def _bad_signs(self, best: Candidate | None) -> bool:
        dead = any(e.file != 0 or e.last_offset > self.end.completed for e in self.found.wrappers)
        raised = any(
            is_exception(e) and (e.file != 0 or e.last_offset > self.end.last_progress)
            for e in self.found.aftermath
        )
        return best is not None or dead or raised or bool(self.found.cut) or self.end.exit_failed >= 0

    def _no_end(self) -> str:
        if not any(scan.size for scan in self.scans):
            return "the log is empty"
        return "the log ends without an error and without a sign that the run ended"

    def _last_step(self, metrics: MetricTable | None) -> int | None:
        told = metrics.last_step() if metrics is not None else None
        return told if told is not None else self.end.last_step

    def _quiet(self) -> TriageResult:
        noisy = [*self.found.noise, *self.found.wrappers, *self.found.aftermath]
        noise = self._noise(extra=[*self.found.wrappers, *self.found.aftermath])
        alarming = [event for event in noisy if event.rule is None or event.rule.strength > 1]
        boundary = Boundary.NOISE if alarming or self.outlived else Boundary.NONE
        return TriageResult(
            boundary=boundary,
            verdict=Verdict.PASS,
            subkind=alarming[0].rule.subkind if alarming and alarming[0].rule else "",
            stage="shutdown",
            confidence="medium" if boundary is Boundary.NOISE else "high",
            noise=noise,
        )

    def _blamed(self, event: Event, boundary: Boundary) -> TriageResult:
        """Only a wrapper is left, and it names the part that died: an answer without confidence."""
        rule = event.rule
        return TriageResult(
            boundary=boundary,
            verdict=_verdict(boundary, None),
            subkind=rule.subkind if rule else "",
            stage=self._stage(event),
            confidence="low",
            cause=self._cite(event, rule.explanation if rule else ""),
            aftermath=self._after(None),
            noise=self._noise(),
            remedy=rule.remedy if rule else "",
            undecided_because="the log tells which part died and not why",
        )

    def _unknown(self, best: Candidate | None, exit_: ExitRecord | None) -> TriageResult:
        blamed = self._names_a_part() if best is None else None
        if blamed is not None and blamed.rule is not None:
            return self._blamed(blamed, blamed.rule.boundary)
        subkind, why, remedy = self._undecided(best, exit_)
        event = best.event if best else (self.found.wrappers[0] if self.found.wrappers else None)
        return TriageResult(
            boundary=Boundary.UNKNOWN,
            verdict=Verdict.INCOMPLETE,
            subkind=subkind,
            stage=self._stage(event),
            confidence="low",
            aftermath=self._after(None),
            noise=self._noise(),
            remedy=remedy,
            undecided_because=why,
        )

    def _names_a_part(self) -> Event | None:
        """The wrapper that tells which part died; one that only waited in vain counts where nothing died before."""
        ordered = sorted(self.found.wrappers, key=lambda e: (e.file, e.order))
        sure = [e for e in ordered if e.rule and e.rule.boundary not in (Boundary.UNKNOWN, Boundary.HANG)]
        waited = [e for e in ordered[:1] if e.rule and e.rule.boundary is Boundary.HANG]
        first = next(iter([*sure, *waited]), None)
        same = [e for e in ordered if first is not None and e.rule is first.rule]
        return next((e for e in same if "RayTaskError" not in e.line.text), first)

    def _undecided(self, best: Candidate | None, exit_: ExitRecord | None) -> tuple[str, str, str]:
        """Sub-kind, why nothing decides, and what would."""
        workers = "keep the worker logs (ray session logs/worker-*.err) and run triage on them too"
        if best is not None:
            text = best.event.line.text.strip()[:200]
            return "unmatched", f"no rule knows it and no frame tells whose code raised it: {text}", workers
        if exit_ is not None and (exit_.signal == 9 or exit_.code == 137):
            return (
                "killed",
                "it was killed by signal 9 and nothing says by whom: the host ran out of memory, or it was killed",
                "look at dmesg or the job's memory accounting (sacct --format=State,MaxRSS) at that time",
            )
        if exit_ is not None and exit_.signal is not None:
            return "killed", f"it was killed by signal {exit_.signal} and the log does not say why", workers
        if self.found.cut:
            line = self.found.cut[0].header_line
            why = f"the traceback at line {line} is cut off before its exception"
            return "traceback-cut", why, "get the log's remaining lines"
        if self.found.wrappers:
            text = self.found.wrappers[0].line.text.strip()[:160]
            return "worker-died", f"a worker died and its own output is not in these logs: {text}", workers
        return "no-cause", "it ended with an error status and the log names no error", workers

    def _after(self, best: Candidate | None) -> tuple[Citation, ...]:
        others = [
            c.event for c in self.alive if c is not best and c.event is not (best.event if best else None)
        ]
        events = [*others, *self.found.wrappers, *self.found.aftermath]
        if best is not None:
            events += self.found.hangs
        return self._cite_all(events)

    def _noise(self, extra: Iterable[Event] = ()) -> tuple[Citation, ...]:
        return self._cite_all([*self.found.noise, *(c.event for c in self.outlived), *extra])

    def _cite_all(self, events: Iterable[Event]) -> tuple[Citation, ...]:
        return cite_all(events, self.scans)

    def _cite(self, event: Event, what: str) -> Citation:
        return cite(event, what, self.scans)

    def _place(self, event: Event) -> str:
        return f"{self.scans[event.file].path}:{event.line.number}"

    def _stage(self, event: Event | None) -> str:
        trace = event.trace if event is not None else None
        for stage, names in _FRAME_STAGES:
            if trace is not None and any(name in trace.path for name in names):
                return stage
        if event is not None and event.file == 0 and event.stage:
            return event.stage
        reached = self.scans[0].tracker.reached
        return next((stage for stage in reversed(STAGES) if stage in reached), "preflight")


def _verdict(boundary: Boundary, rule: Rule | None) -> Verdict:
    if rule is not None and rule.verdict:
        return Verdict(rule.verdict)
    return _VERDICTS.get(boundary, Verdict.FAIL)


def _confidence(best: Candidate, alive: Sequence[Candidate]) -> str:
    if best.rule is None:
        return "low"
    rivals = [c for c in alive if c is not best and c.boundary not in (best.boundary, Boundary.UNKNOWN)]
    close = any(best.score - rival.score < 5 for rival in rivals)
    if best.rule.strength >= 3:
        return "medium" if close else "high"
    return "low" if close or best.rule.strength == 1 else "medium"
