"""NeMo-RL's container fingerprint against the checkout, and what that fingerprint cannot see."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import git, limits
from proveout.preflight.check import Check, Cost, notice, warning

REMEDY = "set NRL_FORCE_REBUILD_VENVS=true, rebuild the container, or use the checkout that it was built from"


def applies(context: PreflightContext) -> bool:
    """Inside a NeMo-RL container whose environments are not going to be rebuilt anyway."""
    env = context.environment("nemo-rl")
    rebuilt = env.get("NRL_FORCE_REBUILD_VENVS", "").lower() == "true"
    return "nemo-rl" in context.checkouts and bool(env.get("NRL_CONTAINER")) and not rebuilt


def fingerprint(checkout: str) -> dict[str, str]:
    """The fingerprint of a checkout: MD5 of two files, commits of the submodules (NeMo-RL, tools/)."""
    answer = {}
    for name in ("pyproject.toml", "uv.lock"):
        file = Path(checkout) / name
        known = file.is_file()
        answer[name] = (
            hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest() if known else "missing"
        )
    for path, pinned in git.submodules(checkout).items():
        here = (Path(checkout) / path / ".git").exists()
        commit = git.ask(str(Path(checkout) / path), "rev-parse", "HEAD").strip() if here else pinned
        answer[f"submodules/{path}"] = commit
    return answer


def run(context: PreflightContext) -> Iterator[Finding]:
    """No fingerprint, another fingerprint, uncommitted changes in a submodule."""
    checkout = context.checkouts["nemo-rl"]
    file = Path(limits.text(context, "container.fingerprint"))
    where = Where(file=str(file))
    try:
        built: dict[str, str] = json.loads(file.read_bytes())
    except FileNotFoundError:
        yield notice("container.no-fingerprint", "this container has no fingerprint to compare", where=where)
        return
    now = fingerprint(checkout)
    changed = sorted(key for key in {*built, *now} if built.get(key) != now.get(key))
    if changed:
        yield warning(
            "container.mismatch",
            f"the container was built from another state of NeMo-RL: {', '.join(changed)}",
            where=where,
            remedy=REMEDY,
            evidence=[
                Citation(
                    what=key,
                    text=f"container {built.get(key, 'missing')}, checkout {now.get(key, 'missing')}",
                )
                for key in changed
            ],
        )
    for path in git.submodules(checkout):
        place = Path(checkout) / path
        if (place / ".git").exists() and git.ask(str(place), "status", "--porcelain").strip():
            yield warning(
                "container.dirty-submodule",
                f"the submodule {path} has uncommitted changes, which the fingerprint does not see",
                where=Where(file=str(place)),
                remedy="NRL_FORCE_REBUILD_VENVS=true, or PYTHONPATH, if the change is to be tested",
            )


CHECK = Check(
    id="container",
    proves="the NeMo-RL container was built from the dependencies of this checkout",
    remedy=REMEDY,
    cost=Cost.FAST,
    applies=applies,
    run=run,
)
