"""verl's training and validation files: there, readable, and of the schema that its reader wants."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proveout.assets import places
from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import interpreters, probe, workers
from proveout.preflight.check import Check, Cost, blocked, notice
from proveout.preflight.loops import wants

REMEDY = "proveout data gsm8k --from DIR -o DIR, or proveout data toy -o DIR"
OVERRIDES = ("data.train_files", "data.val_files")
DEFAULTS = {
    "TRAIN_FILES": (OVERRIDES[0], "data/gsm8k/train.parquet"),
    "VAL_FILES": (OVERRIDES[1], "data/gsm8k/test.parquet"),
}


def named(context: PreflightContext) -> dict[str, Path]:
    """The files by what names them: overrides of the steps, else the wrapper's variables and its defaults."""
    words = [word.lstrip("+") for command in context.commands("verl") for word in command.argv]
    pairs = dict(word.split("=", 1) for word in words if word.split("=", 1)[0] in OVERRIDES and "=" in word)
    made = tuple(workers.makes(command) for command in context.commands("verl") if workers.makes(command))
    found = {
        key: Path(value.strip("'\"")) for key, value in pairs.items() if not value.startswith(("[", *made))
    }
    if workers.wrapped(context):
        env = context.environment("verl")
        for name, (key, default) in DEFAULTS.items():
            if key not in pairs:
                found[name] = Path(env.get(name) or places.home(env) / default)
    return found


def run(context: PreflightContext) -> Iterator[Finding]:
    """Absent and unreadable files, and rows that verl's data set cannot use."""
    there = {}
    for name, file in named(context).items():
        if file.is_file():
            there[name] = file
        else:
            yield blocked(
                "gsm8k.absent",
                f"verl's {name} is not there",
                where=Where(file=str(file), key=name),
                remedy=REMEDY,
            )
    if not there:
        return
    answer = _ask(context, [str(file) for file in there.values()])
    for name, file in there.items():
        where = Where(file=str(file), key=name)
        report = answer["files"][str(file)]
        wrong = [f"cannot be read: {report['error']}"] if report["error"] else faults(report)
        if wrong:
            yield blocked("gsm8k.schema", f"{name}: {'; '.join(wrong)}", where=where, remedy=REMEDY)
        elif report["row"].get("data_source") != "openai/gsm8k":
            yield notice(
                "gsm8k.source",
                f"{name} is of {report['row'].get('data_source')!r}, for which verl may have no reward",
                where=where,
                remedy="name a reward function (custom_reward_function.path), or use openai/gsm8k rows",
            )


def faults(report: dict[str, Any]) -> list[str]:
    """What keeps verl from reading rows like the first one (verl, its data set and reward manager)."""
    row = report["row"]
    if not report["rows"]:
        return ["no rows"]
    missing = [name for name in ("data_source", "prompt", "reward_model") if name not in report["columns"]]
    wrong = [f"no column {name}" for name in missing]
    prompt, reward = row.get("prompt"), row.get("reward_model")
    chat = (
        isinstance(prompt, list)
        and prompt
        and all(isinstance(turn, dict) and {"role", "content"} <= turn.keys() for turn in prompt)
    )
    if "prompt" not in missing and not chat:
        wrong.append("prompt is not a list of {role, content}")
    if "reward_model" not in missing and not (isinstance(reward, dict) and "ground_truth" in reward):
        wrong.append("reward_model has no ground_truth")
    return wrong


def _ask(context: PreflightContext, paths: list[str]) -> dict[str, Any]:
    """Reads with the first interpreter that has pyarrow: a worker's, else proveout's own."""
    for worker in workers.of_run(context):
        try:
            if interpreters.report(context, worker)["packages"]["pyarrow"]:
                env = interpreters.environment(context, worker)
                program = (workers.program(worker, env), *worker.argv[1:])
                return probe.ask("parquet", program, {"paths": paths}, env=env)
        except BlockedError:
            continue
    try:
        answer = probe.ask("parquet", (sys.executable,), {"paths": paths}, env=context.env)
    except BlockedError as error:
        answer = {"missing": error.what}
    if answer.get("missing"):
        raise BlockedError("neither a worker's interpreter nor proveout's own has pyarrow")
    return answer


CHECK = Check(
    id="gsm8k",
    proves="verl's training and validation parquet files are there and have the columns that it reads",
    remedy=REMEDY,
    cost=Cost.FAST,
    applies=wants("verl"),
    run=run,
)
