"""All figures of triage in one go: right answers on labelled cases, plain and buried in healthy lines, and speed.

Usage: python benchmarks/triage.py CASES.jsonl --logs DIR [--bury 200000] [--mb 200] [--fifo-gb 0]

Runs ``triage_quality.py`` and ``triage_speed.py``, which can also be run alone. Exit status 1 where a bar of
quality is missed; speed is printed and not judged.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run(script: str, *words: str) -> int:
    print(f"== {script}", flush=True)
    return subprocess.run([sys.executable, str(HERE / script), *words], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path)
    parser.add_argument("--logs", type=Path, required=True, help="directory of complete logs")
    parser.add_argument("--bury", type=int, default=200_000, metavar="LINES")
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--fifo-gb", type=int, default=0)
    args = parser.parse_args()
    right = run("triage_quality.py", str(args.cases), "--logs", str(args.logs), "--bury", str(args.bury))
    speed = ("--mb", str(args.mb), "--fifo-gb", str(args.fifo_gb))
    return run("triage_speed.py", "--logs", str(args.logs), *speed) or right


if __name__ == "__main__":
    raise SystemExit(main())
