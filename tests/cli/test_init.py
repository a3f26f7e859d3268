"""``proveout init``, the settings file, and ``proveout skill``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from proveout.cli import main
from proveout.cli.commands import COMMANDS
from proveout.plan.checkouts import LANDMARKS
from proveout.plan.settings import read_settings

Ask = Callable[..., tuple[int, str, str]]


def tree(path: Path, role: str) -> Path:
    (path / LANDMARKS[role]).mkdir(parents=True)
    return path


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("BRIDGE_REPO", "MCORE_REPO", "NEMO_RL_REPO", "VERL_REPO"):
        monkeypatch.delenv(variable, raising=False)
    here = tree(tmp_path / "bridge", "bridge")
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    def call(*words: str) -> tuple[int, str, str]:
        status = main.run(list(words))
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_it_writes_settings_that_it_reads_and_a_workflow(bridge: Path, ask: Ask) -> None:
    assert ask("init")[0] == 0
    assert files_of(bridge) == {"proveout.toml", ".github/workflows/proveout.yml"}
    assert read_settings(bridge) == {"bridge": str(bridge)}
    assert ask("history")[0] == 0


def test_it_finds_the_other_trees(bridge: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(bridge.parent / "RL", "nemo-rl")
    for name in ("verl-a", "verl-b"):
        tree(bridge.parent / name, "verl")
    elsewhere = tree(bridge.parent.parent / f"{bridge.parent.name}-mcore", "mcore")
    monkeypatch.setenv("MCORE_REPO", str(elsewhere))
    _, out, _ = ask("init")
    assert read_settings(bridge) == {"bridge": str(bridge)}, "other paths belong to this machine"
    file = bridge / "proveout.toml"
    file.write_text(re.sub(r'^# (?=(?:nemo-rl|mcore) = ")', "", file.read_text(), flags=re.MULTILINE))
    found = {role: Path(path).resolve() for role, path in read_settings(bridge).items()}
    assert found == {"bridge": bridge, "nemo-rl": bridge.parent / "RL", "mcore": elsewhere}
    assert "nemo-rl: ../RL (found beside this tree; take it in there, or set NEMO_RL_REPO)" in out
    assert "verl: one of ../verl-a, ../verl-b; choose" in out


@pytest.mark.parametrize("role", ["nemo-rl", "verl", "mcore"])
def test_every_role_is_known_by_its_tree(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    here = tree(tmp_path / "here", role)
    monkeypatch.chdir(here)
    assert ask("init", "--ci", "none")[0] == 0
    assert files_of(here) == {"proveout.toml"}
    assert role in read_settings(here)


def test_nothing_is_replaced_without_force_and_all_or_nothing_is_written(bridge: Path, ask: Ask) -> None:
    (bridge / "proveout.toml").write_text("# mine\n")
    status, _, err = ask("init")
    assert status == 2
    assert "proveout.toml is there already" in err
    assert files_of(bridge) == {"proveout.toml"}
    assert (bridge / "proveout.toml").read_text() == "# mine\n"
    assert ask("init", "--force")[0] == 0
    assert "bridge" in read_settings(bridge)
    assert "unchanged: proveout.toml" in ask("init")[1]


def test_dry_run_writes_nothing(bridge: Path, ask: Ask) -> None:
    status, out, _ = ask("init", "--dry-run")
    assert (status, files_of(bridge)) == (0, set())
    assert "[checkouts]" in out


def test_a_gitlab_tree_gets_a_gitlab_job(bridge: Path, ask: Ask) -> None:
    (bridge / ".gitlab-ci.yml").write_text("")
    ask("init")
    assert ".gitlab/proveout.yml" in files_of(bridge)
    (job,) = yaml.safe_load((bridge / ".gitlab/proveout.yml").read_text()).values()
    assert job["script"][-1] == "proveout run --loop bench"
    assert job["artifacts"]["when"] == "always"


def test_the_workflow_gates_comments_and_keeps_the_evidence(bridge: Path, ask: Ask) -> None:
    ask("init")
    text = (bridge / ".github/workflows/proveout.yml").read_text()
    document = yaml.safe_load(text)
    assert list(document[True]) == ["pull_request"]
    (job,) = document["jobs"].values()
    runs = [step.get("run", "") for step in job["steps"]]
    (gate,) = [run for run in runs if run.startswith("proveout run")]
    assert "||" not in gate
    later = job["steps"][runs.index(gate) + 1 :]
    assert later
    assert all(step["if"].startswith("always()") for step in later)
    assert all("${{" not in run for run in runs), "an expression inside a script could inject words"
    for words in re.findall(r"proveout (\w+)", "\n".join(runs)):
        assert words in COMMANDS


@pytest.mark.parametrize("words", [("init", "--ci", "jenkins"), ("init", "no/such/place")])
def test_wrong_usage_is_one_sentence(bridge: Path, ask: Ask, words: tuple[str, ...]) -> None:
    status, out, err = ask(*words)
    assert (status, out) == (2, "")
    assert err.startswith("proveout: ")


def test_a_place_that_is_no_checkout(tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = ask("init")
    assert status == 2
    assert "is no checkout that is known" in err


def metrics(folder: Path) -> None:
    (folder / "a.json").write_text('{"train/loss": {"1": 1.0}}')
    (folder / "b.json").write_text('{"train/loss": {"1": 1.1}}')


def test_flags_come_before_the_file(tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    metrics(tmp_path)
    assert ask("compare", "b.json", "a.json")[0] == 1
    (tmp_path / "proveout.toml").write_text("[compare]\nrtol = 0.2\n")
    assert ask("compare", "b.json", "a.json")[0] == 0
    assert ask("compare", "b.json", "a.json", "--rtol", "0.01")[0] == 1
    (tmp_path / "proveout.toml").write_text('[compare]\ntolerance = ["train/*=0.2"]\n')
    assert ask("compare", "b.json", "a.json")[0] == 0


def test_the_environment_comes_before_the_file(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "proveout.toml").write_text('state-dir = "of-the-file"\n[history]\nlimit = 3\n')
    assert f"{tmp_path}/of-the-file/" in ask("history")[2]
    assert f"{tmp_path}/of-the-file/" in ask("history", "rebuild")[1]
    monkeypatch.setenv("PROVEOUT_STATE_DIR", str(tmp_path / "of-the-environment"))
    assert f"{tmp_path}/of-the-environment/" in ask("history")[2]
    assert f"{tmp_path}/of-the-flag/" in ask("history", "--state-dir", "of-the-flag")[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("checkout = 1", "no key 'checkout'; did you mean 'checkouts'?"),
        ("[histroy]", "no key 'histroy'; did you mean 'history'?"),
        ("[history]\nlimits = 3", "no option 'limits'; did you mean 'limit'?"),
        ("[history.flaky]\nlop = 'x'", "no option 'lop'; did you mean 'loop'?"),
        ("[history]\nlimit = {a = 1}", "is no value of this option"),
        ("[history]\njson = 3", "3 is neither true nor false"),
        ("history = 3", "history is no table"),
        ("[history", "cannot be read"),
        ("[history]\nlimit = 'many'", "'many'"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "proveout.toml").write_text(text)
    status, out, err = ask("history")
    assert (status, out) == (2, "")
    assert said in err


def test_the_skill_names_only_commands_that_there_are(ask: Ask) -> None:
    status, text, _ = ask("skill")
    assert status == 0
    named = set(re.findall(r"`proveout ([a-z]+)", text))
    assert named <= set(COMMANDS)
    assert {"run", "plan", "triage", "report", "history"} <= named
    assert len(text.splitlines()) < 80
