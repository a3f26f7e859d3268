"""How fast a log is scanned with the whole catalogue, against two peers in the same run; and what memory it takes.

Usage: python benchmarks/triage_speed.py --logs DIR [--mb 200] [--fifo-gb 10]

Peers: ``grep -E`` with the same patterns (one file of extended expressions), and one alternation of all patterns in
Python's ``re``, line by line (on a part of the log, because it is slow). All are measured in processor seconds
(user and system) of one core, so that a shared machine distorts little. ``--fifo-gb`` streams that many gigabytes
through a named pipe and prints how the resident size changes.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from proveout.triage.catalog import load
from proveout.triage.engine import scanner
from triage_corpus import healthy

MB = 1 << 20


_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.", re.DOTALL)
_OUTSIDE = {r"\d": "[0-9]", r"\s": "[ \t]", r"\n": "", r"\t": "\t"}
_INSIDE = {r"\d": "0-9", r"\s": " \t", r"\w": "A-Za-z0-9_", r"\n": "", r"\t": "\t"}


def as_extended(pattern: str) -> str:
    """A pattern in the dialect of ``grep -E``: no non-capturing groups, no flags, classes spelled out."""
    text = pattern.replace("(?i)", "").replace("(?:", "(").replace("{,", "{0,")
    return _CLASS.sub(lambda match: _class(match.group()), text)


def _class(part: str) -> str:
    """One bracketed class or escape; within brackets no escape counts, ``]`` comes first and ``-`` last."""
    if not part.startswith("["):
        return _OUTSIDE.get(part, part)
    negated = part.startswith("[^")
    letters, ends = "", {"]": False, "-": False}
    for token in re.findall(r"\\.|.", part[2 if negated else 1 : -1], re.DOTALL):
        if token[-1] in ends and token.startswith("\\"):
            ends[token[-1]] = True
        else:
            letters += _INSIDE.get(token, token[-1])
    body = ("]" if ends["]"] else "") + letters + ("-" if ends["-"] else "")
    return f"[{'^' if negated else ''}{body}]" if body else "."


def processor_seconds(children: bool = False) -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def scan_rate(path: Path) -> float:
    tool = scanner()
    tool.scan(path)
    begin = processor_seconds()
    tool.scan(path)
    return path.stat().st_size / MB / (processor_seconds() - begin)


def grep_rate(path: Path, scratch: Path) -> float:
    patterns = scratch / "patterns"
    patterns.write_text(
        "\n".join(as_extended(rule.pattern) for rule in load().rules) + "\n", encoding="utf-8"
    )
    begin = processor_seconds(children=True)
    done = subprocess.run(
        ["grep", "-a", "-E", "-c", "-f", str(patterns), str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    if done.returncode > 1:
        sys.exit(
            f"grep cannot take the patterns, so there is nothing to compare with: {done.stderr.decode()[:300]}"
        )
    return path.stat().st_size / MB / (processor_seconds(children=True) - begin)


def re_rate(path: Path, part: int) -> float:
    insensitive = [r.pattern.replace("(?i)", "") for r in load().rules if r.pattern.startswith("(?i)")]
    parts = [f"(?:{r.pattern})" for r in load().rules if not r.pattern.startswith("(?i)")]
    one = re.compile("|".join(parts + [f"(?i:{pattern})" for pattern in insensitive]).encode())
    with path.open("rb") as stream:
        data = stream.read(part)
    begin = processor_seconds()
    for line in data.split(b"\n"):
        one.search(line)
    return len(data) / MB / (processor_seconds() - begin)


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MB


def through_pipe(block: bytes, gigabytes: int, scratch: Path) -> None:
    pipe = scratch / "pipe"
    os.mkfifo(pipe)

    def feed() -> None:
        with pipe.open("wb", buffering=0) as stream:
            for _ in range(gigabytes * 1024 * MB // len(block)):
                stream.write(block)

    feeder = threading.Thread(target=feed, daemon=True)
    samples: list[float] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(1.0):
            samples.append(resident())

    sampler = threading.Thread(target=sample, daemon=True)
    feeder.start()
    sampler.start()
    begin = time.perf_counter()
    result = scanner().scan(pipe)
    done.set()
    seconds = time.perf_counter() - begin
    kept = samples or [resident()]
    print(
        f"{result.size / 1e9:.1f} GB through a pipe: {seconds:.0f} s of wall time, resident size after a tenth "
        f"{kept[len(kept) // 10]:.0f} MB, at the end {kept[-1]:.0f} MB, most {max(kept):.0f} MB"
    )


def first_answer(scratch: Path, data: bytes) -> None:
    small = scratch / "small.log"
    small.write_bytes(data[:MB])
    walls, cpus = [], []
    for _ in range(7):
        begin, cpu = time.perf_counter(), processor_seconds(children=True)
        subprocess.run(
            [sys.executable, "-m", "proveout", "triage", str(small)], capture_output=True, check=False
        )
        walls.append(time.perf_counter() - begin)
        cpus.append(processor_seconds(children=True) - cpu)
    print(
        f"first answer on 1 MB from the shell: {min(walls):.2f} s wall, {min(cpus):.2f} s processor (best of 7)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--fifo-gb", type=int, default=0)
    args = parser.parse_args()
    print(f"{len(load().rules)} rules; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        block = b"".join(healthy(args.logs, loop, 40_000, 1) for loop in ("nemo-rl", "verl"))
        log = scratch / "big.log"
        with log.open("wb") as stream:
            while stream.tell() < args.mb * MB:
                stream.write(block)
        ours = scan_rate(log)
        grep = grep_rate(log, scratch)
        plain = re_rate(log, 4 * MB)
        print(f"{args.mb} MB, MB a processor second: proveout {ours:.0f}, grep -E {grep:.0f}, re {plain:.1f}")
        print(f"ratios: {ours / grep:.2f} of grep -E, {ours / plain:.0f} of one-alternation re")
        first_answer(scratch, block)
        log.unlink()
        if args.fifo_gb:
            through_pipe(block, args.fifo_gb, scratch)


if __name__ == "__main__":
    main()
