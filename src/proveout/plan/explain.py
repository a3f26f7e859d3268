"""Why a path asks for the levels that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proveout.plan.change import from_paths
from proveout.plan.rules import rule_for


def explain(path: str, checkouts: Mapping[str, str]) -> list[dict[str, Any]]:
    """One entry for each file that ``path`` means: the rule that decides, its reason and its levels.

    Raises UsageError for a path that lies in no checkout.
    """
    found = []
    for file in from_paths([path], dict(checkouts)):
        rule = rule_for(file.role, file.path)
        found.append(
            {
                "path": file.path,
                "role": file.role,
                "rule": rule.id if rule else "",
                "reason": rule.reason if rule else "no rule knows the path",
                "levels": dict(rule.levels) if rule else {},
                "tests": list(rule.tests) if rule else [],
            }
        )
    return found


def lines(entries: list[dict[str, Any]]) -> list[str]:
    """The entries as text; files with the same rule are gathered."""
    gathered: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in entries:
        gathered.setdefault((entry["role"], entry["rule"]), []).append(entry)
    found = []
    for (role, rule), same in gathered.items():
        first = same[0]
        asks = "; ".join(f"{loop} {', '.join(map(str, levels))}" for loop, levels in first["levels"].items())
        others = f" and {len(same) - 1} more" if len(same) > 1 else ""
        found.append(f"{role}: {first['path']}{others}")
        found.append(f"  rule {rule or '(none)'}: {first['reason']}")
        found.append(f"  levels: {asks or 'none'}")
        if first["tests"]:
            found.append(f"  tests first: {', '.join(first['tests'])}")
    return found
