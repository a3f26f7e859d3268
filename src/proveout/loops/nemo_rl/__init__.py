"""Loop ``nemo-rl``: NeMo-RL's own scripts and recipes, run from its checkout."""

from __future__ import annotations

from functools import cache

from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding
from proveout.domain.loop import LoopContext, Progress
from proveout.domain.step import LevelRequest, Step
from proveout.domain.tree import Tree


@cache
def _tree(root: str) -> Tree:
    return Tree(root)


class NemoRL:
    """NeMo-RL, as proveout sees it."""

    name = "nemo-rl"
    default_levels = (0,)
    default_model = "the default models of NeMo-RL's own scripts"
    progress = Progress(
        step=r"=+ Step (?P<step>\d+)/(?P<total>\d+) =+",
        reward=r"Avg Reward: (?P<value>\S+)",
        loss=r"\bLoss: (?P<value>\S+)",
        phases={
            "setup": r"Setting up (compute cluster|model and training)",
            "import": r"Using default megatron checkpoint dir",
            "generation": r"Generating responses",
            "logprobs": r"Computing logprobs",
            "policy training": r"Training policy",
        },
    )

    @property
    def levels(self) -> dict[int, str]:
        """Level number -> title."""
        from proveout.loops.nemo_rl.variants import table

        return table().levels

    def check(self, context: LoopContext) -> tuple[Finding, ...]:
        """Raises UsageError without a NeMo-RL checkout, or for an unknown option or an override that is
        none."""
        from proveout.domain.config.overrides import Problem, parse
        from proveout.loops.nemo_rl import cpu
        from proveout.loops.nemo_rl.steps import unknown_option

        self._checkout(context)
        if cpu.wanted(context):
            cpu.check(context)
        else:
            unknown_option(context)
        for word in context.overrides:
            if isinstance(problem := parse(word), Problem):
                raise UsageError(problem.what, where=word, remedy=problem.remedy)
        return ()

    def steps(self, request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
        """NeMo-RL's unit tests of the level's surfaces, then the variants that the request means."""
        from proveout.loops.nemo_rl import cpu
        from proveout.loops.nemo_rl.steps import build, variants_for
        from proveout.loops.nemo_rl.units import type_check, unit_steps

        tree = self._checkout(context)
        if cpu.wanted(context):
            return cpu.steps(request, context, tree)
        return (
            *unit_steps(request.level, context, tree),
            *type_check(request.paths, request.level, context, tree),
            *(build(variant, context, tree) for variant in variants_for(request, tree)),
        )

    def verify(self, step: Step, context: LoopContext) -> tuple[Finding, ...]:
        """What in ``step`` this checkout would reject, ignore or not run."""
        from proveout.loops.nemo_rl.verify import verify

        return verify(step, context, self._checkout(context))

    def _checkout(self, context: LoopContext) -> Tree:
        root = context.checkouts.get(self.name)
        if not root:
            raise UsageError(
                "loop nemo-rl needs a NeMo-RL checkout", remedy="give --nemo-rl PATH or set NEMO_RL_REPO"
            )
        return _tree(root)


LOOP = NemoRL()
