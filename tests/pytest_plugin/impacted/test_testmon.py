"""Together with pytest-testmon: coverage judges what it can see, this analysis adds the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pytest_plugin.impacted.conftest import HOOKS, ran

pytest.importorskip("testmon", reason="pytest-testmon is not installed: nothing to combine with")

TESTMON = ("testmon.pytest_testmon",)
BOTH = (*TESTMON, HOOKS)
FILES = {
    "p/__init__.py": "",
    "p/a.py": "LIMIT = 1\n\n\ndef f():\n    return LIMIT\n\n\ndef g():\n    return 1\n",
    "p/setup.py": "def build():\n    return 1\n",
    "p/made.py": "from p.setup import build\n\nMADE = build()\n",
    "tests/test_f.py": "from p.a import f\n\n\ndef test_f():\n    assert f() == 1\n",
    "tests/test_g.py": "from p.a import g\n\n\ndef test_g():\n    assert g() == 1\n",
    "tests/test_made.py": "from p.made import MADE\n\n\ndef test_made():\n    assert MADE == 1\n",
    "tests/data.json": "1",
    "tests/test_data.py": "from pathlib import Path\n\n\ndef test_data():\n"
    "    assert Path(__file__).with_name('data.json').read_text() == '1'\n",
    "tests/test_process.py": "import subprocess\nimport sys\n\n\ndef test_process():\n"
    "    subprocess.run([sys.executable, '-c', 'from p.made import MADE; assert MADE == 1'], check=True)\n",
}


def test_a_body_is_left_to_coverage(make) -> None:
    repo = make(FILES)
    repo.pytest("--impacted", "--testmon", plugins=BOTH)
    text = FILES["p/a.py"].replace("def g():\n    return 1", "def g():\n    return 2")
    done = ran(repo.write({"p/a.py": text}).pytest("--impacted", "--testmon", plugins=BOTH))
    assert done == {"tests/test_g.py::test_g": "FAILED"}


@pytest.mark.parametrize(
    ("edited", "text", "broken"),
    [
        ("tests/data.json", "2", {"tests/test_data.py::test_data"}),
        (
            "p/setup.py",
            "def build():\n    return 2\n",
            {"tests/test_made.py::test_made", "tests/test_process.py::test_process"},
        ),
    ],
    ids=["data", "code that runs at import"],
)
def test_what_coverage_cannot_see_is_added(make, edited, text, broken) -> None:
    repo = make(FILES)
    repo.pytest("--impacted", "--testmon", plugins=BOTH)
    database = Path(repo.root, ".testmondata").read_bytes()
    repo.write({edited: text})
    alone = ran(repo.pytest("--testmon", plugins=TESTMON))
    assert not broken & set(alone), "testmon sees it now: the combination can be made simpler"
    Path(repo.root, ".testmondata").write_bytes(database)
    done = ran(repo.pytest("--impacted", "--testmon", plugins=BOTH))
    assert {test for test, outcome in done.items() if outcome == "FAILED"} == broken


def test_testmon_alone_is_untouched(make) -> None:
    repo = make(FILES)
    assert len(ran(repo.pytest("--testmon", plugins=BOTH))) == 5
    assert ran(repo.pytest("--testmon", plugins=BOTH)) == {}
    assert not (repo.root / ".proveout").exists()


ACTOR = {
    "stack/__init__.py": "",
    "stack/worker.py": "class Worker:\n    def reward(self, x):\n        return x + 1\n",
    "stack/registry.py": 'WORKERS = {"default": "stack.worker.Worker"}\n',
    "stack/driver.py": "import importlib\nimport ray\nfrom stack.registry import WORKERS\n\n\n"
    "@ray.remote\nclass Host:\n    def __init__(self, name):\n"
    "        module, _, cls = name.rpartition('.')\n"
    "        self.inner = getattr(importlib.import_module(module), cls)()\n\n"
    "    def reward(self, x):\n        return self.inner.reward(x)\n\n\n"
    "def reward(x):\n    return ray.get(Host.remote(WORKERS['default']).reward.remote(x))\n",
    "tests/conftest.py": "import os\nimport pytest\nimport ray\n\n\n@pytest.fixture(scope='session')\ndef cluster():\n"
    "    env = {'env_vars': {'PYTHONPATH': os.getcwd()}}\n"
    "    ray.init(num_cpus=1, include_dashboard=False, runtime_env=env)\n    yield\n    ray.shutdown()\n",
    "tests/test_remote.py": "from stack.driver import reward\n\n\ndef test_reward(cluster):\n"
    "    assert reward(1) == 2\n",
    "tests/test_local.py": "def test_local():\n    assert True\n",
}


@pytest.mark.real
def test_an_edit_inside_an_actor_selects_the_tests_that_reach_it_only_there(make) -> None:
    pytest.importorskip("ray", reason="ray is not installed: this test starts a real local cluster")
    repo = make(ACTOR)
    quiet = {"RAY_USAGE_STATS_ENABLED": "0"}
    assert len(ran(repo.pytest("--impacted", "--testmon", plugins=BOTH, **quiet))) == 2
    database = Path(repo.root, ".testmondata").read_bytes()
    repo.write({"stack/worker.py": ACTOR["stack/worker.py"].replace("x + 1", "x + 2")})
    assert ran(repo.pytest("--testmon", plugins=TESTMON, **quiet)) == {}
    Path(repo.root, ".testmondata").write_bytes(database)
    expected = {"tests/test_remote.py::test_reward": "FAILED"}
    assert ran(repo.pytest("--impacted", "--testmon", plugins=BOTH, **quiet)) == expected
    assert ran(repo.pytest("--impacted", **quiet)) == expected
