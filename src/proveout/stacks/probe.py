"""Runs inside a stack's own interpreter, as a file and with the standard library alone: what is there?

Reads one JSON object from standard input: ``path`` (import path to put in front), ``setup`` (a module whose
``install()`` comes first, or ''), ``modules``. Writes one JSON object as the last line of standard output.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any


def damaged() -> dict[str, str]:
    """Distribution directory -> what is wrong: without a record, or with files that its record lists missing."""
    found = {}
    for distribution in metadata.distributions():
        place = getattr(distribution, "_path", None)
        if place is None or not str(place).endswith(".dist-info"):
            continue
        if not (place / "RECORD").is_file():
            found[str(place)] = "no RECORD"
            continue
        site = Path(place).parent
        absent = [
            str(file)
            for file in distribution.files or ()
            if file.suffix != ".pyc" and not (site / file).exists()
        ]
        if absent:
            found[str(place)] = f"{len(absent)} files are missing, {absent[0]} first"
    return found


def versions() -> dict[str, str]:
    """Distribution -> version."""
    return {item.metadata["Name"]: item.version for item in metadata.distributions() if item.metadata["Name"]}


def imports(setup: str, modules: list[str]) -> list[dict[str, Any]]:
    """Each module with its file and seconds, or with the error that its import raised."""
    answers = []
    for name in [setup, *modules] if setup else modules:
        start = time.perf_counter()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                module = importlib.import_module(name)
                if name == setup:
                    module.install()
            answer = {"module": name, "file": getattr(module, "__file__", None) or "", "error": ""}
        except BaseException as error:
            answer = {"module": name, "file": "", "error": f"{type(error).__name__}: {error}"}
        answers.append({**answer, "seconds": round(time.perf_counter() - start, 2)})
    return answers


def main() -> None:
    """Answer the question that stands on standard input."""
    asked = json.load(sys.stdin)
    sys.path[:0] = asked["path"]
    answer: dict[str, Any] = {"python": sys.version.split()[0], "damaged": damaged(), "versions": versions()}
    answer["imports"] = imports(asked["setup"], asked["modules"])
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
