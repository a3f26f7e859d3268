"""Interpreter and package versions against what the checkouts declare."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import interpreters, requirements, workers
from proveout.preflight.check import Check, Cost, notice, warning
from proveout.preflight.loops import has_checkout

LOOP_ROLE = {"nemo-rl": "nemo-rl", "verl": "verl"}
NEEDED = frozenset({"torch", "transformers", "ray"})


class Declared(msgspec.Struct, frozen=True):
    """What one tree declares, and the file that does."""

    role: str
    file: str
    python: str
    packages: tuple[Requirement, ...]


def read(role: str, checkout: str) -> Declared | None:
    """``requires-python`` and dependencies of pyproject.toml, or of setup.py where they are a plain list."""
    file = Path(checkout) / "pyproject.toml"
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    except FileNotFoundError:
        return None
    texts, setup = project.get("dependencies"), Path(checkout) / "setup.py"
    named = file if texts else setup
    texts = texts or _listed_in_setup(setup)
    return Declared(role, str(named), project.get("requires-python", ""), requirements.readable(texts))


def _listed_in_setup(file: Path) -> list[str]:
    """The list named ``install_requires``, read without running the file."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "install_requires" for target in node.targets
        ):
            try:
                return [str(item) for item in ast.literal_eval(node.value)]
            except ValueError:
                return []
    return []


def run(context: PreflightContext) -> Iterator[Finding]:
    """The worker of a loop against that loop's tree, and against Bridge's where it imports Bridge."""
    for worker in workers.of_run(context):
        if worker.loop not in LOOP_ROLE:
            continue
        try:
            answer = interpreters.report(context, worker)
        except BlockedError:
            continue  # the python check says so
        for role in (LOOP_ROLE[worker.loop], "bridge"):
            if role not in context.checkouts:
                continue
            declared = read(role, context.checkouts[role])
            if declared is None:
                continue
            yield from _python(declared, worker.name, answer["version"])
            yield from _packages(declared, worker.name, answer["packages"])


def _python(declared: Declared, who: str, version: str) -> Iterator[Finding]:
    try:
        fits = SpecifierSet(declared.python).contains(version)
    except InvalidSpecifier:
        return
    if not fits:
        say = notice if declared.role == "bridge" else warning
        yield say(
            "declared.python",
            f"{who} is Python {version}; {declared.role} declares {declared.python}",
            where=Where(file=declared.file, key="requires-python"),
            remedy="use the interpreter that the tree declares, or say in the report that this one was used",
        )


def _packages(declared: Declared, who: str, installed: dict[str, str | None]) -> Iterator[Finding]:
    wrong = []
    for need in declared.packages:
        version = installed.get(need.name, "")
        if version is None and need.name in NEEDED:
            wrong.append(f"{need.name} is not installed (declared {need.specifier or 'any'})")
        elif version and not requirements.satisfied(need, version):
            wrong.append(f"{need.name} {version} (declared {need.specifier})")
    if wrong:
        yield warning(
            "declared.packages",
            f"{who} differs from what {declared.role} declares: {', '.join(wrong)}",
            where=Where(file=declared.file, key="dependencies"),
            remedy="build the environment from the tree's lock file, or say in the report what was used",
        )


CHECK = Check(
    id="declared",
    proves="the workers' Python and packages are among those that the checkouts declare",
    remedy="build the environment from the checkout's lock file",
    cost=Cost.FAST,
    applies=has_checkout("nemo-rl", "verl"),
    run=run,
)
