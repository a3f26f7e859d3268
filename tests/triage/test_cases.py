"""Labelled logs: the boundary, the verdict and the line, plain and deep inside healthy output."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proveout.triage import triage

HERE = Path(__file__).parent
CASES = [
    case
    for name in ("cases_a.yaml", "cases_b.yaml", "cases_c.yaml")
    for case in yaml.safe_load((HERE / name).read_text())
]
HEALTHY = "".join(
    f"(TaskRunner pid=77) step:{n} - actor/pg_loss:0.0{n % 9} - actor/grad_norm:0.{n % 7} - timing_s/step:{n % 50}.1\n"
    f"(WorkerDict pid=78) generate_sequences memory allocated (GB): 3{n % 9}.10 [repeated 7x across cluster]\n"
    for n in range(4000)
)


def run(tmp_path, case, before=""):
    logs = [tmp_path / "run.log"]
    logs[0].write_text(before + case["log"], encoding="utf-8")
    for name, text in case.get("extra", {}).items():
        logs.append(tmp_path / name)
        logs[-1].write_text(text, encoding="utf-8")
    return triage(logs)


def holds(case, result):
    assert (result.boundary, result.verdict) == (case["boundary"], case["verdict"])
    assert case.get("cause", "") in (result.cause.text if result.cause else "")
    assert (result.cause is None) == ("cause" not in case)
    assert result.subkind == case.get("subkind", result.subkind)
    assert result.confidence == case.get("confidence", result.confidence)
    assert case.get("remedy", "") in result.remedy


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_answer_is_right(tmp_path, case):
    holds(case, run(tmp_path, case))


@pytest.mark.parametrize("case", [c for c in CASES if not c.get("alone")], ids=lambda case: case["id"])
def test_the_answer_stays_deep_inside_a_log(tmp_path, case):
    holds(case, run(tmp_path, case, HEALTHY))


def test_there_are_enough_cases_of_every_boundary():
    assert len(CASES) >= 25
    assert len({case["boundary"] for case in CASES}) >= 10
