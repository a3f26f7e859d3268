"""The engines' command lines, and what of this machine they mount. Nothing is started."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from proveout.domain.checkout import Checkout
from proveout.domain.errors import UsageError
from proveout.domain.files import write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Plan, Resources
from proveout.launch.container.argv import Wanted, container_argv, handed_in, of_the_engine
from proveout.launch.container.mounts import mounts_for
from proveout.launch.container.settings import ContainerSettings

WANTED = Wanted(
    name="proveout-1",
    image="sha256:ab",
    reference="verlai/verl:vllm011",
    script="/runs/r/attempts/01/container.sh",
    mounts=("/runs/r:/runs/r", "/a bridge:/a bridge", "/models/m:/models/m:ro"),
    names=("HF_TOKEN", "PYTHONPATH"),
    values={"HOME": "/tmp/home of it"},
)
FULL = ContainerSettings(
    user="1000:1000",
    memory="64g",
    network="none",
    runtime="nvidia",
    extra=("--cap-add=SYS_PTRACE",),
)


@pytest.mark.parametrize("podman", [False, True], ids=["docker", "podman"])
@pytest.mark.parametrize(
    ("settings", "gpus", "visible"),
    [
        (ContainerSettings(), 0, ""),
        (ContainerSettings(), 2, ""),
        (ContainerSettings(), 2, "4,5,6"),
        (ContainerSettings(gpus="all"), 2, ""),
        (ContainerSettings(gpus="0,1", ulimits=("nofile=1:1",), entrypoint=True), 8, ""),
        (FULL, 0, ""),
    ],
    ids=["plain", "two gpus", "visible gpus", "all gpus", "named gpus, entry point", "everything"],
)
def test_the_command_line(
    settings: ContainerSettings, gpus: int, visible: str, podman: bool, snapshot: SnapshotAssertion
) -> None:
    engine = "podman" if podman else "docker"
    words = container_argv(
        engine,
        podman,
        WANTED,
        ("bash", "run.sh", "a b", "trainer.x='y z'"),
        Resources(gpus=gpus),
        settings,
        visible,
    )
    assert shlex.join(words).replace(" --", " \\\n  --") == snapshot


def test_of_the_callers_variables_only_allowed_ones_are_handed_in() -> None:
    env = {"HF_TOKEN": "t", "OTHER": "o", "MINE": "m", "HF_HOME": "/h"}
    handed = handed_in(env, {"OWN": "1"}, ("HF_HOME",), ("MINE",))
    assert handed == {"HF_TOKEN": "t", "MINE": "m", "OWN": "1"}


@pytest.mark.parametrize(
    "name", ["HOME", "PATH", "LD_PRELOAD", "DOCKER_HOST", "CONTAINERS_CONF", "XDG_RUNTIME_DIR"]
)
def test_what_the_engine_reads_itself_is_kept_from_it(name: str) -> None:
    assert of_the_engine(name)


def attempt(tmp_path: Path, *checkouts: str) -> AttemptLayout:
    run = tmp_path / "run"
    (run / "attempts" / "01").mkdir(parents=True)
    write_json(run / "plan.json", Plan(model="m", levels=(), steps=()))
    trees = [Checkout(role="bridge", path=path) for path in checkouts]
    write_json(run / "checkouts.json", trees)
    return AttemptLayout(run / "attempts" / "01")


def test_run_checkouts_and_caches_are_writable_and_what_the_command_names_is_not(tmp_path: Path) -> None:
    for name in ("bridge", "cache", "model", "lib", "unnamed"):
        (tmp_path / name).mkdir()
    files = attempt(tmp_path, str(tmp_path / "bridge"))
    command = Command(
        argv=(
            "bash",
            "run.sh",
            f"model={tmp_path / 'model'}",
            "--x",
            "/usr/bin",
            "/tmp",
            "/",
            "relative/path",
        ),
        env={"DATA": "/nowhere/at/all"},
        cwd=str(tmp_path / "bridge" / "tests"),
    )
    (tmp_path / "bridge" / "tests").mkdir()
    env = {
        "HF_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": f"{tmp_path / 'bridge' / 'src'}:{tmp_path / 'lib'}",
    }
    (tmp_path / "bridge" / "src").mkdir()
    mounts = mounts_for(command, files, env, ())
    assert set(mounts) == {
        f"{tmp_path / 'run'}:{tmp_path / 'run'}",
        f"{tmp_path / 'bridge'}:{tmp_path / 'bridge'}",
        f"{tmp_path / 'cache'}:{tmp_path / 'cache'}",
        f"{tmp_path / 'model'}:{tmp_path / 'model'}:ro",
        f"{tmp_path / 'lib'}:{tmp_path / 'lib'}:ro",
    }


def test_what_the_user_mounts_comes_instead_of_what_would_be_mounted_there(tmp_path: Path) -> None:
    (tmp_path / "bridge").mkdir()
    (tmp_path / "other").mkdir()
    files = attempt(tmp_path, str(tmp_path / "bridge"))
    asked = (f"{tmp_path / 'other'}:{tmp_path / 'bridge'}:ro",)
    mounts = mounts_for(Command(argv=("true",), cwd=str(files.root)), files, {}, asked)
    assert mounts == (f"{tmp_path / 'run'}:{tmp_path / 'run'}", *asked)


def test_a_mount_of_nothing_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="/nowhere/x is not here"):
        mounts_for(Command(argv=("true",), cwd="/"), attempt(tmp_path), {}, ("/nowhere/x:/x",))


def test_an_interpreter_of_this_machine_comes_with_what_it_is_made_from(tmp_path: Path) -> None:
    venv, base, source = tmp_path / "venv", tmp_path / "base", tmp_path / "source"
    packages = venv / "lib" / "python3.11" / "site-packages"
    for place in (packages, venv / "bin", base / "bin", source):
        place.mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "pyvenv.cfg").write_text(f"home = {base / 'bin'}\nversion = 3.11\n")
    (packages / "__editable__.pth").write_text(f"import something\n{source}\n")
    files = attempt(tmp_path)
    command = Command(argv=(str(venv / "bin" / "python"), "-m", "loop"), cwd=str(files.root))
    mounts = mounts_for(command, files, {}, ())
    assert set(mounts[1:]) == {f"{path}:{path}:ro" for path in (venv, base, source)}


@pytest.mark.parametrize("cwd", ["/", str(Path.home()), "/tmp"])
def test_no_directory_that_holds_everything_is_mounted(cwd: str, tmp_path: Path) -> None:
    mounts = mounts_for(Command(argv=("true",), cwd=cwd), attempt(tmp_path), {"HF_HOME": cwd}, ())
    assert len(mounts) == 1


def test_the_home_directory_is_not_mounted_because_a_command_names_it(tmp_path: Path) -> None:
    command = Command(argv=("true", str(Path.home())), cwd="/nowhere")
    assert len(mounts_for(command, attempt(tmp_path), {}, ())) == 1
