"""Interpreters and their packages, asked of real virtual environments."""

from __future__ import annotations

from pathlib import Path

from tests.preflight.conftest import Find, distribution

from proveout.domain.finding import Severity
from proveout.domain.preflight import Worker
from proveout.domain.verdict import Verdict
from proveout.preflight.requirements import of_extra


def worker(python: str, loop: str = "bench", **fields: object) -> tuple[Worker, ...]:
    return (Worker(name=f"{loop} worker", argv=(python,), loop=loop, **fields),)  # type: ignore[arg-type]


def test_an_interpreter_that_does_not_start_blocks(find: Find, tmp_path: Path) -> None:
    (absent,) = find("python", workers=worker(str(tmp_path / "no" / "python")))
    assert absent.decides is Verdict.BLOCKED and "does not start" in absent.what
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'bad interpreter state' >&2\nexit 7\n")
    broken.chmod(0o755)
    (silent,) = find("python", workers=worker(str(broken)))
    assert "status 7: bad interpreter state" in silent.what


def test_a_real_interpreter_is_silent(find: Find, bare_python: str) -> None:
    assert find("python", workers=worker(bare_python)) == ()


def test_an_environment_without_the_bench_packages_blocks(find: Find, bare_python: str) -> None:
    (finding,) = find("packages", workers=worker(bare_python))
    assert finding.decides is Verdict.BLOCKED
    assert "torch" in finding.what and "transformers" in finding.what
    assert "proveout[bench]" in finding.remedy


def test_another_version_warns_and_the_declared_ones_are_silent(
    find: Find, bare_python: str, tmp_path: Path
) -> None:
    for place, torch in (("old", "2.9.1"), ("right", "2.13.0+cpu")):
        for need in of_extra("bench"):
            version = torch if need.name == "torch" else next(iter(need.specifier)).version
            distribution(tmp_path / place, need.name, version)
    (finding,) = find("packages", workers=worker(bare_python, env={"PYTHONPATH": str(tmp_path / "old")}))
    assert finding.severity is Severity.WARNING
    assert "torch 2.9.1" in finding.what and "peft" not in finding.what
    assert find("packages", workers=worker(bare_python, env={"PYTHONPATH": str(tmp_path / "right")})) == ()
