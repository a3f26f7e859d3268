"""Runs the cases of cases.yaml for real and keeps what each left.

``python -m tests.real.nemo_rl_cpu.record --work DIR --nemo-rl CHECKOUT --bridge CHECKOUT [--python PATH] [ID]...``

Needs stack nemo-rl-cpu, or an interpreter like it. Trees that a case breaks are copies. Of every case a console log and
the events of TensorBoard (paths, addresses and names of this machine taken out), the transfers of weights and what was
judged are written to ``data/``.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from proveout.stacks.place import Place, root
from tests.real.nemo_rl_cpu import prepare

HERE = Path(__file__).parent
DATA = HERE / "data"
LONGEST_LINE = 40_000
FRAME = struct.Struct("<QI")
"""Length of a record and its checksum; the record and another checksum follow (TFRecord)."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--nemo-rl", type=Path, required=True)
    parser.add_argument("--bridge", type=Path, required=True)
    parser.add_argument("--python", default=str(Place(root(os.environ), "nemo-rl-cpu").python))
    parser.add_argument("--keep-only", action="store_true", help="keep what earlier runs left, run nothing")
    parser.add_argument("ids", nargs="*")
    asked = parser.parse_args()
    wrong = 0
    for case in yaml.safe_load((HERE / "cases.yaml").read_text()):
        if not asked.ids or case["id"] in asked.ids:
            work = asked.work.absolute() / case["id"]
            made = prepare.Case(
                work=work,
                records=work.parent,
                nemo_rl=asked.nemo_rl.absolute(),
                bridge=asked.bridge.absolute(),
            )
            if not asked.keep_only:
                run(case, made, asked.python)
            for name in ("nemo_rl", "bridge"):
                changed = work / name.replace("_", "-")
                setattr(made, name, changed if changed.is_dir() else getattr(made, name))
            told = keep(case, made, asked.python)
            wrong += bool(told)
            print(f"{case['id']}: {told or 'as expected'}", flush=True)
    return 1 if wrong else 0


def run(case: dict[str, Any], made: prepare.Case, python: str) -> None:
    """Run one case; its run directory is below ``state``, its report beside it."""
    work = made.work
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    made.fields["work"] = str(work)
    before = getattr(prepare, case["prepare"])(made) if "prepare" in case else None
    with before or contextlib.nullcontext():
        words = [_fill(word, made.fields) for word in case.get("words", ())]
        command = [
            sys.executable,
            "-m",
            "proveout",
            "run",
            "--loop",
            "nemo-rl",
            "--platform",
            "cpu",
            "--json",
        ]
        command += ["--nemo-rl", str(made.nemo_rl), "--bridge", str(made.bridge), "--whole"]
        command += ["--set", f"nemo-rl:python={python}", "--level", case["level"]]
        command += ["--state-dir", str(work / "state"), "--", *words]
        with (work / "err.txt").open("w") as err, (work / "report.json").open("w") as out:
            subprocess.run(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=work, check=False)


def keep(case: dict[str, Any], made: prepare.Case, python: str) -> str:
    """Write what the case left to ``data``; what is not as the case says, or an empty text."""
    place = made.work / "state" / "runs"
    found = sorted(place.glob("*/attempts/*/result.json")) if place.exists() else []
    if not found:
        return f"nothing ran: {(made.work / 'err.txt').read_text()[-500:]}"
    last = found[-1].parent
    result = json.loads(found[-1].read_text())
    kept = {
        "id": case["id"],
        "step": last.name.split("-", 1)[1],
        "verdict": result["verdict"],
        "exit": result["exit"],
    }
    refit = last / "refit.jsonl"
    kept["refit"] = refit.read_text().splitlines() if refit.exists() else []
    DATA.mkdir(exist_ok=True)

    def clean(text: str) -> str:
        return scrub(text, made, python)

    lines = [
        line[:LONGEST_LINE] for line in clean((last / "run.log").read_text(errors="replace")).splitlines()
    ]
    _pack(DATA / f"{case['id']}.log.gz", "\n".join([*lines, ""]).encode())
    events = [*last.glob("logs/**/events.out.tfevents.*"), *last.glob("kept/**/events.out.tfevents.*")]
    whole = b"".join(file.read_bytes() for file in sorted(events, key=lambda file: file.stat().st_mtime))
    _pack(DATA / f"{case['id']}.events.gz", b"".join(r for r in records(whole) if clean_record(r, made)))
    (DATA / f"{case['id']}.json").write_text(clean(json.dumps(kept, indent=1)) + "\n")
    wrong = [] if kept["verdict"] == case["verdict"] else [f"{kept['verdict']} in place of {case['verdict']}"]
    text = json.dumps(result).lower()
    wrong += [f"{word!r} is not said" for word in case.get("says", ()) if word.lower() not in text]
    return "; ".join(wrong)


def records(data: bytes) -> Iterator[bytes]:
    """The framed records of an event file, as they are."""
    at = 0
    while at + FRAME.size <= len(data):
        end = at + FRAME.size + FRAME.unpack_from(data, at)[0] + 4
        yield data[at:end]
        at = end


def clean_record(record: bytes, made: prepare.Case) -> bool:
    """Whether an event names no path: the configuration that a run writes there does."""
    return not any(word in record for word in (b"/tmp/", b"/root/", bytes(Path.home()), bytes(made.work)))


def scrub(text: str, made: prepare.Case, python: str) -> str:
    """The text without this machine's paths, names and addresses."""
    stacks = root(os.environ)
    places = {
        made.work: "/run",
        made.nemo_rl: "/trees/nemo-rl",
        made.bridge: "/trees/bridge",
        Path(python).parents[1]: "/stacks/nemo-rl-cpu",
        stacks: "/stacks",
        Path(sys.base_prefix): "/python",
        HERE.parents[2]: "/proveout",
        Path.home(): "/home/user",
    }
    for place, name in sorted(places.items(), key=lambda item: -len(str(item[0]))):
        text = text.replace(str(place.resolve()), name).replace(str(place), name)
    text = re.sub(r"/tmp/proveout-\w+", "/short", text).replace(socket.gethostname(), "node")
    text = text.replace("/tmp/", "/temporary/")
    return re.sub(
        r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?!\.)", lambda m: m[0] if m[0].startswith("127.") else "10.0.0.1", text
    )


def _pack(file: Path, data: bytes) -> None:
    file.write_bytes(gzip.compress(data, 9, mtime=0))


def _fill(word: str, fields: dict[str, str]) -> str:
    for name, value in fields.items():
        word = word.replace(f"{{{name}}}", value)
    return word


if __name__ == "__main__":
    sys.exit(main())
