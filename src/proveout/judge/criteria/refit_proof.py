"""Refit proof: the weights that generation sampled with are those that the checkpoint and the training gave.

Agreement of generation and policy is blind in two ways: weights that are wrong from the import on are exported
just as wrong, and weights that never moved agree with anything. So what counts as evidence is three things
together: the first transfer, before any step, brings exactly the weights of the original checkpoint; later ones
bring weights that moved; and after that, generation's probabilities are still the policy's.

The transfers stand in ``refit.jsonl`` of the attempt, one JSON object each, as proveout_cpu writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.judge import say

FILE = "refit.jsonl"


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer of weights to a generation worker; norms are L2 over all weights."""

    worker: str
    transfer: int
    version: int | None = None
    received: int
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    wrong_shape: tuple[str, ...] = ()
    checksum: str = ""
    change: float | None
    from_original: float | None
    largest_from_original: float | None = None

    @property
    def step(self) -> int:
        """The training step that made these weights; the next step samples with them."""
        return self.version if self.version is not None else self.transfer - 1


class Agreement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A series of generation against policy: the least or the most that its values may be."""

    tag: str
    least: float | None = None
    most: float | None = None


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``agreement``: what must hold at a step after the weights moved; ``from_original``: the largest difference
    (absolute, any weight) that the first transfer may have from the original checkpoint; ``fresh``: False where
    the run resumed, so that its first transfer is of trained weights; ``moved``: False where the run's updates are
    known to be too small to see, which then limits the claim instead of failing it."""

    agreement: tuple[Agreement, ...]
    from_original: float = 0.0
    fresh: bool = True
    moved: bool = True


def refit_proof(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The first transfer is the original checkpoint, later ones moved, and generation agreed with the policy then."""
    wanted = msgspec.convert(dict(params), Params)
    file = Path(evidence.attempt_dir) / FILE
    transfers = list(_read(file))
    results: list[Finding | Citation] = [item for item in transfers if isinstance(item, Finding)]
    told = [item for item in transfers if isinstance(item, tuple)]
    if not told and not results:
        results.append(
            say.error(
                "refit_proof.none",
                "no transfer of weights to generation was recorded: what generation sampled with is not known",
                where=Where(file=str(file)),
            )
        )
    by_worker: dict[str, list[tuple[int, Transfer]]] = {}
    for line, transfer in told:
        by_worker.setdefault(transfer.worker, []).append((line, transfer))
    moved_at: int | None = None
    for entries in by_worker.values():
        results += _names(entries, file)
        if wanted.fresh:
            results += _first(entries[0], file, wanted.from_original)
        line, first_moved = next(((n, t) for n, t in entries[1:] if (t.change or 0) > 0), (0, None))
        if first_moved is None:
            still = say.error if wanted.moved else say.warning
            results.append(
                still(
                    "refit_proof.still",
                    f"none of {len(entries)} transfers to {entries[0][1].worker} changed a weight: agreement of "
                    "generation and policy shows nothing",
                    where=Where(file=str(file)),
                    remedy="raise the learning rate or run more steps",
                )
            )
        else:
            moved_at = max(moved_at or 0, first_moved.step)
            results.append(
                _cite(
                    file,
                    line,
                    f"transfer {first_moved.transfer} moved the weights by {first_moved.change:.3g}",
                )
            )
    results += _same(by_worker, file)
    if moved_at is not None:
        for item in wanted.agreement:
            results += _agrees(evidence, item, moved_at)
    return CriterionResult(
        kind="refit_proof",
        findings=tuple(item for item in results if isinstance(item, Finding)),
        held=tuple(item for item in results if isinstance(item, Citation)),
    )


def _read(file: Path) -> Iterator[tuple[int, Transfer] | Finding]:
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        try:
            # Python writes NaN and infinities, which JSON has no numbers for.
            plain = line.replace(b"NaN", b"null").replace(b"-Infinity", b"null").replace(b"Infinity", b"null")
            yield number, msgspec.json.decode(plain, type=Transfer)
        except msgspec.MsgspecError as error:
            yield say.error(
                "refit_proof.unreadable",
                f"no record of a transfer: {error}",
                where=Where(file=str(file), line=number),
            )


def _names(entries: list[tuple[int, Transfer]], file: Path) -> Iterator[Finding]:
    for line, one in entries:
        for what, names in (
            ("did not bring", one.missing),
            ("brought unknown", one.extra),
            ("brought in another shape", one.wrong_shape),
        ):
            if names:
                yield say.error(
                    "refit_proof.names",
                    f"transfer {one.transfer} to {one.worker} {what} {len(names)} weights, {names[0]} first",
                    where=Where(file=str(file), line=line),
                    boundary=Boundary.PROVIDER,
                    remedy="compare the export's names with those of the original checkpoint",
                )
        if one.change is None or one.from_original is None:
            yield say.error(
                "refit_proof.not-finite",
                f"transfer {one.transfer} to {one.worker} brought weights that are not finite",
                where=Where(file=str(file), line=line),
            )


def _first(entry: tuple[int, Transfer], file: Path, allowed: float) -> Iterator[Finding | Citation]:
    line, one = entry
    if one.step != 0:
        yield say.error(
            "refit_proof.late",
            f"the first transfer recorded is of version {one.step}, not of the untrained weights",
            where=Where(file=str(file), line=line),
        )
    elif one.largest_from_original is None or one.largest_from_original > allowed:
        yield say.error(
            "refit_proof.import",
            f"before any step the exported weights differ from the original checkpoint by "
            f"{one.largest_from_original} at most ({one.from_original} in norm)",
            where=Where(file=str(file), line=line),
            boundary=Boundary.PROVIDER,
            remedy="the import or the export of the model is wrong: compare the mapping of the weights",
        )
    else:
        yield _cite(file, line, "the first transfer brought the weights of the original checkpoint exactly")


def _same(by_worker: Mapping[str, list[tuple[int, Transfer]]], file: Path) -> Iterator[Finding]:
    """All workers got the same weights in the same transfer; the first one in which they did not is told."""
    (first, reference), *others = by_worker.items() or (("", []),)
    for worker, entries in others:
        for (line, one), (_, other) in zip(entries, reference, strict=False):
            if one.checksum != other.checksum:
                yield say.error(
                    "refit_proof.workers-differ",
                    f"from transfer {one.transfer} on (weights after step {one.step}) {worker} and {first} got "
                    f"different weights: they moved by {one.change:.3g} and {other.change:.3g} since the transfer "
                    "before",
                    where=Where(file=str(file), line=line),
                    boundary=Boundary.GENERATION,
                    remedy="some rank exports weights that it has not received yet: look for a missing "
                    "parameter gathering before the export",
                )
                break


def _agrees(evidence: Evidence, item: Agreement, moved_at: int) -> Iterator[Finding | Citation]:
    series = evidence.metrics.get(item.tag)
    points = list(series or ())
    before = [point for point in points if point[0] <= moved_at]
    later = [point for point in points if point[0] > moved_at]
    if series is None or not later:
        yield say.error(
            "refit_proof.unmeasured",
            f"{item.tag} was not recorded after step {moved_at}, in which the weights moved",
            where=Where(metric=item.tag),
            remedy="run one step more",
        )
        return
    if wrong := [point for point in before if not _within(item, point[1])]:
        step, value = wrong[0]
        yield say.error(
            "refit_proof.policy",
            f"{item.tag} is {value:g} at step {step}, with the weights of the original checkpoint in generation; "
            f"{_bound(item)} is right: the policy computes otherwise than the original model",
            evidence=(say.point(item.tag, series, step, "the policy against the original model"),),
            boundary=Boundary.PROVIDER,
            remedy="the import of the model is wrong: compare its mapping, layers and settings with the original",
        )
    elif wrong := [point for point in later if not _within(item, point[1])]:
        step, value = wrong[0]
        yield say.error(
            "refit_proof.disagrees",
            f"{item.tag} is {value:g} at step {step}, and {_bound(item)} is right: generation does not sample with "
            "the weights of the policy",
            evidence=(say.point(item.tag, series, step, "generation against policy"),),
        )
    else:
        step, value = later[-1]
        yield say.point(item.tag, series, step, f"{item.tag} is {value:g} with weights that had moved")


def _within(item: Agreement, value: float) -> bool:
    return (item.least is None or value >= item.least) and (item.most is None or value <= item.most)


def _bound(item: Agreement) -> str:
    return f"at least {item.least:g}" if item.least is not None else f"at most {item.most:g}"


def _cite(file: Path, line: int, what: str) -> Citation:
    return Citation(what=what, where=Where(file=str(file), line=line))
