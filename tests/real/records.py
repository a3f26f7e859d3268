"""What the recorders of real runs and the tests of their records share."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proveout.domain.evidence import AttemptResult
from proveout.domain.finding import Boundary
from proveout.domain.verdict import Verdict


def as_expected(case: Mapping[str, Any], result: AttemptResult, said: str) -> None:
    """Assert verdict, words and boundary that ``case`` names; ``said`` is all that is told of the run."""
    assert result.verdict == Verdict(case["verdict"]), [finding.what for finding in result.findings]
    for words in case.get("says", ()):
        assert words.lower() in said.lower()
    if "boundary" in case:
        boundaries = {finding.boundary for finding in result.findings} | {
            result.triage and result.triage.boundary
        }
        assert Boundary(case["boundary"]) in boundaries


def names_no_machine(path: Path) -> None:
    """Assert that a record holds no path of the machine that made it."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for word in (b"/work/", b"/root/", b"/tmp/v", b"/tmp/nemo", b"/home/u/"):
        assert word not in text, text[max(0, text.find(word) - 60) : text.find(word) + 60]


@contextlib.contextmanager
def killed(work: Path, worker: bytes, after: bytes) -> Iterator[None]:
    """Kill the process whose number ``worker`` captures in an attempt's log, once the log also has ``after``."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.2):
            for log in work.glob("state/runs/*/attempts/*/run.log"):
                text = log.read_bytes()
                found = re.search(worker, text)
                if found and re.search(after, text):
                    os.kill(int(found[1]), signal.SIGKILL)
                    return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join()
