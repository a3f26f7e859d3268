"""Hermetic runs: the container's command line, and what arrives at the program at the end of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proveout.cli.main import run
from proveout.domain.errors import UsageError
from proveout.testaids.container import (
    container_argv,
    functional_in_container,
    unit_in_container,
)

AWKWARD = ["-k", "a and (b or not c)", "--opt=it's", "$HOME", "", "*", "++x.y=[1, 2]", "line\nbreak"]


def unit_run(root: Path, argv: list[str], interactive: bool = False):
    return unit_in_container(
        root, "image:1", argv, hf_home=Path("/cache/hf"), out=Path("/tmp/out"), interactive=interactive
    )


def inner(argv: tuple[str, ...], image: str = "image:1") -> list[str]:
    """What the container runs: everything behind the image's name."""
    return list(argv[argv.index(image) + 1 :])


def test_the_unit_command_line():
    argv = container_argv(unit_run(Path("/src/nemo-rl"), ["uv", "run", "pytest", "unit/"]))

    assert list(argv) == [
        "docker", "run", "--rm", "--user", "root",
        "--ulimit", "memlock=-1", "--ulimit", "stack=67108864", "--cap-add=SYS_PTRACE",
        "--gpus", '"device=0,1"',
        "--volume", "/src/nemo-rl:/workspace", "--volume", "/cache/hf:/hf_home",
        "--volume", "/tmp/out:/proveout-out",
        "--env", "HF_TOKEN", "--env", "HF_HOME=/hf_home", "--env", "HOME=/tmp/", "--env", "PYTHONPATH=/workspace",
        "--workdir", "/workspace/tests", "image:1",
        "bash", "-c", 'umask 000 && exec "$@"', "bash",
        "uv", "run", "pytest", "unit/",
    ]  # fmt: skip


def test_a_terminal_is_asked_for_only_when_there_is_one():
    assert "--tty" in container_argv(unit_run(Path("/r"), ["true"], interactive=True))
    assert "--tty" not in container_argv(unit_run(Path("/r"), ["true"]))


def test_every_argument_arrives_as_it_was_given():
    program = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]
    argv = inner(container_argv(unit_run(Path("/r"), [*program, *AWKWARD])))

    arrived = subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    assert json.loads(arrived) == AWKWARD


def test_the_umask_lets_others_remove_what_root_wrote():
    argv = inner(container_argv(unit_run(Path("/r"), ["bash", "-c", "umask"])))
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip() == "0000"


def test_a_functional_script_keeps_its_path_and_all_overrides(tmp_path):
    script = tmp_path / "tests" / "functional" / "sft.sh"
    script.parent.mkdir(parents=True)
    script.write_text("")
    caches = {"HF_HOME": Path("/hf"), "HF_DATASETS_CACHE": Path("/ds")}
    for named in ("functional/sft.sh", "tests/functional/sft.sh"):
        made = functional_in_container(
            tmp_path,
            "image:1",
            named,
            ["sft.max_num_steps=3", "++a.b=[1, 2]"],
            caches=caches,
            interactive=False,
        )
        argv = container_argv(made)
        assert inner(argv)[4:] == [
            "uv", "run", "bash", "-x", str(script), "sft.max_num_steps=3", "++a.b=[1, 2]",
        ]  # fmt: skip
        assert f"{tmp_path}:{tmp_path}" in argv
        assert argv[argv.index("--workdir") + 1] == str(tmp_path / "tests")


def test_a_missing_script_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no such script"):
        functional_in_container(tmp_path, "i", "functional/x.sh", [], caches={}, interactive=False)


def test_secrets_are_passed_by_name_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "hf_" + "a" * 30)
    assert not any("hf_aaa" in word for word in container_argv(unit_run(tmp_path, ["true"])))


def test_podman_names_its_devices_and_another_engine_is_refused():
    argv = container_argv(unit_run(Path("/r"), ["true"]), "podman")
    assert argv[argv.index("--device") :][:4] == (
        "--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1",
    )  # fmt: skip
    with pytest.raises(UsageError, match="did you mean 'docker'"):
        container_argv(unit_run(Path("/r"), ["true"]), "docke")


def test_a_hermetic_run_is_judged_by_the_report_that_comes_out_of_the_container(
    checkout, program, monkeypatch, capfd
):
    """The engine here starts the command in place: mounted paths are put back to those of the host."""
    program("uv", f'shift 4; exec {sys.executable} -m pytest "$@"')
    program(
        "docker",
        """
        for word in "$@"; do
          case "$word" in *:/proveout-out) out="${word%:*}";; *:/workspace) root="${word%:*}";; esac
        done
        while [ "$1" != "image:1" ]; do shift; done; shift
        cd "$root/tests" && exec "${@//\\/proveout-out/$out}"
        """,
    )
    monkeypatch.setenv("CONTAINER", "image:1")
    (checkout / "tests" / "unit" / "test_a.py").write_text("def test_a_b(): pass\ndef test_a_c(): pass\n")
    words = ["unit", "default", "--repo", str(checkout), "--hermetic", "--", "-p", "no:cacheprovider"]

    assert run([*words, "-k", "a and not c"]) == 0
    assert "Pass: unit tests, default: 1 passed, 0 skipped" in capfd.readouterr().out
    assert run([*words, "-k", "nothing"]) == 1


def test_a_hermetic_run_without_an_image_is_refused(checkout, capfd):
    assert run(["unit", "default", "--repo", str(checkout), "--hermetic"]) == 2
    assert "CONTAINER" in capfd.readouterr().err


def test_an_engine_that_cannot_start_the_container_is_blocked(checkout, program, capfd):
    program("docker", "echo no such image >&2; exit 125")
    assert run(["unit", "default", "--repo", str(checkout), "--container", "image:1"]) == 3
    assert "Blocked" in capfd.readouterr().out
