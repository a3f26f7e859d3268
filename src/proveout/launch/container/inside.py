"""The script that runs inside the container, around the command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.resources import files

from proveout.domain import redact

END_FILE = ".container-end"
DEFAULT_UMASK = "0022"


def script(place: str, cwd: str, umask: str, setup: Sequence[str]) -> str:
    """The script for one attempt, whose directory is ``place``; the command's words are its arguments.

    A command of ``setup`` that fails is the end, unless it begins with ``-``: the attempt was then not started.
    """
    steps = [_step(number, line) for number, line in enumerate(setup, start=1)]
    text = files("proveout.launch.container").joinpath("inside.sh").read_text(encoding="utf-8")
    return text.format(
        place=shlex.quote(place),
        cwd=shlex.quote(cwd),
        cwd_text=_plain(cwd),
        umask=shlex.quote(umask or DEFAULT_UMASK),
        setup="\n".join(steps),
    )


def _step(number: int, line: str) -> str:
    command = shlex.join(shlex.split(line.removeprefix("-")))
    shown = _plain(redact.text(command))
    failed = (
        ":"
        if line.startswith("-")
        else f'{{ say "not-started setup failed with status $?: {shown}"; exit 126; }}'
    )
    return f'echo "proveout: setup {number}: {shown}"\n{command} </dev/null || {failed}'


def _plain(text: str) -> str:
    """``text`` fit to stand between double quotes of a shell."""
    return "".join("_" if character in '"$`\\\n' else character for character in text)
