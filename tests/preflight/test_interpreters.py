"""Interpreters and their packages, asked of real virtual environments."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from tests.preflight import trees
from tests.preflight.conftest import Find, distribution

from proveout.domain.finding import Finding, Severity
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


def test_versions_are_compared_with_what_the_checkout_declares(
    find: Find, bare_python: str, tmp_path: Path
) -> None:
    nemo, verl = tmp_path / "nemo-rl", tmp_path / "verl"
    nemo.mkdir()
    verl.mkdir()
    declared = '[project]\nname = "x"\nrequires-python = "{}"\ndependencies = ["torch=={}", "ray>=2.5"]\n'
    (nemo / "pyproject.toml").write_text(declared.format(">=3.99", "2.11.0"))
    (verl / "pyproject.toml").write_text('[project]\nname = "v"\nrequires-python = ">=3.10"\n')
    (verl / "setup.py").write_text("install_requires = ['torch>=2.0', 'transformers>=5,<5.11']\nboom()\n")
    distribution(tmp_path / "env", "torch", "2.13.0+cpu")
    distribution(tmp_path / "env", "transformers", "5.12.1")
    env = {"PYTHONPATH": str(tmp_path / "env")}

    def checked(loop: str, root: Path) -> tuple[Finding, ...]:
        workers = worker(bare_python, loop, env=env)
        return find("declared", loops=(loop,), checkouts={loop: str(root)}, workers=workers)

    python, packages = checked("nemo-rl", nemo)
    assert "declares >=3.99" in python.what
    assert "torch 2.13.0+cpu (declared ==2.11.0)" in packages.what and "ray is not installed" in packages.what
    (setup,) = checked("verl", verl)
    assert "transformers 5.12.1" in setup.what and "torch" not in setup.what
    (nemo / "pyproject.toml").write_text(declared.format(">=3.11", "2.13.0").replace(', "ray>=2.5"', ""))
    assert checked("nemo-rl", nemo) == ()


def test_a_helper_built_for_another_python_warns(find: Find, bare_python: str, tmp_path: Path) -> None:
    checkout = trees.bridge(tmp_path / "bridge")
    datasets = Path(checkout) / "3rdparty" / "Megatron-LM" / "megatron" / "core" / "datasets"
    datasets.mkdir()
    (datasets / "helpers_cpp.cpp").write_text("")
    workers = worker(bare_python, "nemo-rl", env={"PYTHONPATH": trees.path_of(checkout)})
    fields = {"loops": ("nemo-rl",), "workers": workers}
    assert find("helpers-cpp", **fields) == ()
    for wrong in ("helpers_cpp", "helpers_cpp.cpython-399-x86_64-linux-gnu.so"):
        (datasets / wrong).write_bytes(b"\x7fELF")
        (finding,) = find("helpers-cpp", **fields)
        assert wrong in finding.what
    (datasets / f"helpers_cpp{sysconfig.get_config_var('EXT_SUFFIX')}").write_bytes(b"\x7fELF")
    assert find("helpers-cpp", **fields) == ()
