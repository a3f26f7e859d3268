"""Reading event files against TensorBoard's EventAccumulator (size guidance 0), in the same run.

Each measurement is a process of its own, so that peak memory is its own. Prints Markdown; run it as

    python benchmarks/dump_vs_eventaccumulator.py [--full] > docs/benchmarks/readers.md

``--full`` adds 5 million scalars, a 1 GB file that is followed, and many tags. Files are made in a temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import google_crc32c

PEAK = """
import json, re, sys, time
def peak():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\s+(\\d+)", file.read())[1]) * 1024
"""
PEER = (
    PEAK
    + """
from tensorboard.backend.event_processing import event_accumulator as ea
base, begin = peak(), time.perf_counter()
found = ea.EventAccumulator(sys.argv[1], size_guidance={ea.SCALARS: 0, ea.TENSORS: 0})
found.Reload()
data = {tag: {event.step: event.value for event in found.Scalars(tag)} for tag in found.scalars.Keys()}
read = time.perf_counter() - begin
if len(sys.argv) > 2:
    with open(sys.argv[2], "w") as file:
        json.dump({tag: {str(s): v for s, v in sorted(data[tag].items())} for tag in sorted(data)}, file, indent=2)
total = time.perf_counter() - begin
print(json.dumps([read, total, peak(), base, sum(map(len, data.values()))]))
"""
)
OURS = (
    PEAK
    + """
from pathlib import Path
from proveout.capture import dump, metrics_json
import numpy, proveout.capture.events.merge
base, begin = peak(), time.perf_counter()
found = dump.dump(Path(sys.argv[1]).parent)
read = time.perf_counter() - begin
if len(sys.argv) > 2:
    metrics_json.write_metrics_json(found.table, Path(sys.argv[2]))
total = time.perf_counter() - begin
print(json.dumps([read, total, peak(), base, sum(map(len, found.table.series.values()))]))
"""
)
TAIL = (
    PEAK
    + """
from proveout.capture.events.tail import TensorBoardTail
import numpy, proveout.capture.events.merge
path, record = sys.argv[1], bytes.fromhex(sys.argv[2])
tail, count, begin = TensorBoardTail(path), 0, time.perf_counter()
while True:
    update = tail.read_new()
    count += sum(map(len, update.points.values()))
    if not update.more:
        break
first = time.perf_counter() - begin
times = []
for _ in range(50):
    with open(path, "ab") as file:
        file.write(record * 50)
    begin = time.perf_counter()
    got = sum(map(len, tail.read_new().points.values()))
    times.append(time.perf_counter() - begin)
    assert got == 50, got
print(json.dumps([first, sorted(times)[25], peak(), count]))
"""
)


def masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(tag: bytes, step: int, value: float, wall: float) -> bytes:
    """One scalar as torch's SummaryWriter writes it."""
    count, low = b"", step
    while low > 0x7F:
        count += bytes([low & 0x7F | 0x80])
        low >>= 7
    count += bytes([low])
    inner = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inner)]) + inner
    payload = b"\x09" + struct.pack("<d", wall) + b"\x10" + count + b"\x2a" + bytes([len(summary)]) + summary
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def make(path: Path, scalars: int, tags: int) -> Path:
    """A file as a training writes it: step after step, every tag once a step."""
    numbers = random.Random(0)
    names = [f"train/{'abcdefghij'[: i % 10 + 1]}_metric_{i}".encode() for i in range(tags)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for step in range(1, scalars // tags + 1):
            file.write(b"".join(record(name, step, numbers.gauss(0, 1), 1.8e9 + step) for name in names))
    return path


def measure(program: str, *arguments: object) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


def median(program: str, *arguments: object, times: int = 5) -> list[float]:
    runs = [measure(program, *arguments) for _ in range(times)]
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB"


def compare(root: Path, scalars: int, tags: int, times: int) -> None:
    path = make(root / str(scalars) / "events.out.tfevents.1800000000.x", scalars, tags)
    peer, ours = [], []
    for _ in range(times):
        ours.append(measure(OURS, path, root / "ours.json"))
        peer.append(measure(PEER, path, root / "peer.json"))
    one, other = ([statistics.median(column) for column in zip(*rows, strict=True)] for rows in (ours, peer))
    same = json.loads((root / "ours.json").read_text()) == json.loads((root / "peer.json").read_text())
    grown, peer_grown = one[2] - one[3], other[2] - other[3]
    print(f"\n## {scalars:,} scalars, {tags} tags ({megabytes(path.stat().st_size)}), median of {times}\n")
    print(f"The two JSON files hold the same data: {same}.\n")
    print("| | proveout | EventAccumulator | ratio |\n|---|---|---|---|")
    print(f"| read into memory | {one[0]:.3f} s | {other[0]:.3f} s | {other[0] / one[0]:.1f}x |")
    print(f"| read and write JSON | {one[1]:.3f} s | {other[1]:.3f} s | {other[1] / one[1]:.1f}x |")
    print(
        f"| peak memory of the process | {megabytes(one[2])} | {megabytes(other[2])} | 1/{other[2] / one[2]:.1f} |"
    )
    print(
        f"| memory grown over the imports | {megabytes(grown)} | {megabytes(peer_grown)} | 1/{peer_grown / grown:.1f} |"
    )
    path.unlink()


def bounded(root: Path) -> None:
    path = make(root / "large" / "events.out.tfevents.1800000000.x", 5_000_000, 50)
    read, total, peak, base, count = measure(OURS, path, root / "ours.json")
    print(f"\n## 5 million scalars ({megabytes(path.stat().st_size)})\n")
    print(
        f"{count:,.0f} scalars read in {read:.2f} s, with JSON {total:.2f} s; peak memory {megabytes(peak)}, of which"
    )
    print(f"imports {megabytes(base)} and the table itself {megabytes(count * 24)} (24 bytes a scalar).")
    path.unlink()


def tail(root: Path) -> None:
    block = make(root / "block" / "events", 500_000, 50).read_bytes()
    path = root / "events.out.tfevents.1800000000.x"
    with path.open("wb") as file:
        while file.tell() < 1 << 30:
            file.write(block)
    size = path.stat().st_size
    first, increment, peak, count = measure(TAIL, path, record(b"train/loss", 7, 0.5, 1.8e9).hex())
    print(f"\n## A live file of {size / 1e9:.2f} GB, followed\n")
    print(
        f"First look: {count:,.0f} scalars in {first:.1f} s, in pieces of 64 MB; peak memory {megabytes(peak)}."
    )
    print(f"Each look after 50 more records: {increment * 1e3:.2f} ms (median of 50).")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--full", action="store_true", help="add 5 million scalars, a 1 GB live file and 1,000 tags"
    )
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    print("# Event files: proveout against TensorBoard's EventAccumulator\n")
    print(
        "Made by `python benchmarks/dump_vs_eventaccumulator.py --full`. Ratios of the same run count; the machine"
    )
    print(
        f"was shared. {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ",
        end="",
    )
    print(
        f"load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}. EventAccumulator has size guidance 0;"
    )
    print('"and write JSON" is `json.dump(..., indent=2)` there, as json_dump_tb_logs.py does.')
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        compare(root, 200_000, 50, options.times)
        if options.full:
            bounded(root)
            tail(root)
            compare(root, 1_000_000, 1000, 1)


if __name__ == "__main__":
    main()
