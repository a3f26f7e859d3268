"""A real project directory, and real pytest processes in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

PLUGIN = "proveout.pytest_plugin.plugin"


class Project:
    """A repository with ``tests/unit``; sessions run in it as processes of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unit = root / "tests" / "unit"
        self.unit.mkdir(parents=True)
        self.latest = self.unit / "unit_results.json"
        self.dated = self.unit / "unit_results"
        self.write("pytest.ini", "[pytest]\naddopts = -p no:cacheprovider\n")

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text))
        return target

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def argv(self, *arguments: str) -> list[str]:
        """pytest with this plugin, pytest-xdist and pytest-cov, and no other that happens to be installed."""
        plugins = ["-p", PLUGIN, "-p", "xdist", "-p", "pytest_cov"]
        return [sys.executable, "-m", "pytest", *plugins, *arguments]

    def env(self, **extra: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
        plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
        return {**kept, **plain, **extra}

    def run(
        self, *arguments: str, prefix: tuple[str, ...] = (), cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, *self.argv(*arguments)],
            cwd=cwd or self.root,
            env=self.env(**env),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A session in a process group of its own, so that it can be interrupted as a terminal does."""
        return subprocess.Popen(
            self.argv(*arguments),
            cwd=self.root,
            env=self.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def results(self) -> dict[str, Any]:
        return strict_json(self.latest)

    def dated_results(self) -> list[dict[str, Any]]:
        return [strict_json(path) for path in sorted(self.dated.glob("[!.]*"))]

    def tracked(self) -> dict[str, dict[str, Any]]:
        """Metrics by test name, without what is tracked by itself."""
        return {
            node.partition("::")[2]: {k: v for k, v in test["metrics"].items() if k != "_elapsed"}
            for node, test in self.results()["tests"].items()
            if "metrics" in test
        }

    def outcomes(self) -> dict[str, str]:
        return {node.partition("::")[2]: test["outcome"] for node, test in self.results()["tests"].items()}

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}


def strict_json(path: Path) -> dict[str, Any]:
    """The file as JSON proper, which has no NaN."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{path}: {word} is not JSON")

    loaded: dict[str, Any] = json.loads(path.read_text(), parse_constant=refuse)
    return loaded


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def held_by_permissions() -> tuple[str, ...]:
    """A command prefix under which directory permissions hold, even where the tests run as root."""
    return ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()


def end_group(process: subprocess.Popen[str], number: signal.Signals) -> str:
    os.killpg(process.pid, number)
    return process.communicate(timeout=60)[0]


@pytest.fixture
def when_ready(tmp_path: Path) -> Any:
    """Signals a session as soon as its test says that it is under way (it writes to a pipe)."""
    pipe = tmp_path / "ready"
    os.mkfifo(pipe)

    def interrupt(process: subprocess.Popen[str], number: signal.Signals) -> str:
        with pipe.open() as said:
            assert said.read() == "ready"
        return end_group(process, number)

    interrupt.pipe = pipe
    return interrupt
