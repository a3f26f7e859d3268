"""The Bridge's own tests that come before any loop: cheap, and closest to the change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proveout.domain.checkout import compose_pythonpath, import_roots
from proveout.domain.step import ATTEMPT_DIR, Command, Coverage, Criterion, Resources, Step
from proveout.domain.tree import Tree
from proveout.plan.change import Change
from proveout.plan.families import Family

ALWAYS = (
    "tests/unit_tests/models/test_model_provider_mixin.py",
    "tests/unit_tests/models/test_param_mapping.py",
)
DOCUMENTED = ("tests/unit_tests/training/test_integration.py",)
REGISTRATION = "tests/unit_tests/models/test_autobridge_registration_matrix.py"


def bridge_tests(  # noqa: PLR0917 - what a plan knows
    checkouts: Mapping[str, str],
    change: Change,
    tests: Iterable[str],
    families: Iterable[Family],
    loop: str,
    level: int,
    existing_path: str,
) -> Step | None:
    """One step for all of them, or None where the checkout has none.

    A documented file that is gone is named.
    """
    tree = Tree(checkouts["bridge"])
    said: list[str] = []
    changed = [
        file.path
        for file in change.files
        if file.role == "bridge"
        and file.path.startswith("tests/unit_tests/")
        and file.path.rpartition("/")[2].startswith("test_")
        and file.path.endswith(".py")
    ]
    registration = [REGISTRATION] if any(family.new for family in families) else []
    wanted = [*ALWAYS, *registration, *tests, *changed]
    chosen = [path for path in dict.fromkeys(wanted) if tree.exists(path)]
    for path in DOCUMENTED:
        if tree.exists(path):
            chosen.insert(2, path)
        else:
            said.append(
                f"{path} does not exist in this checkout: the tests of the changed paths stand in for it"
            )
    for path in ALWAYS:
        if path not in chosen and (stand_in := tree.nearest(path, [f"{path.rpartition('/')[0]}/test_*.py"])):
            said.append(f"{path} does not exist in this checkout: {stand_in} stands in for it")
            chosen.insert(0, stand_in)
    if not chosen:
        return None
    roots = {name: root for name, root in import_roots(checkouts, "").items() if name.startswith("megatron")}
    return Step(
        id="bridge-tests",
        coverage=Coverage(loop=loop, level=level, variant="bridge-tests"),
        deliverable="Bridge-side checks",
        claim="the Bridge's own unit tests of what changed passed",
        command=Command(
            argv=(
                "uv",
                "run",
                "--frozen",
                "python",
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                f"--junitxml={ATTEMPT_DIR}/tests.xml",
                *_without_nested(chosen),
            ),
            env={"PYTHONPATH": compose_pythonpath(roots, existing_path), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=checkouts["bridge"],
        ),
        criteria=(Criterion(kind="tests", params={"junit": "tests.xml"}),),
        resources=Resources(gpus=0, minutes=2.0 + len(chosen), timeout_minutes=60.0),
        substitutions=tuple(said),
    )


def _without_nested(paths: list[str]) -> list[str]:
    """Files that a named directory holds already are left out, so that no test runs twice."""
    return [
        path for path in paths if not any(path != other and path.startswith(other + "/") for other in paths)
    ]
