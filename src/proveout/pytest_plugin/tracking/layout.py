"""Where the results of a test session stand, and the only place that names those files."""

from __future__ import annotations

import tempfile
from pathlib import Path

LATEST = "unit_results.json"
DATED_SUFFIX = ".json"
_JOURNALS = ".journals"


class ResultsLayout:
    """File names around one results file (``unit_results.json`` unless the project names it otherwise).

    Beside it stands a directory of the same name without ``.json``, with one dated file for each session, and
    in that, out of reach of ``*``, the journals of sessions that have not ended.
    """

    def __init__(self, latest: Path) -> None:
        self.latest = latest
        self.dated = latest.parent / (latest.stem if latest.suffix else f"{latest.name}_dated")
        self.journals = self.dated / _JOURNALS

    def fallback(self, session: str) -> ResultsLayout:
        """The same file names in the system's temporary directory, for a session that cannot write here."""
        return ResultsLayout(Path(tempfile.gettempdir()) / f"proveout-results-{session}" / self.latest.name)


def default_latest(root: Path) -> Path:
    """``unit_results.json`` in ``tests/unit`` of a repository that has that directory, else in its root."""
    unit = root / "tests" / "unit"
    return (unit if unit.is_dir() else root) / LATEST
