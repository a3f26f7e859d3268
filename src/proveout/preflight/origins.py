"""Compares where a worker takes Megatron from with the checkouts under test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import blocked, warning
from proveout.preflight.interpreters import BRIDGE, MCORE

MCORE_IN_BRIDGE = Path("3rdparty") / "Megatron-LM"
NAME_A_CORE = "initialise Bridge's submodule 3rdparty/Megatron-LM, or name a Megatron-Core with --mcore"


def bridge_source(checkout: str) -> Path:
    """The directory that must come first on the worker's sys.path."""
    return Path(checkout) / "src"


def pinned_mcore(context: PreflightContext) -> Path | None:
    """Bridge's own Megatron-LM, where that submodule is there; else None."""
    bridge = context.checkouts.get("bridge")
    place = Path(bridge) / MCORE_IN_BRIDGE if bridge else None
    return place if place and (place / "megatron" / "core" / "__init__.py").exists() else None


def search_path(context: PreflightContext) -> str:
    """PYTHONPATH under which the checkouts win: Bridge, then Megatron-Core, then what was there."""
    bridge, mcore = context.checkouts.get("bridge"), context.checkouts.get("mcore") or pinned_mcore(context)
    entries = [str(bridge_source(bridge))] if bridge else []
    entries += [str(mcore)] if mcore else []
    rest = [entry for entry in context.env.get("PYTHONPATH", "").split(":") if entry and entry not in entries]
    return ":".join([*entries, *rest])


@dataclass(frozen=True)
class Asked:
    """One worker that was asked: the check that asks, the worker, its program, and its answer.

    ``answer`` is that of the interpreter probe: ``modules``, ``imported`` and ``path``.
    """

    check: str
    who: str
    program: str
    answer: Mapping[str, Any]
    remedy: str

    def origin(self, module: str) -> str | None:
        """The file from which the worker would import the module."""
        found: str | None = self.answer["modules"][module]["origin"]
        return found

    def where(self, module: str) -> Where:
        """Where a finding about the module points."""
        return Where(file=self.program, key=module)

    def path(self) -> tuple[Citation, ...]:
        """The worker's sys.path as evidence."""
        shown = [entry for entry in self.answer["path"] if not entry.endswith((".zip", "lib-dynload"))]
        return (Citation(what="the worker's sys.path, in order", text="\n".join(shown[:20])),)


def differences(
    context: PreflightContext, check: str, who: str, program: str, answer: Mapping[str, Any]
) -> Iterator[Finding]:
    """Findings for one worker's answer."""
    asked = Asked(check, who, program, answer, f"give the worker PYTHONPATH={search_path(context)}")
    bridge, mcore = context.checkouts.get("bridge"), context.checkouts.get("mcore")
    if bridge:
        yield from _under_test(asked, BRIDGE, bridge_source(bridge) / "megatron" / "bridge")
    if mcore:
        yield from _under_test(asked, MCORE, Path(mcore) / "megatron" / "core")
    elif bridge:
        yield from _beside_bridge(asked, pinned_mcore(context))


def _under_test(asked: Asked, module: str, inside: Path) -> Iterator[Finding]:
    origin = asked.origin(module)
    if origin is None:
        yield _absent(asked, module)
    elif not _within(origin, inside):
        yield blocked(
            f"{asked.check}.other-copy",
            f"{asked.who} would import {module} from {origin}, not from the checkout under test ({inside})",
            where=asked.where(module),
            remedy=asked.remedy,
            evidence=asked.path(),
        )
    elif (imported := asked.answer["imported"].get(module)) and not _within(imported["file"], inside):
        yield blocked(
            f"{asked.check}.import",
            f"{asked.who} finds {module} in the checkout, but importing it gives "
            f"{imported['file'] or imported['error']}",
            where=asked.where(module),
            remedy="repair what the import needs, or look for a hook that replaces it",
        )


def _absent(asked: Asked, module: str) -> Finding:
    why = asked.answer["modules"][module]["error"] or "no such module on its path"
    return blocked(
        f"{asked.check}.absent",
        f"{asked.who} cannot import {module}: {why}",
        where=asked.where(module),
        remedy=asked.remedy,
        evidence=asked.path(),
    )


def _beside_bridge(asked: Asked, pinned: Path | None) -> Iterator[Finding]:
    """No Megatron-Core is under test: that of Bridge's submodule is expected, another one is said."""
    origin = asked.origin(MCORE)
    if origin is None:
        yield _absent(asked if pinned else replace(asked, remedy=NAME_A_CORE), MCORE)
    elif pinned is None:
        yield warning(
            f"{asked.check}.mcore-fallback",
            f"{asked.who} takes {MCORE} from {origin}, as Bridge's own {MCORE_IN_BRIDGE} is not there",
            where=asked.where(MCORE),
            remedy=NAME_A_CORE,
            evidence=asked.path(),
        )
    elif not _within(origin, pinned / "megatron" / "core"):
        yield warning(
            f"{asked.check}.mcore-other",
            f"{asked.who} takes {MCORE} from {origin}, not from Bridge's own {pinned}",
            where=asked.where(MCORE),
            remedy=asked.remedy,
            evidence=asked.path(),
        )


def _within(origin: str | None, directory: Path) -> bool:
    return origin is not None and Path(origin).resolve().is_relative_to(directory.resolve())
