"""Errors that reach the user as a sentence, never as a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from proveout.domain.finding import Finding


class ProveoutError(Exception):
    """Something the user can act on: what was wrong, where, and what to do."""

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        super().__init__(": ".join(part for part in (where, what) if part))


class UsageError(ProveoutError):
    """Wrong usage or configuration: exit status 2, before anything runs."""


class BlockedError(ProveoutError):
    """The environment stops the run before the change is exercised: exit status 3."""

    def __init__(
        self, what: str, *, where: str = "", remedy: str = "", findings: Iterable[Finding] = ()
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.findings = tuple(findings)


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known name closest to ``name``, or an empty string."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
