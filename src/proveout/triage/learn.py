"""Corrected cases: a log with its right answer is kept, and a rule is made from the line that caused it."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proveout.domain import redact
from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Boundary
from proveout.triage.catalog import Negative, Rule, compile_pattern, load, problems, user_rules_dir
from proveout.triage.engine import triage
from proveout.triage.lines import parse
from proveout.triage.reader import blocks, line_number, open_log

LEARNED = "learned.yaml"
KEPT = 256 << 10
_VARIABLE = re.compile(r"\d[\d.:]*|0x[0-9a-f]+|'[^']*'|\"[^\"]*\"|/\S+")


@dataclass(frozen=True)
class Stored:
    """What was stored, and whether triage now gives the answer that was asked for."""

    case: Path
    rule: str
    wanted: str
    got: str

    @property
    def right(self) -> bool:
        """Whether triage now names the boundary of the label."""
        return self.wanted == self.got

    def as_object(self) -> dict[str, Any]:
        """As JSON."""
        return {"case": str(self.case), "rule": self.rule, "label": self.wanted, "boundary_now": self.got}

    def as_text(self) -> str:
        """As a few lines."""
        rule = (
            f"rule {self.rule} stored beside it" if self.rule else "no rule made (name the line with --cause)"
        )
        return f"case stored: {self.case}\n{rule}\ntriage now says: {self.got} (label: {self.wanted})"


def learn(
    logs: Sequence[Path], label: str, *, subkind: str = "", cause: str = "", remedy: str = ""
) -> Stored:
    """Keep the first log's case under the user's rules directory; with ``cause``, add a rule made from that line.

    Raises UsageError for a label that is no boundary, a line that the log does not have, and a rule that fails
    the check of its own examples (nothing is stored then).
    """
    if label not in list(Boundary):
        raise UsageError(
            f"{label!r} is no boundary{nearest(label, list(Boundary))}", remedy=", ".join(Boundary)
        )
    boundary = Boundary(label)
    text = redact.text(_tail(logs[0]))
    line = redact.text(_cause_line(logs[0], cause)) if cause else ""
    rule = _rule(boundary, line, text, subkind, remedy) if line else None
    directory = user_rules_dir()
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    case = directory / "cases" / f"{name}.json"
    _write(case, json.dumps({"label": label, "subkind": subkind, "root_line": line, "log": text}, indent=1))
    if rule is not None:
        _add(directory / LEARNED, rule)
    load.cache_clear()
    return Stored(case, rule.id if rule else "", label, triage(logs).boundary.value)


def replay() -> list[tuple[Path, str, str]]:
    """Stored cases that triage does not answer as labelled: (case, wanted, got)."""
    import tempfile

    wrong: list[tuple[Path, str, str]] = []
    for case in sorted((user_rules_dir() / "cases").glob("*.json")):
        data = json.loads(case.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "run.log"
            log.write_text(data["log"], encoding="utf-8")
            got = triage([log]).boundary.value
        if got != data["label"]:
            wrong.append((case, data["label"], got))
    return wrong


def _tail(path: Path) -> str:
    kept = b""
    with open_log(path) as stream:
        for block in blocks(stream):
            kept = (kept + block.data[block.fresh :])[-KEPT:]
    return kept.decode("utf-8", "replace")


def _cause_line(path: Path, cause: str) -> str:
    if cause.isdigit():
        return line_number(path, int(cause))
    for line in _tail(path).splitlines():
        if cause in line:
            return line
    raise UsageError("no line of the log holds that text", where=str(path), remedy="give its line number")


def _rule(boundary: Boundary, line: str, text: str, subkind: str, remedy: str) -> Rule:
    body = parse(line.encode(), 1).text.strip()
    parts = _VARIABLE.split(body)
    pattern = ".{0,200}".join(re.escape(part) for part in parts).strip()
    if max((len(part.strip()) for part in parts), default=0) < 8:
        raise UsageError(
            "the line has no fixed words to make a rule of", where=line[:120], remedy="name another line"
        )
    matcher = compile_pattern(pattern)
    others = [other for other in text.splitlines() if other.strip() and not matcher.search(other.encode())]
    close = difflib.get_close_matches(body, [other[:400] for other in others[-400:]], n=1, cutoff=0.0)
    rule = Rule(
        id="mine-" + hashlib.sha256(pattern.encode()).hexdigest()[:8],
        pattern=pattern,
        boundary=boundary,
        role="cause" if boundary not in (Boundary.NOISE, Boundary.NONE) else "noise",
        subkind=subkind or "learned",
        strength=3,
        explanation="a line that a user named as the cause of a failure",
        remedy=remedy or "as noted with the stored case",
        source="a corrected case",
        positives=(line,),
        negatives=(
            Negative(
                close[0] if close else "step 1 loss 0.5", "a line of the same log that is not the cause"
            ),
        ),
    )
    wrong = problems([rule])
    if wrong:
        raise UsageError(wrong[0], where=line[:120], remedy="name another line")
    return rule


def _add(path: Path, rule: Rule) -> None:
    import msgspec
    import yaml

    data = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {"rules": []}
    kept = [old for old in data["rules"] if old["id"] != rule.id]
    _write(
        path,
        yaml.safe_dump({"rules": [*kept, msgspec.to_builtins(rule)]}, allow_unicode=True, sort_keys=False),
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(path.suffix + ".tmp")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
