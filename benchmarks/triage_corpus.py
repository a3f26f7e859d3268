"""Healthy log lines to bury a case in, made from complete logs of runs that passed."""

from __future__ import annotations

import random
import re
from pathlib import Path

_NUMBER = re.compile(rb"(?<=[ :=])(\d+\.\d{2,})(?![\d.e])")
_NEMO_STEP = re.compile(rb"Step (\d+)/(\d+) =")
_VERL_STEP = re.compile(rb"step:(\d+) - |\| (\d+)/(\d+) \[")


def healthy(logs: Path, loop: str, count: int, seed: int) -> bytes:
    """``count`` healthy lines of a loop: its set-up once, then its steps over and over, numbers varied.

    ``logs`` holds ``*-pass.log``; ``loop`` is nemo-rl or verl. Values with at least two decimals are varied by up
    to a tenth, step numbers count on.
    """
    rng = random.Random(seed)
    source = sorted(logs.glob(f"{loop}-*tp2-pass.log"))[0].read_bytes().split(b"\n")
    begin, end = _training(source, loop)
    head, body = source[:begin], source[begin:end]
    lines: list[bytes] = head[:count]
    step = 0
    while len(lines) < count:
        step += 1
        lines += [_varied(line, step, rng) for line in body]
    return b"\n".join(lines[:count]) + b"\n"


def _training(lines: list[bytes], loop: str) -> tuple[int, int]:
    mark = b"= Step 1/" if loop == "nemo-rl" else b"Training Progress:   0%"
    begin = next(i for i, line in enumerate(lines) if mark in line)
    stop = b"= Step 2/" if loop == "nemo-rl" else b"Training Progress:  50%"
    return begin, next(i for i, line in enumerate(lines) if stop in line)


def _varied(line: bytes, step: int, rng: random.Random) -> bytes:
    def number(match: re.Match[bytes]) -> bytes:
        value = float(match[1])
        return b"%.*f" % (len(match[1]) - match[1].index(b".") - 1, value * rng.uniform(0.9, 1.1))

    total = 100_000
    line = _NEMO_STEP.sub(b"Step %d/%d =" % (step, total), line)
    line = _VERL_STEP.sub(lambda m: b"step:%d - " % step if m[1] else b"| %d/%d [" % (step - 1, total), line)
    return _NUMBER.sub(number, line)
