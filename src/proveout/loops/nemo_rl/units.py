"""NeMo-RL's own unit tests by surface, with the extras and flags that really select them."""

from __future__ import annotations

from collections.abc import Iterable

from proveout.domain.loop import LoopContext
from proveout.domain.step import ATTEMPT_DIR, Command, Coverage, Criterion, Resources, Step
from proveout.domain.tree import Tree
from proveout.loops.nemo_rl.marks import EXCLUSIVE, GATED, TestFile, read_marks, selected
from proveout.loops.nemo_rl.steps import NAME, UNSET, environment
from proveout.loops.nemo_rl.variants import Surface, surfaces

_RELEVANT = ("", "mcore", "vllm")
"""Selections that a Megatron policy with vLLM or Megatron generation exercises."""
_NO_CACHE = ("-p", "no:cacheprovider")


def unit_steps(level: int, context: LoopContext, tree: Tree) -> tuple[Step, ...]:
    """One step for each surface of ``level`` and each selection of marks that its files need."""
    return tuple(
        step
        for surface in surfaces()
        if surface.level == level
        for step in _surface_steps(surface, context, tree)
    )


def _surface_steps(surface: Surface, context: LoopContext, tree: Tree) -> list[Step]:
    wanted, substitutions = _files(surface, tree)
    files = [read_marks(tree, path) for path in _expand(wanted, tree)]
    steps = []
    for only in _RELEVANT:
        mine = [file for file in files if selected(file, only, gated=True)]
        if mine:
            steps.append(_step(surface, only, mine, context, tree, substitutions))
    return steps


def _files(surface: Surface, tree: Tree) -> tuple[list[str], tuple[str, ...]]:
    said: list[str] = []
    if surface.was and tree.exists(surface.was):
        return [surface.was], ()
    present = [path for path in surface.files if tree.exists(path)]
    if surface.was and present:
        said.append(f"{surface.was} does not exist in this checkout: {', '.join(present)} stand in for it")
    for path in surface.files:
        if path not in present and (stand_in := tree.nearest(path, [f"{path.rpartition('/')[0]}/test_*.py"])):
            said.append(f"{path} does not exist in this checkout: {stand_in} stands in for it")
            present.append(stand_in)
    return list(dict.fromkeys(present)), tuple(said)


def _expand(paths: Iterable[str], tree: Tree) -> list[str]:
    return [
        file
        for path in paths
        for file in (tree.glob(f"{path}/**/test_*.py") if not path.endswith(".py") else [path])
    ]


def _step(  # noqa: PLR0917 - all of one surface
    surface: Surface,
    only: str,
    files: list[TestFile],
    context: LoopContext,
    tree: Tree,
    said: tuple[str, ...],
) -> Step:
    gated = context.options.get("hf_gated") == "1"
    left_out = sum(selected(file, only, gated=True) - selected(file, only, gated) for file in files)
    limitations: tuple[str, ...] = ()
    if not any(selected(file, only, gated) for file in files):
        gated, left_out = True, 0
    if left_out:
        limitations = (
            f"{left_out} {surface.surface} unit tests that need a gated checkpoint were left out ({GATED})",
        )
    if not gated:
        files = [file for file in files if selected(file, only, gated=False)]
    extra = ("--extra", EXCLUSIVE[only]) if only else ()
    flags = ((f"--{only.replace('_', '-')}-only",) if only else ()) + (("--hf-gated",) if gated else ())
    name = f"unit-{surface.surface}" + (f"-{only.replace('_', '-')}" if only else "")
    env = environment(context)
    return Step(
        id=f"{NAME}-L{surface.level}-{name}",
        coverage=Coverage(loop=NAME, level=surface.level, variant=name),
        deliverable=f"NeMo-RL unit tests: {surface.surface}" + (f" ({only})" if only else ""),
        claim=f"NeMo-RL's own unit tests of its {surface.surface} surface passed",
        command=Command(
            argv=(
                "uv",
                "run",
                *extra,
                "--group",
                "test",
                "pytest",
                "-q",
                *_NO_CACHE,
                f"--junitxml={ATTEMPT_DIR}/tests.xml",
                *(file.path for file in files),
                *flags,
            ),
            env=env,
            unset=UNSET,
            cwd=str(tree.root),
        ),
        criteria=(Criterion(kind="tests", params={"junit": "tests.xml"}),),
        resources=Resources(gpus=2, minutes=surface.minutes, timeout_minutes=max(60.0, 3 * surface.minutes)),
        limitations=limitations,
        substitutions=said,
    )


def type_check(paths: Iterable[str], level: int, context: LoopContext, tree: Tree) -> tuple[Step, ...]:
    """The checkout's own type checker over changed Python files of NeMo-RL."""
    files = tuple(
        path for path in paths if path.startswith("nemo_rl/") and path.endswith(".py") and tree.exists(path)
    )
    if not files:
        return ()
    pyrefly = tree.exists("pyrefly.toml")
    said = ("mypy is gone from this checkout: pyrefly stands in for it",) if pyrefly else ()
    tool = ("pyrefly", "check") if pyrefly else ("mypy",)
    return (
        Step(
            id=f"{NAME}-L{level}-types",
            coverage=Coverage(loop=NAME, level=level, variant="types"),
            deliverable="NeMo-RL type check",
            claim="NeMo-RL's type checker accepts the changed files",
            command=Command(
                argv=("uv", "run", "--group", "test", *tool, *files),
                env=environment(context),
                cwd=str(tree.root),
            ),
            resources=Resources(minutes=2),
            substitutions=said,
        ),
    )
