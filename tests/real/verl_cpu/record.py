"""Runs the cases of cases.yaml for real and keeps what each left.

``python -m tests.real.verl_cpu.record --work DIR [--bridge CHECKOUT --mcore CHECKOUT] [ID]...``

Needs stack verl-cpu; cases that break a Bridge need ``--bridge CHECKOUT`` (a copy is broken). Of every case a console
log (paths, addresses and names of this machine taken out) and what was judged are written to ``data/``.
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
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from tests.real.verl_cpu import prepare

from proveout.stacks.place import root
from proveout.stacks.shipped import platform_path

HERE = Path(__file__).parent
DATA = HERE / "data"
LONGEST_LINE = 4000
EMPTY = 200
EVENTS = (
    "trainer.logger=[console,tensorboard]",
    "++ray_kwargs.ray_init.runtime_env.env_vars.TENSORBOARD_DIR={work}/events",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--bridge", default="")
    parser.add_argument(
        "--mcore", default="", help="Megatron-Core for that Bridge, where it is newer than the stack's"
    )
    parser.add_argument("ids", nargs="*")
    asked = parser.parse_args()
    cases = yaml.safe_load((HERE / "cases.yaml").read_text())
    wrong = 0
    for case in cases:
        if not asked.ids or case["id"] in asked.ids:
            try:
                told = record(case, asked.work.absolute(), asked.bridge, asked.mcore)
            except Exception as error:  # one case must not end the others
                told = f"not recorded: {type(error).__name__}: {error}"
            wrong += bool(told)
            print(f"{case['id']}: {told or 'as expected'}", flush=True)
    return 1 if wrong else 0


def record(case: dict[str, Any], records: Path, bridge: str, mcore: str) -> str:
    """Run one case and keep it; what is not as the case says, or an empty text."""
    work = records / case["id"]
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    made = prepare.Case(work=work, records=records, bridge=bridge, mcore=mcore)
    made.fields |= {"work": str(work)}
    before = getattr(prepare, case["prepare"])(made) if "prepare" in case else None
    with before or contextlib.nullcontext():
        platform = str(platform_path(root(os.environ)))
        fields = {name: text.replace("{platform}", platform) for name, text in made.fields.items()}
        words = [_fill(word, fields) for word in case.get("words", ())]
        words += [word.replace("{work}", str(work)) for word in EVENTS]
        command = [sys.executable, "-m", "proveout", "run", "--loop", "verl", "--platform", "cpu", "--json"]
        command += ["--level", case["level"], *(["--dry-run"] if case.get("direct") else [])]
        command += ["--state-dir", str(work / "state"), *made.options, "--", *words]
        with (work / "err.txt").open("w") as err, (work / "report.json").open("w") as out:
            subprocess.run(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=work, check=False)
        if case.get("direct"):
            _direct(work)
    return _keep(case, work)


def _direct(work: Path) -> None:
    """Run the planned command itself, and write down what an attempt of it would have left."""
    (step,) = json.loads((work / "report.json").read_text())["steps"]
    attempt = work / "state" / "runs" / "direct" / "attempts" / "01-direct"
    attempt.mkdir(parents=True)
    argv = [word.replace("{attempt_dir}", str(attempt)) for word in step["command"]["argv"]]
    env = {name: text.replace("{attempt_dir}", str(attempt)) for name, text in step["command"]["env"].items()}
    started = time.time()
    with (attempt / "run.log").open("w") as log:
        done = subprocess.run(
            argv,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=os.environ | env,
            cwd=attempt,
            check=False,
        )
    ended = {"end": "exited", "code": done.returncode, "signal": None, "started": started}
    ended |= {"finished": time.time(), "launcher": "none", "detail": ""}
    (attempt / "result.json").write_text(json.dumps({"verdict": "", "exit": ended}))
    (work / "report.json").write_text(json.dumps({"result": "", "summary": "started without proveout"}))


def _keep(case: dict[str, Any], work: Path) -> str:
    run = next((work / "state" / "runs").iterdir(), None)
    if run is None:
        return (work / "err.txt").read_text()[-500:]
    attempts = sorted(path for path in run.glob("attempts/*") if (path / "result.json").exists())
    report = json.loads((work / "report.json").read_text())
    kept: dict[str, Any] = {"id": case["id"], "verdict": report["result"], "summary": report["summary"]}
    DATA.mkdir(exist_ok=True)
    text = json.dumps(report)
    if attempts:
        last = attempts[-1]
        result = json.loads((last / "result.json").read_text())
        kept |= {"verdict": result["verdict"], "exit": result["exit"]}
        refit = last / "refit.jsonl"
        kept["refit"] = refit.read_text().splitlines() if refit.exists() else []
        text = json.dumps(result)
        log = scrub((last / "run.log").read_text(errors="replace"), work)
        lines = [line[:LONGEST_LINE] for line in log.splitlines()]
        packed = gzip.compress("\n".join([*lines, ""]).encode(), 9, mtime=0)
        (DATA / f"{case['id']}.log.gz").write_bytes(packed)
        for events in sorted((work / "events").glob("events.out.tfevents.*")):
            if events.stat().st_size < EMPTY:
                continue
            # Its own name holds the machine's; what it holds is the writer's name, steps, times and numbers.
            (DATA / f"{case['id']}.events.gz").write_bytes(gzip.compress(events.read_bytes(), 9, mtime=0))
    (DATA / f"{case['id']}.json").write_text(scrub(json.dumps(kept, indent=1), work) + "\n")
    if case.get("direct"):
        return ""
    problems = (
        [] if kept["verdict"] == case["verdict"] else [f"{kept['verdict']} in place of {case['verdict']}"]
    )
    problems += [f"{word!r} is not said" for word in case.get("says", ()) if word.lower() not in text.lower()]
    return "; ".join(problems)


def _fill(word: str, fields: dict[str, str]) -> str:
    for name, value in fields.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def scrub(text: str, work: Path) -> str:
    """The text without this machine's paths, names and addresses."""
    text = text.replace(str(work.resolve()), "/run").replace(str(work), "/run")
    text = text.replace(str(root(os.environ)), "/stacks").replace(sys.base_prefix, "/python")
    text = text.replace(str(HERE.parents[2]), "/proveout").replace(str(Path.home()), "/home/user")
    text = text.replace(socket.gethostname(), "node")
    return re.sub(
        r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?!\.)", lambda m: m[0] if m[0].startswith("127.") else "10.0.0.1", text
    )


if __name__ == "__main__":
    sys.exit(main())
