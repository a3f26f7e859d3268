"""How a run goes on, and how much of it may go on at once."""

from __future__ import annotations

import msgspec

from proveout.domain.step import Resources, Step
from proveout.domain.verdict import Verdict
from proveout.flow.locate import outside
from proveout.launch import Launch


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What steps may use at the same time: attempts, and GPUs and nodes in all (None: no limit)."""

    jobs: int = 1
    gpus: int | None = None
    nodes: int | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How a run goes on: after a step that did not pass, where attempts start, what is tried again, what at once."""

    launch: Launch
    keep_going: bool = True
    again: frozenset[Verdict] = frozenset({Verdict.INCOMPLETE})
    budget: Budget = Budget()


class Slots:
    """Who uses what of a budget now. Several runs may share one."""

    def __init__(self, budget: Budget, scheduler: str) -> None:
        self._budget, self._here = budget, scheduler == "local"
        self._users: dict[tuple[int, str], Step] = {}

    def too_large(self, step: Step) -> str:
        """Why the step can never run within the budget, or ''."""
        wanted = step.resources
        for name, limit in (("gpus", self._budget.gpus), ("nodes", self._budget.nodes)):
            if limit is not None and getattr(wanted, name) > limit:
                return f"it needs {getattr(wanted, name)} {name}, {limit} may be used"
        return ""

    def fits(self, step: Step) -> bool:
        """Whether the step can run beside those that do.

        Two steps that write the same files outside of their attempts never run at once; nor, on one machine, do
        two that use its GPUs.
        """
        users = list(self._users.values())
        if len(users) >= self._budget.jobs:
            return False
        if self._here and step.resources.gpus and any(user.resources.gpus for user in users):
            return False
        mine = set(_outputs(step))
        if mine and any(mine.intersection(_outputs(user)) for user in users):
            return False
        used = [user.resources for user in users]
        return all(
            limit is None or sum(getattr(each, name) for each in [*used, step.resources]) <= limit
            for name, limit in (("gpus", self._budget.gpus), ("nodes", self._budget.nodes))
        )

    def take(self, run: object, step: Step) -> None:
        """The step runs."""
        self._users[id(run), step.id] = step

    def give(self, run: object, step: Step) -> None:
        """The step runs no more."""
        self._users.pop((id(run), step.id), None)

    @property
    def used(self) -> list[Resources]:
        """What is in use, by step."""
        return [step.resources for step in self._users.values()]


def _outputs(step: Step) -> tuple[str, ...]:
    from pathlib import Path

    return outside(step, Path("/nowhere"))
