"""20,000 tests: what selection adds to a whole run, and what a session costs in which nothing or one file runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
FILES, EACH = 20, 1000
TEST = f"import pytest\n\n\n@pytest.mark.parametrize('x', range({EACH}))\ndef test_x(x):\n    pass\n"


def many(work: Path) -> None:
    """Processor seconds of four sessions, and how many tests each ran."""
    root = work / "many"
    shutil.rmtree(root, ignore_errors=True)
    (root / "tests").mkdir(parents=True)
    for number in range(FILES):
        (root / f"tests/test_{number}.py").write_text(TEST)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    result = {
        "plain": _session(root),
        "first": _session(root, "--impacted"),
        "nothing": _session(root, "--impacted"),
    }
    (root / "tests/test_3.py").write_text(TEST + "# edited\n")
    result["one file"] = _session(root, "--impacted")
    (work / "many.json").write_text(json.dumps(result))
    print(result)


def _session(root: Path, *options: str) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "proveout.pytest_plugin.impacted.hooks", *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(SOURCE)}
    before = os.times()
    subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
    after = os.times()
    return after.children_user - before.children_user
