"""A small project in a git repository, asked which of its tests a change reaches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from proveout.pytest_plugin.impacted.listing import Listing, listing

HOOKS = "proveout.pytest_plugin.impacted.hooks"


class Repo:
    """A git repository; ``commit`` is the base that edits are compared with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self.git("init", "-q")
        self.write({".gitignore": "__pycache__/\n.testmondata*\n.pytest_cache/\n"})

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout

    def write(self, files: Mapping[str, str]) -> Repo:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def commit(self) -> Repo:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "base")
        return self

    def edit(self, *names: str) -> Repo:
        for name in names:
            path = self.root / name
            path.write_text(path.read_text() + "\n# edited\n")
        return self

    def selected(self, base: str | None = "HEAD") -> set[str]:
        return {one.test for one in self.listing(base).selected}

    def listing(self, base: str | None = "HEAD") -> Listing:
        return listing(self.root, base)

    def pytest(
        self, *arguments: str, plugins: tuple[str, ...] = (HOOKS,), cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """A pytest process with the selection plugin and no other that happens to be installed."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
        path = os.pathsep.join([str(self.root), kept.get("PYTHONPATH", "")])
        plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
        loaded = [word for plugin in plugins for word in ("-p", plugin)]
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", "--color=no", *loaded, *arguments],
            cwd=cwd or self.root,
            env={**kept, **plain, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def ran(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Outcomes by node id, from the summary that ``-rA`` prints."""
    words = ("PASSED", "FAILED", "ERROR", "XFAIL", "XPASS")
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(words)]
    return {rest.split(" - ")[0].strip(): word for word, rest in lines}


@pytest.fixture
def make(tmp_path: Path) -> Callable[[Mapping[str, str]], Repo]:
    """Make a repository of the given files, committed."""
    return lambda files: Repo(tmp_path / "repo").write(files).commit()
