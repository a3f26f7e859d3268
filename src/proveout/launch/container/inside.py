"""The script that runs inside the container, around the command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.resources import files

from proveout.domain import redact

END_FILE = ".container-end"
DEFAULT_UMASK = "0022"


def script(place: str, cwd: str, umask: str, setup: Sequence[Sequence[str]]) -> str:
    """The script for one attempt, whose directory is ``place``; the command's words are its arguments.

    A command of ``setup`` that fails is the end: the attempt was then not started.
    """
    steps = [_step(number, words) for number, words in enumerate(setup, start=1)]
    text = files("proveout.launch.container").joinpath("inside.sh").read_text(encoding="utf-8")
    return text.format(
        place=shlex.quote(place),
        cwd=shlex.quote(cwd),
        cwd_text=_plain(cwd),
        umask=shlex.quote(umask or DEFAULT_UMASK),
        setup="\n".join(steps),
    )


def _step(number: int, words: Sequence[str]) -> str:
    shown = _plain(redact.text(shlex.join(words)))
    return (
        f'echo "proveout: setup {number}: {shown}"\n'
        f'{shlex.join(words)} </dev/null || {{ say "not-started setup failed with status $?: {shown}"; exit 126; }}'
    )


def _plain(text: str) -> str:
    """``text`` fit to stand between double quotes of a shell."""
    return "".join("_" if character in '"$`\\\n' else character for character in text)
