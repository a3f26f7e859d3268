"""Which module came from which file, as the run's own processes said on the console.

Two kinds of lines tell it: ``[import] IMPORTER MODULE PATH``, and the file that Python names in a warning or a
traceback. A Ray prefix says that a worker wrote the line; verl's task runner drives, so it counts as driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from proveout.domain.evidence import ImportRecord
from proveout.domain.finding import Citation, Where

_SAID = re.compile(rb"\[import\] (?P<importer>\S+) (?P<module>[\w.]+) (?P<path>\S.*?)\s*$")
_NAMED = re.compile(
    rb"(?P<path>(?P<root>/[^\s\"':]*)/megatron/(?P<part>bridge|core)/[^\s\"':]*\.py)"
    rb"(?::\d+: \w*Warning: |\", line \d+)"
)
_ACTOR = re.compile(rb"\((?P<actor>\w+) pid=\d+[^)]*\)[^(]*$")
_MARKS = (b"[import] ", b"/megatron/")
_TEXT_LIMIT = 400


def read_imports(log: Path) -> tuple[ImportRecord, ...]:
    """All import records of a console log, each with its line; empty where there is no log.

    Of the files that warnings and tracebacks name, the first of each module, tree and importer counts.
    """
    if not log.exists():
        return ()
    records: list[ImportRecord] = []
    known: set[tuple[str, bytes, str]] = set()
    with log.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not any(mark in line for mark in _MARKS):
                continue
            for module, path, importer, root in _imports(line):
                if root:
                    if (module, root, importer) in known:
                        continue
                    known.add((module, root, importer))
                cited = Citation(
                    what=f"{module} as imported by the {importer}",
                    where=Where(file=str(log), line=number),
                    text=line.decode(errors="replace").strip()[:_TEXT_LIMIT],
                )
                records.append(ImportRecord(module=module, path=path, importer=importer, where=cited))
    return tuple(records)


def _imports(line: bytes) -> Iterator[tuple[str, str, str, bytes]]:
    """Module, path, importer and the tree's root (empty where the process says the import itself)."""
    if said := _SAID.search(line):
        importer, module, path = (
            said[name].decode(errors="replace") for name in ("importer", "module", "path")
        )
        yield module, path, importer, b""
        return
    for found in _NAMED.finditer(line):
        actor = _ACTOR.search(line[: found.start()])
        driving = actor is None or actor["actor"].startswith(b"TaskRunner")
        module = f"megatron.{found['part'].decode()}"
        yield module, found["path"].decode(errors="replace"), "driver" if driving else "worker", found["root"]
