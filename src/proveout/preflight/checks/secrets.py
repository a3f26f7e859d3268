"""Secrets that would land in a report: on command lines, under plain names, in remotes of the checkouts."""

from __future__ import annotations

from collections.abc import Iterator

from proveout.domain import redact
from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import git
from proveout.preflight.check import Check, Cost, notice, warning


def run(context: PreflightContext) -> Iterator[Finding]:
    """Names only, never a value."""
    for step in context.running:
        if any(redact.text(word) != word for word in step.command.argv):
            yield warning(
                "secrets.command",
                f"the command line of step {step.id} holds what looks like a secret, for all to see",
                where=Where(key=step.id),
                remedy="hand it over in an environment variable whose name ends in TOKEN, KEY or SECRET",
            )
    plain = sorted(
        name
        for name, value in context.env.items()
        if not redact.is_secret_name(name) and redact.text(value) != value
    )
    if plain:
        yield notice(
            "secrets.variable",
            f"variables whose names do not say so hold what looks like a secret: {', '.join(plain)}",
            where=Where(key=plain[0]),
            remedy="what is recognised is redacted in reports; keep secrets under names that say so",
        )
    for role, checkout in sorted(context.checkouts.items()):
        try:
            remotes = git.ask(checkout, "config", "--get-regexp", r"^remote\..*\.url$").splitlines()
        except BlockedError:
            continue
        for line in remotes:
            if redact.text(line) != line:
                yield warning(
                    "secrets.remote",
                    f"a remote of the {role} checkout holds a password or token",
                    where=Where(file=checkout, key=line.split(" ", 1)[0]),
                    remedy="use a credential helper and set the remote's URL without it",
                )


CHECK = Check(
    id="secrets",
    proves="no secret stands where a report would show it",
    remedy="keep secrets in variables that are named so, and out of command lines and URLs",
    cost=Cost.FAST,
    run=run,
)
