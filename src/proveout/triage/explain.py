"""What the catalogue says of one line, and how a rule is shown."""

from __future__ import annotations

from typing import Any

from proveout.triage.catalog import Catalog, Rule, gate, load

_SHOWN = (
    "id",
    "role",
    "boundary",
    "subkind",
    "strength",
    "pattern",
    "frames",
    "explanation",
    "remedy",
    "source",
)


def explain(line: str, catalog: Catalog | None = None) -> list[Rule]:
    """The rules that match a line, strongest first. Limits by frames and stages are not applied: one line has none."""
    rules = catalog if catalog is not None else load()
    raw = line.encode("utf-8", "surrogateescape")
    found = [rule for index, rule in enumerate(rules.rules) if rules.matcher(index).search(raw)]
    return sorted(found, key=lambda rule: -rule.strength)


def rule_object(rule: Rule) -> dict[str, Any]:
    """A rule as JSON, with the words that gate it and its examples."""
    shown: dict[str, Any] = {name: getattr(rule, name) for name in _SHOWN}
    return shown | {
        "boundary": rule.boundary.value,
        "stages": list(rule.stages),
        "keywords": list(gate(rule.pattern)),
        "positives": list(rule.positives),
        "negatives": [{"line": negative.line, "why": negative.why} for negative in rule.negatives],
    }


def rule_text(rule: Rule) -> str:
    """A rule in a few lines of text."""
    what = rule.boundary.value if rule.role == "cause" else rule.role
    rows = [
        f"{rule.id}: {what}" + (f" ({rule.subkind})" if rule.subkind else "") + f", printed by {rule.source}"
    ]
    rows.append(f"  {rule.explanation}")
    if rule.frames:
        rows.append(f"  only where the traceback goes through: {rule.frames}")
    if rule.remedy:
        rows.append(f"  what to do: {rule.remedy}")
    return "\n".join(rows)
