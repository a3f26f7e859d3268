"""Kills 50 runs with SIGKILL at random moments, every second one with all that it started, and resumes each.

    python benchmarks/fifty_kills.py [COUNT] [SEED]

Prints one line a kill and a total; exits 1 if any killed run said Pass, did not read, or did not resume to Pass.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.cli.kills import AfterKill, delays, kill_once

LONGEST_SECONDS = 12.0


def holds(left: AfterKill) -> bool:
    """Whether a killed run was Incomplete and resume ended in Pass; a run that was not killed must have passed."""
    if not left.made_a_run:
        return left.killed
    expected = "Incomplete" if left.killed else "Pass"
    return left.reported == expected and left.resumed == "Pass" and left.resume_status == 0


def main(count: int, seed: int) -> int:
    failed = killed = 0
    for number, delay in enumerate(delays(count, LONGEST_SECONDS, seed)):
        with tempfile.TemporaryDirectory() as here:
            left = kill_once(Path(here), delay, whole_group=number % 2 == 1)
        killed += left.killed
        failed += not holds(left)
        print(f"{number + 1:3d}  after {delay:5.2f} s  {left}", flush=True)
    print(f"{count} runs, {killed} killed before their end, {failed} did not hold")
    return 1 if failed else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(numbers + [50, 0][len(numbers) :])))
