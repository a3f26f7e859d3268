"""What a functional script does to the machine besides its run: it ends Ray clusters, it installs packages."""

from __future__ import annotations

import re

from proveout.domain.finding import Finding, Severity
from proveout.domain.step import Step
from proveout.domain.tree import Tree
from proveout.loops.findings import finding
from proveout.loops.shell import logical_lines

_CALLS = re.compile(r"\bbash\s+[\"']?(?:\$\{?PROJECT_ROOT\}?/)?([\w./-]+\.sh)\b")
_EFFECTS = (
    (
        "ray-stop",
        re.compile(r"(?<![#\w])ray stop\b"),
        "ends every Ray cluster of this machine that it may end (ray stop)",
        "run it where no other cluster of yours is",
    ),
    (
        "installs",
        re.compile(r"\b(?:apt-get|apt|yum|dnf|conda|pip)\b(?:\s+-\S+)*\s+install\b"),
        "installs packages into this machine or environment",
        "run it in a container, or install them beforehand",
    ),
)


def side_effects(step: Step, tree: Tree, script: str) -> list[Finding]:
    """One warning for each effect that the script, or a script that it calls, has besides its run."""
    found: dict[str, Finding] = {}
    for path in (script, *_called(tree, script)):
        for line in logical_lines(tree.text(path)):
            for name, pattern, what, remedy in _EFFECTS:
                if name not in found and pattern.search(line.text):
                    found[name] = finding(
                        f"script.{name}",
                        step.id,
                        f"{path} {what}",
                        file=path,
                        line=line.number,
                        severity=Severity.WARNING,
                        remedy=remedy,
                    )
    return list(found.values())


def _called(tree: Tree, script: str) -> list[str]:
    named = [match for line in logical_lines(tree.text(script)) for match in _CALLS.findall(line.text)]
    return [path for path in dict.fromkeys(named) if path != script and tree.exists(path)]
