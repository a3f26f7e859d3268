"""NeMo-RL's vendored Megatron-Bridge against the one under test, file by file."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from pathlib import Path

from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import Check, Cost, warning

VENDORED = Path("3rdparty/Megatron-Bridge-workspace/Megatron-Bridge")
SOURCE = Path("src/megatron/bridge")


def applies(context: PreflightContext) -> bool:
    """Whether there are both: a NeMo-RL with a filled submodule, and another Bridge under test."""
    if not {"bridge", "nemo-rl"} <= context.checkouts.keys():
        return False
    vendored = Path(context.checkouts["nemo-rl"]) / VENDORED
    other = vendored.resolve() != Path(context.checkouts["bridge"]).resolve()
    return other and (vendored / SOURCE).is_dir()


def sources(root: Path) -> dict[str, Path]:
    """The Python files of a Bridge tree by their path below ``src/megatron/bridge``."""
    place = root / SOURCE
    return {str(file.relative_to(place)): file for file in place.rglob("*.py") if file.is_file()}


def run(context: PreflightContext) -> Iterator[Finding]:
    """One finding with the counts and the first names, when the two are not the same."""
    place = Path(context.checkouts["nemo-rl"]) / VENDORED
    theirs, ours = sources(place), sources(Path(context.checkouts["bridge"]))
    both = theirs.keys() & ours.keys()
    groups = {
        "differ": sorted(name for name in both if not filecmp.cmp(theirs[name], ours[name], shallow=False)),
        "are only in the Bridge under test": sorted(ours.keys() - both),
        "are only in the vendored one": sorted(theirs.keys() - both),
    }
    if any(groups.values()):
        counts = ", ".join(f"{len(names)} files {what}" for what, names in groups.items() if names)
        yield warning(
            "vendored.drift",
            f"NeMo-RL's vendored Megatron-Bridge is not the one under test: {counts}",
            where=Where(file=str(place)),
            remedy="mount the checkout there, or put its src first on the PYTHONPATH of the workers",
            evidence=[
                Citation(what=what, text="\n".join(names[:20])) for what, names in groups.items() if names
            ],
        )


CHECK = Check(
    id="vendored",
    proves="NeMo-RL's vendored Megatron-Bridge has the same source files as the one under test",
    remedy="mount the checkout over the vendored tree, or put it first on the workers' PYTHONPATH",
    cost=Cost.FAST,
    applies=applies,
    run=run,
)
