"""Which module came from which file, as the run's own processes said on the console.

A line reads ``[import] IMPORTER MODULE PATH``; a Ray or rank prefix may stand before it.
"""

from __future__ import annotations

import re
from pathlib import Path

from proveout.domain.evidence import ImportRecord
from proveout.domain.finding import Citation, Where

_LINE = re.compile(rb"\[import\] (?P<importer>\S+) (?P<module>[\w.]+) (?P<path>\S.*?)\s*$")
_MARK = b"[import] "


def read_imports(log: Path) -> tuple[ImportRecord, ...]:
    """All import records of a console log, in order, each with its line; empty where there is no log."""
    if not log.exists():
        return ()
    records = []
    with log.open("rb") as file:
        for number, line in enumerate(file, 1):
            if _MARK in line and (match := _LINE.search(line)):
                importer, module, path = (
                    match[name].decode(errors="replace") for name in ("importer", "module", "path")
                )
                cited = Citation(
                    what=f"{module} as imported by the {importer}",
                    where=Where(file=str(log), line=number),
                    text=line.decode(errors="replace").strip(),
                )
                records.append(ImportRecord(module=module, path=path, importer=importer, where=cited))
    return tuple(records)
