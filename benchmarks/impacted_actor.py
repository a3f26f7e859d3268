"""Real Ray: a test reaches a class only inside an actor that imports it by name, and the class is broken."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
HOOKS = "proveout.pytest_plugin.impacted.hooks"
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
ACTOR = {
    "stack/__init__.py": "",
    "stack/worker.py": "class Worker:\n    def reward(self, x):\n        return x + 1\n",
    "stack/registry.py": 'WORKERS = {"default": "stack.worker.Worker"}\n',
    "stack/driver.py": (
        "import importlib\nimport ray\nfrom stack.registry import WORKERS\n\n\n"
        "@ray.remote\nclass Host:\n    def __init__(self, name):\n"
        "        module, _, cls = name.rpartition('.')\n"
        "        self.inner = getattr(importlib.import_module(module), cls)()\n\n"
        "    def reward(self, x):\n        return self.inner.reward(x)\n\n\n"
        "def reward(x):\n    return ray.get(Host.remote(WORKERS['default']).reward.remote(x))\n"
    ),
    "tests/conftest.py": (
        "import os\nimport pytest\nimport ray\n\n\n@pytest.fixture(scope='session')\ndef cluster():\n"
        "    ray.init(num_cpus=1, include_dashboard=False, runtime_env={'env_vars': "
        "{'PYTHONPATH': os.getcwd()}})\n    yield\n    ray.shutdown()\n"
    ),
    "tests/test_remote.py": "from stack.driver import reward\n\n\ndef test_reward(cluster):\n"
    "    assert reward(1) == 2\n",
    "tests/test_local.py": "def test_local():\n    assert 1 + 1 == 2\n",
    ".gitignore": "__pycache__/\n.testmondata*\n.proveout/\n",
}
"""A project in which a test reaches a class only inside a Ray actor that imports it by name."""


def ray_run(python: str, root: Path, arguments: list[str], plugins: list[str]) -> str:
    """Output of a pytest process of the interpreter that has ray."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), str(SOURCE)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    loaded = [word for plugin in plugins for word in ("-p", plugin)]
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "--tb=no",
        "--color=no",
        "--import-mode=importlib",
        *loaded,
        *arguments,
    ]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def actor(work: Path, python: str) -> None:
    """With real Ray: what each selector runs after an edit inside the module that only the actor imports."""
    root = work / "actor"
    shutil.rmtree(root, ignore_errors=True)
    for name, text in ACTOR.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "base"]):
        subprocess.run(["git", *who, *command], cwd=root, check=True)
    testmon, ours = ["testmon.pytest_testmon"], ["testmon.pytest_testmon", HOOKS]
    first = ray_run(python, root, ["--impacted", "--testmon", "tests"], ours)
    edited = root / "stack/worker.py"
    edited.write_text(edited.read_text().replace("x + 1", "x + 2"))
    database = root / ".testmondata"
    shutil.copy(database, work / "actor.testmondata")
    alone = ray_run(python, root, ["--testmon", "-rfE", "tests"], testmon)
    shutil.copy(work / "actor.testmondata", database)
    both = ray_run(python, root, ["--impacted", "--testmon", "-rfE", "tests"], ours)
    plain = ray_run(python, root, ["--impacted", "-rfE", "tests"], [HOOKS])
    result = {"first": first[-300:], "testmon": alone[-300:], "both": both[-600:], "plain": plain[-600:]}
    result |= {f"{name}_finds": bool(FAILED.findall(result[name])) for name in ("testmon", "both", "plain")}
    (work / "actor.json").write_text(json.dumps(result))
    print(json.dumps(result, indent=1))
