"""srun with containers and ray.sub: the command lines of the guides, and both run for real but for the container.

pyxis is not here. What is run goes through a stand-in that takes its options and hands the rest to the real srun.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.launch.engines import require

from proveout import launch
from proveout.domain.errors import UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch import LaunchSite
from proveout.launch.launchers import containers, ray_sub
from proveout.launch.logs import extra_logs

STANDINS = Path(__file__).parent / "standins"


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Checkouts as their variables name them; nothing of this machine's own environment."""
    for name in (
        "PYTHONPATH",
        "HF_HOME",
        "MODEL_PATH",
        "BRIDGE_REPO",
        "MCORE_REPO",
        "NEMO_RL_REPO",
        "VERL_REPO",
    ):
        monkeypatch.delenv(name, raising=False)
    found = {}
    for name, folder in (
        ("BRIDGE_REPO", "Megatron-Bridge"),
        ("NEMO_RL_REPO", "nemo-rl"),
        ("VERL_REPO", "verl"),
    ):
        (tmp_path / folder).mkdir()
        found[name] = str(tmp_path / folder)
    (tmp_path / "Megatron-Bridge" / "src").mkdir()
    (tmp_path / "Megatron-Bridge" / "3rdparty" / "Megatron-LM").mkdir(parents=True)
    return found


@pytest.fixture
def files(tmp_path: Path) -> AttemptLayout:
    (tmp_path / "run" / "attempts" / "01").mkdir(parents=True)
    return AttemptLayout(tmp_path / "run" / "attempts" / "01")


def guide_command(trees: dict[str, str], role: str, *words: str) -> Command:
    """The environment that the guides set inside the container."""
    bridge = trees["BRIDGE_REPO"]
    path = f"{bridge}/src:{bridge}/3rdparty/Megatron-LM:{trees[role]}"
    env = {"BRIDGE_REPO": bridge, role: trees[role], "PYTHONPATH": path}
    return Command(argv=words, cwd=trees[role], env=env)


def shown(words: str, tmp_path: Path) -> str:
    return words.replace(str(tmp_path), "<root>").replace(sys.executable, "<python>")


def site(launcher: str, **more: object) -> LaunchSite:
    found = {"scheduler": "slurm", "launcher": launcher, "image": "registry/nemo-rl:tag"} | more
    return LaunchSite(**found)


def test_srun_says_what_the_nemo_rl_guide_says(
    trees: dict[str, str], files: AttemptLayout, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    command = guide_command(trees, "NEMO_RL_REPO", "uv", "run", "bash", "tests/functional/grpo_megatron.sh")
    wanted = site("srun", setup=("-ray stop --force",), mounts=(str(tmp_path),))
    wrapped = launch.launcher("srun").wrap(command, files, Resources(gpus=2), wanted)
    assert shown(shlex.join(wrapped.command.argv), tmp_path) == snapshot


def test_srun_says_what_the_verl_guide_says(
    trees: dict[str, str], files: AttemptLayout, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    command = guide_command(trees, "VERL_REPO", "bash", "tests/special_e2e/run_ppo_trainer_megatron.sh")
    command = Command(
        argv=command.argv, cwd=command.cwd, env=command.env | {"LORA_RANK": "4", "TOTAL_TRAIN_STEPS": "1"}
    )
    wanted = site(
        "srun", image="verlai/verl:vllm-tag", setup=("-ray stop --force",), workdir="/workspace/verl"
    )
    wrapped = launch.launcher("srun").wrap(command, files, Resources(gpus=8), wanted)
    assert shown(shlex.join(wrapped.command.argv), tmp_path) == snapshot


def test_ray_sub_gets_the_environment_of_the_guide(
    trees: dict[str, str], files: AttemptLayout, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (Path(trees["NEMO_RL_REPO"]) / "ray.sub").write_text((STANDINS / "ray.sub").read_text())
    words = ("uv", "run", "./examples/run_grpo.py", "--config", "examples/configs/grpo_math_1B_megatron.yaml")
    command = guide_command(trees, "NEMO_RL_REPO", *words, "cluster.num_nodes=2", "cluster.gpus_per_node=8")
    wanted = site("ray.sub", mounts=("/hf:/hf",), mcore_copy="/tmp/me/Megatron-LM")
    wrapped = launch.launcher("ray.sub").wrap(command, files, Resources(gpus=16, nodes=2), wanted)
    own = {key: value for key, value in wrapped.command.env.items() if key not in command.env}
    lines = [f"{key}={value}" for key, value in sorted(own.items())]
    lines += ["", shlex.join(wrapped.command.argv), *wrapped.batch_options, wrapped.log_link]
    assert shown("\n".join(lines), tmp_path) == snapshot


def test_the_command_exports_the_import_path_and_fails_with_its_pipe(
    trees: dict[str, str], files: AttemptLayout
) -> None:
    command = guide_command(trees, "NEMO_RL_REPO", "sh", "-c", 'echo "$PYTHONPATH"; exit 3 | cat')
    done = subprocess.run(
        ["bash", "-c", containers.inside(command, site("srun")) + " | cat"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == command.env["PYTHONPATH"]
    script = containers.inside(command, site("srun")).replace(shlex.join(command.argv), "false | cat")
    assert subprocess.run(["bash", "-c", script], check=False).returncode == 1


def test_megatron_core_is_copied_built_with_the_right_suffix_and_put_first(tmp_path: Path) -> None:
    bridge, local = tmp_path / "bridge", tmp_path / "local" / "Megatron-LM"
    datasets = bridge / "3rdparty" / "Megatron-LM" / "megatron" / "core" / "datasets"
    datasets.mkdir(parents=True)
    (datasets / "Makefile").write_text(
        "LIBEXT ?= .wrong\ndefault: helpers_cpp$(LIBEXT)\nhelpers_cpp$(LIBEXT):\n\techo built > $@\n"
    )
    source = bridge / "3rdparty" / "Megatron-LM"
    env = {"BRIDGE_REPO": str(bridge), "PYTHONPATH": f"{bridge}/src:{source}"}
    code = "import os; print(os.environ['MCORE_REPO'], os.environ['PYTHONPATH'])"
    command = Command(argv=(sys.executable, "-c", code), cwd=str(tmp_path), env=env, unset=("MCORE_REPO",))
    text = containers.inside(command, site("srun", mcore_copy=str(local), mcore_python=sys.executable))
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{local} {bridge}/src:{local}"
    import sysconfig

    assert (
        local / "megatron/core/datasets" / f"helpers_cpp{sysconfig.get_config_var('EXT_SUFFIX')}"
    ).exists()
    assert not list(datasets.glob("helpers_cpp*")), "the checkout itself is left alone"


def test_secrets_are_in_no_command_line(
    trees: dict[str, str], files: AttemptLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = guide_command(trees, "NEMO_RL_REPO", "true")
    command = Command(
        argv=("true",), cwd=command.cwd, env=command.env | {"WANDB_API_KEY": "planted-secret-value"}
    )
    wrapped = launch.launcher("srun").wrap(command, files, Resources(), site("srun"))
    assert "planted-secret-value" not in shlex.join(wrapped.command.argv)
    assert wrapped.command.env["WANDB_API_KEY"] == "planted-secret-value", "srun hands its environment on"


@pytest.mark.parametrize("launcher", ["srun", "ray.sub"])
def test_what_makes_no_sense_is_refused_with_what_does(launcher: str) -> None:
    with pytest.raises(UsageError, match="cannot be used with scheduler 'local'") as caught:
        launch.launch_for(LaunchSite(launcher=launcher, image="x"))
    assert "slurm" in caught.value.remedy
    with pytest.raises(UsageError, match="needs an image"):
        launch.launch_for(LaunchSite(scheduler="slurm", launcher=launcher))


def ended(job: launch.Job) -> ExitRecord:
    limit = time.monotonic() + 60
    while (record := job.poll()) is None:
        assert time.monotonic() < limit
        time.sleep(0.02)
    return record


@pytest.fixture
def standins(monkeypatch: pytest.MonkeyPatch) -> None:
    require("slurm")
    monkeypatch.setenv("PATH", f"{STANDINS}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.real
@pytest.mark.usefixtures("standins")
def test_an_srun_step_ends_with_the_commands_status(trees: dict[str, str], files: AttemptLayout) -> None:
    command = guide_command(trees, "VERL_REPO", "sh", "-c", 'echo "$PYTHONPATH"; pwd; exit 5')
    record = ended(launch.launch_for(site("srun")).submit(command, files, Resources()))
    assert (record.end, record.code, record.launcher) == (End.EXITED, 5, "slurm+srun")
    said = [line for line in files.log.read_text().splitlines() if not line.startswith("srun: ")]
    assert said == [command.env["PYTHONPATH"], trees["VERL_REPO"]]


@pytest.mark.real
@pytest.mark.usefixtures("standins")
def test_a_missing_image_is_no_pass_and_its_words_are_in_the_log(
    trees: dict[str, str], files: AttemptLayout
) -> None:
    command = guide_command(trees, "VERL_REPO", "true")
    record = ended(launch.launch_for(site("srun", image="missing:tag")).submit(command, files, Resources()))
    assert not record.ok
    assert "failed to import docker image" in files.log.read_text()


@pytest.mark.real
@pytest.mark.usefixtures("standins")
def test_ray_subs_driver_log_is_the_log_and_the_others_go_to_triage(
    trees: dict[str, str], files: AttemptLayout
) -> None:
    (Path(trees["NEMO_RL_REPO"]) / "ray.sub").write_text((STANDINS / "ray.sub").read_text())
    code = "import os, sys; print('from the driver', os.environ['PYTHONPATH']); sys.exit(4)"
    command = guide_command(trees, "NEMO_RL_REPO", sys.executable, "-c", code)
    wanted = site("ray.sub", tables={"ray-sub": {"gpus_per_node": 8}})
    record = ended(launch.launch_for(wanted).submit(command, files, Resources()))
    assert (record.end, record.code) == (End.EXITED, 4)
    assert files.log.read_text().strip() == f"from the driver {command.env['PYTHONPATH']}"
    others = {Path(path).name for path in extra_logs(files)}
    assert {"ray.sub.log", "ray-head.log"} <= others and "ray-driver.log" not in others
    assert "#SBATCH --exclusive\n" in (files.root / "slurm" / "batch.sh").read_text()
    assert ray_sub.logs(files)
