"""Loop ``verl``: verl's Megatron wrapper and examples, run from its checkout."""

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


class Verl:
    """verl, as proveout sees it."""

    name = "verl"
    default_levels = (0,)
    default_model = "the default model of verl's own wrapper"
    progress = Progress(
        step=r"Training Progress:.*?(?P<step>\d+)/(?P<total>\d+) \[",
        reward=r"critic/rewards/mean:(?:np\.float64\()?(?P<value>[-+.\deE]+)",
        loss=r"actor/(?:pg_)?loss:(?:np\.float64\()?(?P<value>[-+.\deE]+)",
        phases={
            "setup": r"Started a local Ray instance|Connecting to existing Ray cluster",
            "import": r"(?i)loading weights|load_checkpoint",
            "training": r"Training Progress:",
            "checkpointing": r"Saving checkpoint to",
        },
    )

    @property
    def levels(self) -> dict[int, str]:
        """Level number -> title."""
        from proveout.loops.verl.variants import table

        return table().levels

    def check(self, context: LoopContext) -> tuple[Finding, ...]:
        """What a reader must know of the wrapper. Raises UsageError without a verl checkout, or for an
        unknown option, wrapper variable, or an override that is none."""
        from proveout.domain.config.overrides import Problem, parse
        from proveout.loops.verl import cpu
        from proveout.loops.verl.steps import check_options
        from proveout.loops.verl.variants import table
        from proveout.loops.verl.verify import wrapper_findings
        from proveout.loops.verl.wrapper import read_wrapper

        if cpu.wanted(context):
            return cpu.check(context)
        tree = self._checkout(context)
        for word in context.overrides:
            if isinstance(problem := parse(word), Problem):
                raise UsageError(problem.what, where=word, remedy=problem.remedy)
        if tree.exists(table().wrapper):
            check_options(context, read_wrapper(tree, table().wrapper, {}))
        return wrapper_findings(tree)

    def steps(self, request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
        """The variants that the request means, those that another one needs first."""
        from proveout.loops.verl import cpu
        from proveout.loops.verl.steps import build
        from proveout.loops.verl.variants import choose

        if cpu.wanted(context):
            return cpu.steps(request, context)
        tree = self._checkout(context)
        return tuple(build(variant, context, tree) for variant in choose(request.level, request.variant))

    def verify(self, step: Step, context: LoopContext) -> tuple[Finding, ...]:
        """What in ``step`` this checkout would reject or ignore."""
        from proveout.loops.verl import cpu
        from proveout.loops.verl.verify import verify

        if cpu.wanted(context):
            return cpu.verify(step, context)
        return verify(step, context, self._checkout(context))

    def _checkout(self, context: LoopContext) -> Tree:
        root = context.checkouts.get(self.name)
        if not root:
            raise UsageError("loop verl needs a verl checkout", remedy="give --verl PATH or set VERL_REPO")
        return _tree(root)


LOOP = Verl()
