"""A Ray cluster that is already there: alive, of the same versions, and with the environment of this run."""

from __future__ import annotations

from collections.abc import Iterator

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext, Worker
from proveout.preflight import interpreters, ray_clusters, workers
from proveout.preflight.check import Check, Cost, blocked, notice, warning
from proveout.preflight.loops import STACK, needs_stack

REMEDY = "end it with 'ray stop', or start it again from this run's environment"
FORWARD = "ray_kwargs.ray_init.runtime_env.env_vars.PYTHONPATH"


def run(context: PreflightContext) -> Iterator[Finding]:
    """A dead address, a leftover cluster, other versions, another PYTHONPATH."""
    joined = ray_clusters.joined(context)
    if joined is None:
        return
    if not ray_clusters.answers(joined.address):
        yield _dead(joined)
        return
    for raylet in ray_clusters.raylets():
        if raylet.address != joined.address:
            continue
        if joined.named_by != "RAY_ADDRESS":
            yield warning(
                "ray-cluster.leftover",
                f"the run would join a Ray cluster that has been here for {raylet.age_seconds / 3600:.1f} h "
                f"(raylet {raylet.pid}, {raylet.address})",
                where=Where(file=joined.named_by),
                remedy="end it with 'ray stop' if it is left over; set RAY_ADDRESS if it is meant",
            )
        yield from _versions(context, raylet)
        yield from _python_path(context, raylet)
        return


def _dead(joined: ray_clusters.Joined) -> Finding:
    if joined.named_by == "RAY_ADDRESS":
        return blocked(
            "ray-cluster.dead",
            f"nothing answers at RAY_ADDRESS={joined.address}",
            where=Where(key="RAY_ADDRESS"),
            remedy="start that cluster, or unset RAY_ADDRESS",
        )
    return notice(
        "ray-cluster.stale-address",
        f"Ray's address file names {joined.address}, where nothing answers",
        where=Where(file=joined.named_by),
        remedy="remove it with 'ray stop'",
    )


def _versions(context: PreflightContext, raylet: ray_clusters.Raylet) -> Iterator[Finding]:
    """Ray refuses a driver of another Ray version or another Python version."""
    if not raylet.python:
        return
    theirs = interpreters.report(context, Worker(name="cluster", argv=(raylet.python,)))
    for worker in workers.of_run(context):
        if worker.loop not in STACK:
            continue
        try:
            ours = interpreters.report(context, worker)
        except BlockedError:
            continue  # the python check says so
        pairs = (
            ("Ray", theirs["packages"]["ray"], ours["packages"]["ray"]),
            ("Python", theirs["version"], ours["version"]),
        )
        for what, cluster, mine in pairs:
            if mine is not None and cluster is not None and cluster != mine:
                yield blocked(
                    "ray-cluster.version",
                    f"the running cluster has {what} {cluster}, {worker.name} has {mine}: Ray refuses that",
                    where=Where(file=raylet.python),
                    remedy=REMEDY,
                )


def _python_path(context: PreflightContext, raylet: ray_clusters.Raylet) -> Iterator[Finding]:
    """verl does not forward PYTHONPATH, so that of the cluster's start counts; NeMo-RL does."""
    words = [word for command in context.commands("verl") for word in command.argv]
    if "verl" not in context.wanted or any(word.lstrip("+").startswith(FORWARD) for word in words):
        return
    theirs, ours = raylet.env.get("PYTHONPATH", ""), context.environment("verl").get("PYTHONPATH", "")
    if theirs != ours:
        yield warning(
            "ray-cluster.pythonpath",
            f"the running cluster was started with PYTHONPATH={theirs or '(none)'}, this run has "
            f"{ours or '(none)'}; verl does not hand its own to the workers",
            where=Where(key="PYTHONPATH"),
            remedy=f"add ++{FORWARD}={ours or 'PATH'}, or {REMEDY}",
        )


CHECK = Check(
    id="ray-cluster",
    proves="no leftover Ray cluster would be joined; one that is meant answers and has the same versions",
    remedy=REMEDY,
    cost=Cost.FAST,
    applies=needs_stack,
    run=run,
)
