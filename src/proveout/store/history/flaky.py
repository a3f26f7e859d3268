"""Steps that said different things of the same code."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from proveout.store.history.records import StepRow

_DECIDED = frozenset({"Pass", "Fail"})


class Flaky(msgspec.Struct, frozen=True, kw_only=True):
    """One step with one command on one state of the code that both passed and failed.

    ``verdicts`` are those of all attempts that decided, oldest first, with ``runs`` beside them. ``causes`` says
    what the failures named.
    """

    step: str
    coverage: str
    model: str
    change: str
    verdicts: tuple[str, ...]
    runs: tuple[str, ...]
    causes: tuple[str, ...] = ()

    @property
    def failure_share(self) -> float:
        """Share of the attempts that failed."""
        return self.verdicts.count("Fail") / len(self.verdicts)


def flaky(rows: Iterable[StepRow]) -> list[Flaky]:
    """Steps with differing verdicts on the same code and command, most changing first.

    Only Pass and Fail count: what was Blocked, skipped or stopped says nothing of the code. Where no checkout is
    recorded (the bench loop needs none), the code is that of proveout's version.
    """
    groups: dict[tuple[str, ...], list[StepRow]] = {}
    for row in rows:
        code = row.state or f"proveout {row.version}"
        groups.setdefault((row.step, row.model, row.command, code), []).append(row)
    found = [_of(group) for group in groups.values()]
    mixed = [one for one in found if set(one.verdicts) == _DECIDED]
    return sorted(mixed, key=lambda one: min(one.failure_share, 1 - one.failure_share), reverse=True)


def _of(rows: list[StepRow]) -> Flaky:
    first = rows[0]
    pairs = [(row.run, verdict) for row in rows for verdict in row.verdicts if verdict in _DECIDED]
    return Flaky(
        step=first.step,
        coverage=f"{first.loop} L{first.level} {first.variant}",
        model=first.model,
        change=first.change or f"proveout {first.version}",
        verdicts=tuple(verdict for _, verdict in pairs),
        runs=tuple(run for run, _ in pairs),
        causes=tuple(dict.fromkeys(row.cause for row in rows if row.cause)),
    )
