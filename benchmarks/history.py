"""How fast the history answers over many runs, against reading the run directories themselves.

    python benchmarks/history.py [RUNS]

Makes RUNS (10,000) run directories as a run leaves them (plan, journal, one attempt with 30 series), lets
``proveout history rebuild`` read them, and times the command line as a user starts it. The peer is
``proveout runs``, which reads every directory anew. Prints Markdown.
"""

from __future__ import annotations

import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.flow.made_runs import a_step, make_run

from proveout.domain.verdict import Verdict

ROUNDS = 5
PEER_RUNS = 300
QUESTIONS = {
    "history": "the newest 20",
    "history --loop bench --level 6 --since 30d": "filtered",
    "history metric train/metric_1 --level 6 --json": "one metric over all runs of a level",
    "history flaky": "flaky steps over all runs",
    "history regressions": "what moved in the newest run of each of 10 recipes",
}


def make(root: Path, runs: int) -> None:
    draw = random.Random(0)
    for number in range(runs):
        step = a_step(f"seed={number % 7}", level=(0, 6)[number % 2])
        metrics = {f"train/metric_{tag}": [draw.random() for _ in range(3)] for tag in range(30)}
        verdict = Verdict.FAIL if draw.random() < 0.1 else Verdict.PASS
        make_run(root, verdict, step=step, metrics=metrics, model=f"model-{number % 5}")


def seconds(words: str, state: Path) -> tuple[float, float]:
    """Clock and processor seconds of one call."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "proveout", *words.split(), "--state-dir", str(state)]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - started, used


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as place:
        state = Path(place)
        really_sync = os.fsync
        os.fsync = lambda _: None
        make(state / "runs", runs)
        make(state / "few" / "runs", PEER_RUNS)
        os.fsync = really_sync
        rebuild = seconds("history rebuild", state)
        peer = seconds("runs", state / "few")
        nothing = [seconds("runs", state / "none")[1] for _ in range(ROUNDS)]
        answers = {words: [seconds(words, state) for _ in range(ROUNDS)] for words in QUESTIONS}
        size = sum(file.stat().st_size for file in state.glob("history.sqlite*")) / 1e6
    print(f"# History over {runs:,} runs\n")
    print(f"    python benchmarks/history.py {runs}\n")
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores that other work shared (load "
        f"{os.getloadavg()[0]:.1f}), {date.today()}. Each run has one step with 30 series. Whole processes, start "
        f"included, medians of {ROUNDS} calls; processor time is what the machine's other work changes least.\n"
    )
    print("| Question | Processor time | On the clock | Slowest on the clock |")
    print("|---|---|---|---|")
    for words, times in answers.items():
        clock, used = zip(*times, strict=True)
        print(
            f"| `proveout {words}`: {QUESTIONS[words]} | {statistics.median(used):.2f} s | "
            f"{statistics.median(clock):.2f} s | {max(clock):.2f} s |"
        )
    first = statistics.median(used for _, used in answers["history"])
    start = statistics.median(nothing)
    print(
        f"\nThe peer is `proveout runs`, which reads every run directory anew: over {PEER_RUNS} of such runs it took "
        f"{peer[1]:.2f} s of processor time ({peer[0]:.1f} s on the clock), that is {peer[1] / first:.1f} times what "
        f"`proveout history` takes over {runs:,}. With no run at all it takes {start:.2f} s: the start."
    )
    print(
        f"\n`proveout history rebuild` read {runs:,} runs in {rebuild[1]:.1f} s of processor time "
        f"({rebuild[1] / runs * 1000:.1f} ms a run, {rebuild[0]:.0f} s on the clock); the index takes {size:.0f} MB."
    )


if __name__ == "__main__":
    main()
