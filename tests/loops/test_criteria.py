"""Each pass criterion of the documents, broken alone in a run of a stand-in, gets the right verdict and line."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from proveout.domain.verdict import Verdict

HERE = Path(__file__).parent
TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "criteria.yaml").read_text())
RUNS = [
    pytest.param(loop, *run, id=f"{loop}-{run[2]}-L{run[0]}")
    for loop, rows in TABLE.items()
    for row in rows
    for run in row.get("runs", ())
]


def test_every_criterion_has_a_run_or_a_test_that_breaks_it() -> None:
    defined = {
        f"{path.name}::{node.name}"
        for path in HERE.glob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    for loop, rows in TABLE.items():
        names = [row["criterion"] for row in rows]
        assert len(set(names)) == len(names), loop
        for row in rows:
            assert row.get("runs") or row.get("tests"), row["criterion"]
            assert set(row.get("tests", ())) <= defined, row["criterion"]


@pytest.mark.real
@pytest.mark.parametrize(("loop", "level", "variant", "fault", "verdict", "finding", "line"), RUNS)
def test_a_run_that_breaks_one_criterion(
    prove: Callable[..., Any],
    loop: str,
    level: int,
    variant: str,
    fault: str,
    verdict: str,
    finding: str,
    line: str,
) -> None:
    proof = prove(loop, level, fault, variant=variant)
    result = next(result for result in proof.results.values() if result.attempts)
    found = proof.of(result)
    assert result.verdict is Verdict(verdict), (found.ids, found.cited)
    assert finding in found.ids, found.ids
    assert line in found.cited
    assert any(cited.id.startswith("flow.construction.") for cited in result.attempts[-1].findings)
