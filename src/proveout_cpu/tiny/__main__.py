"""``python -m proveout_cpu.tiny FAMILY DIR [--seed N] [--warm STEPS] [--set KEY=VALUE]...``; status 2: wrong input.

Weights are random; a warm start teaches the form of an answer to one-digit sums, so that rewards are neither all
zero nor all one.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from proveout_cpu.tiny.families import FAMILIES
from proveout_cpu.tiny.model import WrongInputError, write


def main(arguments: list[str]) -> int:
    """Write the model; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proveout_cpu.tiny")
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm", type=int, default=0, metavar="STEPS")
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        parameters = write(asked.family, asked.directory, asked.seed, asked.warm, asked.changes)
    except WrongInputError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(f"Wrote {parameters:,} parameters of a tiny {asked.family} to {asked.directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
