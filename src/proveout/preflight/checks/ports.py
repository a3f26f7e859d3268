"""Ports that the run will listen on."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.check import Check, blocked, warning


def wanted(context: PreflightContext) -> dict[int, str]:
    """Ports by what asks for them: MASTER_PORT of the environment or a step, and the setting."""
    found: dict[int, str] = {}
    for loop, env in context.environments().items():
        if env.get("MASTER_PORT", "").isdigit():
            found[int(env["MASTER_PORT"])] = f"MASTER_PORT of {loop or 'this run'}"
    for text in limits.text(context, "ports.also").replace(",", " ").split():
        found[int(text)] = "setting ports.also"
    return found


def taken(port: int) -> str:
    """Why a port cannot be listened on; empty where it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except (OSError, OverflowError) as error:
            return str(getattr(error, "strerror", None) or error)
    return ""


def run(context: PreflightContext) -> Iterator[Finding]:
    """One finding for each port that is taken."""
    for port, asked_by in sorted(wanted(context).items()):
        why = taken(port)
        if why:
            say = blocked if asked_by.startswith("MASTER_PORT") else warning
            yield say(
                "ports.taken",
                f"port {port} ({asked_by}) cannot be listened on: {why}",
                where=Where(key=asked_by.split()[0]),
                remedy="end what listens there, or choose another port",
            )


CHECK = Check(
    id="ports",
    proves="the ports that the run asks for are free",
    remedy="end what listens there, or choose another port",
    applies=lambda context: bool(wanted(context)),
    run=run,
)
