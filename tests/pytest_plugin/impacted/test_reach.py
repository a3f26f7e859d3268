"""Every way in which a test may depend on a file: each edit selects the tests that depend on it, and no others."""

from __future__ import annotations

import pytest

T = "def test_it():\n    pass\n"
OTHER = {"tests/test_other.py": "import json\n" + T}
"""A test that none of the edits below concerns."""

CASES: dict[str, tuple[dict[str, str], str, set[str]]] = {
    "the test itself": ({"tests/test_a.py": T}, "tests/test_a.py", {"tests/test_a.py"}),
    "an import": (
        {"p/__init__.py": "", "p/a.py": "", "tests/test_a.py": "from p import a\n" + T}, "p/a.py", {"tests/test_a.py"},
    ),
    "an import of an import": (
        {"p/__init__.py": "", "p/a.py": "", "p/b.py": "import p.a\n", "tests/test_a.py": "from p.b import x\n" + T},
        "p/a.py", {"tests/test_a.py"},
    ),
    "a package's __init__": (
        {"p/__init__.py": "", "p/q/__init__.py": "", "p/q/a.py": "", "tests/test_a.py": "import p.q.a\n" + T},
        "p/__init__.py", {"tests/test_a.py"},
    ),
    "a namespace package": (
        {"ns/deep/a.py": "", "ns/b.py": "from ns.deep import a\n", "tests/test_a.py": "import ns.b\n" + T},
        "ns/deep/a.py", {"tests/test_a.py"},
    ),
    "a package of a namespace that starts where nothing says": (
        {"third/ns/p/__init__.py": "", "third/ns/p/a.py": "", "tests/test_a.py": "import ns.p.a\n" + T},
        "third/ns/p/a.py", {"tests/test_a.py"},
    ),
    "a relative import": (
        {"p/__init__.py": "", "p/a.py": "", "p/q/__init__.py": "", "p/q/b.py": "from .. import a\n",
         "tests/test_a.py": "import p.q.b\n" + T}, "p/a.py", {"tests/test_a.py"},
    ),
    "a conditional import": (
        {"p/__init__.py": "", "p/a.py": "",
         "tests/test_a.py":
         "def test_it():\n    try:\n        from p.a import x\n    except ImportError:\n        pass\n"},
        "p/a.py", {"tests/test_a.py"},
    ),
    "import for types": (
        {"p/__init__.py": "", "p/a.py": "",
         "tests/test_a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a\n" + T},
        "p/a.py", {"tests/test_a.py"},
    ),
    "import_module of a literal": (
        {"p/__init__.py": "", "p/a.py": "",
         "tests/test_a.py": "import importlib\nimportlib.import_module('p.a')\n" + T},
        "p/a.py", {"tests/test_a.py"},
    ),
    "import_module with a literal beginning": (
        {"p/__init__.py": "", "p/kinds/__init__.py": "", "p/kinds/a.py": "",
         "tests/test_a.py":
         "import importlib\ndef load(k):\n    return importlib.import_module(f'p.kinds.{k}')\n" + T},
        "p/kinds/a.py", {"tests/test_a.py"},
    ),
    "import_module with an unknown beginning": (
        {"p/__init__.py": "", "p/a.py": "",
         "p/load.py": "import importlib\ndef load(b, k):\n    return importlib.import_module(b + '.' + k)\n",
         "tests/test_a.py": "import p.load\n" + T}, "p/a.py", {"tests/test_a.py"},
    ),
    "an actor named in a string": (
        {"p/__init__.py": "", "p/worker.py": "import ray\n@ray.remote\nclass Worker:\n    pass\n",
         "p/run.py": "NAME = 'p.worker.Worker'\n", "tests/test_a.py": "import p.run\n" + T},
        "p/worker.py", {"tests/test_a.py"},
    ),
    "a registry of values": (
        {"p/__init__.py": "", "p/worker.py": "", "p/reg.py": "WORKERS = {'w': {'fqn': 'p.worker.Worker'}}\n",
         "tests/test_a.py": "from p import reg\n" + T}, "p/worker.py", {"tests/test_a.py"},
    ),
    "a registry of keys, used as a whole": (
        {"p/__init__.py": "", "p/worker.py": "", "p/reg.py": "ENVS = {'p.worker.Worker': 'py'}\n",
         "p/all.py": "from p.reg import ENVS\ndef every():\n    return list(ENVS)\n",
         "p/one.py": "from p.reg import ENVS\ndef env(name):\n    return ENVS[name]\n",
         "tests/test_a.py": "import p.all\n" + T, "tests/test_b.py": "import p.one\n" + T,
         "tests/test_c.py": "import p.one\ndef test_c():\n    p.one.env('p.worker.Worker')\n"},
        "p/worker.py", {"tests/test_a.py", "tests/test_c.py"},
    ),
    "a registry taken into another": (
        {"p/__init__.py": "", "p/worker.py": "", "p/reg.py": "ENVS = {'p.worker.Worker': 'py'}\n",
         "p/big.py": "from p.reg import ENVS\nALL = {}\nALL.update(ENVS)\n",
         "tests/test_a.py": "from p.big import ALL\ndef test_a():\n    assert sorted(ALL)\n"},
        "p/worker.py", {"tests/test_a.py"},
    ),
    "pkgutil": (
        {"p/__init__.py": "", "p/rules/__init__.py": "import pkgutil\nALL = list(pkgutil.iter_modules(__path__))\n",
         "p/rules/a.py": "", "tests/test_a.py": "import p.rules\n" + T}, "p/rules/a.py", {"tests/test_a.py"},
    ),
    "lazy submodules": (
        {"p/__init__.py": "_LAZY = ['a']\ndef __getattr__(name):\n    import importlib\n"
         "    return importlib.import_module('.' + name, __name__)\n", "p/a.py": "",
         "tests/test_a.py": "import p\n" + T}, "p/a.py", {"tests/test_a.py"},
    ),
    "mock.patch by name": (
        {"p/__init__.py": "", "p/a.py": "", "tests/test_a.py":
         "from unittest import mock\ndef test_it():\n    with mock.patch('p.a.f'):\n        pass\n"},
        "p/a.py", {"tests/test_a.py"},
    ),
    "python -m": (
        {"p/__init__.py": "", "p/__main__.py": "from p import a\n", "p/a.py": "",
         "tests/test_a.py":
         "import subprocess, sys\ndef test_it():\n    subprocess.run([sys.executable, '-m', 'p'])\n"},
        "p/a.py", {"tests/test_a.py"},
    ),
    "python -c": (
        {"p/__init__.py": "", "p/a.py": "", "tests/test_a.py":
         "import subprocess, sys\ndef test_it():\n    subprocess.run([sys.executable, '-c', 'import p.a; p.a'])\n"},
        "p/a.py", {"tests/test_a.py"},
    ),
    "a script that a test runs": (
        {"tools/go.py": "import helper\n", "tools/helper.py": "", "tests/test_a.py":
         "import subprocess\ndef test_it():\n    subprocess.run(['python', 'tools/go.py'])\n"},
        "tools/helper.py", {"tests/test_a.py"},
    ),
    "a shell script that runs another": (
        {"ci/a.sh": "bash ci/b.sh\n", "ci/b.sh": "true\n", "tests/test_a.py":
         "import subprocess\ndef test_it():\n    subprocess.run(['bash', 'ci/a.sh'])\n"},
        "ci/b.sh", {"tests/test_a.py"},
    ),
    "a data file by name": (
        {"tests/data/a.json": "1", "tests/test_a.py":
         "from pathlib import Path\nD = Path(__file__).parent / 'data' / 'a.json'\n" + T},
        "tests/data/a.json", {"tests/test_a.py"},
    ),
    "a data file of a source": (
        {"src/p/__init__.py": "", "src/p/a.py": "from pathlib import Path\nR = Path(__file__).with_name('r.yaml')\n",
         "src/p/r.yaml": "", "tests/test_a.py": "import p.a\n" + T}, "src/p/r.yaml", {"tests/test_a.py"},
    ),
    "a data file that another names": (
        {"conf/a.yaml": "defaults: base.yaml\n", "conf/base.yaml": "x: 1\n", "tests/test_a.py":
         "def test_it():\n    open('conf/a.yaml')\n"}, "conf/base.yaml", {"tests/test_a.py"},
    ),
    "a directory that is listed": (
        {"conf/x/a.yaml": "", "tests/test_a.py":
         "from pathlib import Path\nROOT = Path(__file__).parents[1]\ndef test_it():\n"
         "    for path in (ROOT / 'conf').rglob('*.yaml'):\n        path.read_text()\n"},
        "conf/x/a.yaml", {"tests/test_a.py"},
    ),
    "a directory handed on": (
        {"conf/a.bin": "", "tests/test_a.py":
         "import os\nD = os.path.join(os.path.dirname(__file__), '..', 'conf')\n" + T},
        "conf/a.bin", {"tests/test_a.py"},
    ),
    "an interpolated name": (
        {"tests/data/a.in": "", "tests/test_a.py":
         "import pytest\n@pytest.mark.parametrize('n', 'a')\ndef test_it(n):\n    open(f'tests/data/{n}.in')\n"},
        "tests/data/a.in", {"tests/test_a.py"},
    ),
    "resources of a package": (
        {"p/__init__.py": "", "p/rules/a.txt": "", "p/read.py":
         "from importlib import resources\ndef rules():\n    return list(resources.files('p.rules').iterdir())\n",
         "tests/test_a.py": "import p.read\n" + T}, "p/rules/a.txt", {"tests/test_a.py"},
    ),
    "a data file that nobody names, in a package": (
        {"p/__init__.py": "", "p/odd.bin": "", "tests/test_a.py": "import p\n" + T}, "p/odd.bin", {"tests/test_a.py"},
    ),
    "a conftest above": (
        {"tests/unit/conftest.py": "", "tests/unit/deep/test_a.py": T}, "tests/unit/conftest.py",
        {"tests/unit/deep/test_a.py"},
    ),
    "what a conftest imports": (
        {"p/__init__.py": "", "p/a.py": "", "tests/unit/conftest.py": "import p.a\n", "tests/unit/test_a.py": T},
        "p/a.py", {"tests/unit/test_a.py"},
    ),
    "pytest_plugins": (
        {"fix.py": "", "tests/unit/conftest.py": "pytest_plugins = 'fix'\n", "tests/unit/test_a.py": T},
        "fix.py", {"tests/unit/test_a.py"},
    ),
    "a helper beside the test": (
        {"tests/unit/helper.py": "", "tests/unit/test_a.py": "from helper import x\n" + T},
        "tests/unit/helper.py", {"tests/unit/test_a.py"},
    ),
    "a search path of the test's own": (
        {"vendor/thing.py": "", "tests/test_a.py":
         "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent.parent / 'vendor'))\n"
         "import thing\n" + T}, "vendor/thing.py", {"tests/test_a.py"},
    ),
    "code that this Python cannot parse": (
        {"p/__init__.py": "", "p/a.py": "", "p/new.py": "import p.a\nthis is no python\n",
         "tests/test_a.py": "from p import new\n" + T}, "p/a.py", {"tests/test_a.py"},
    ),
    "a console script": (
        {"pyproject.toml": "[project]\nname='p'\n[project.scripts]\ngo = 'p.cli:main'\n", "p/__init__.py": "",
         "p/cli.py": "", "tests/test_a.py": "import subprocess\ndef test_it():\n    subprocess.run(['go', 'x'])\n"},
        "p/cli.py", {"tests/test_a.py"},
    ),
    "an async and a parametrised test": (
        {"p/__init__.py": "", "p/a.py": "", "tests/test_a.py":
         "import pytest\n@pytest.mark.parametrize('x', [1, 2])\nasync def test_it(x):\n    from p import a\n"},
        "p/a.py", {"tests/test_a.py"},
    ),
    "prose": ({"README.md": "hello", "tests/test_a.py": T}, "README.md", set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_edit_selects_what_depends_on_it(make, name) -> None:
    files, edited, expected = CASES[name]
    repo = make({**files, **OTHER}).edit(edited)
    assert repo.selected() == expected


EVERYTHING = ["pyproject.toml", "pytest.ini", "uv.lock", "requirements-dev.txt", "conftest.py", "strange.bin"]


@pytest.mark.parametrize("name", EVERYTHING)
def test_what_may_concern_every_test_selects_every_test(make, name) -> None:
    repo = make({name: "", "tests/test_a.py": T, **OTHER}).edit(name)
    assert repo.selected() == {"tests/test_a.py", "tests/test_other.py"}
    assert repo.listing().all


def test_a_configuration_further_down_selects_what_lies_or_reaches_below_it(make) -> None:
    repo = make(
        {
            "sub/pyproject.toml": "", "sub/p/__init__.py": "", "sub/tests/test_s.py": T,
            "tests/test_a.py": "import p\n" + T, **OTHER,
        }
    ).edit("sub/pyproject.toml")  # fmt: skip
    assert repo.selected() == {"sub/tests/test_s.py", "tests/test_a.py"}


def test_hooks_of_a_conftest_concern_the_whole_session(make) -> None:
    hook = "def pytest_collection_modifyitems(items):\n    items.reverse()\n"
    repo = make({"tests/unit/conftest.py": hook, "tests/unit/test_a.py": T, **OTHER}).edit(
        "tests/unit/conftest.py"
    )
    assert repo.selected() == {"tests/unit/test_a.py", "tests/test_other.py"}


GONE = {"p/__init__.py": "", "p/a.py": "X = 1\n", "tests/test_a.py": "from p.a import X\n" + T, **OTHER}


def test_a_deleted_file_selects_the_tests_that_still_name_it(make) -> None:
    repo = make(GONE)
    (repo.root / "p/a.py").unlink()
    assert repo.selected() == {"tests/test_a.py"}
    assert repo.listing().changed == {"p/a.py": "deleted"}


def test_a_renamed_file_is_both_ends_of_the_rename(make) -> None:
    repo = make(GONE)
    repo.git("mv", "p/a.py", "p/b.py")
    assert repo.selected() == {"tests/test_a.py"}
    assert repo.listing().changed == {"p/a.py": "deleted", "p/b.py": "added"}


def test_a_new_file_selects_the_tests_that_already_name_it(make) -> None:
    optional = "try:\n    import p.extra\nexcept ImportError:\n    pass\n" + T
    repo = make({"p/__init__.py": "", "tests/test_a.py": optional, **OTHER}).write({"p/extra.py": ""})
    assert repo.selected() == {"tests/test_a.py"}


def test_a_package_that_shadows_a_module_selects_its_tests(make) -> None:
    repo = make({"p/__init__.py": "", "p/a.py": "", "tests/test_a.py": "import p.a\n" + T, **OTHER})
    assert repo.write({"p/a/__init__.py": ""}).selected() == {"tests/test_a.py"}


def test_only_content_counts_not_the_time_stamp(make) -> None:
    repo = make(GONE)
    (repo.root / "p/a.py").touch()
    assert repo.listing().changed == {}
    assert repo.edit("p/a.py").write({"p/a.py": GONE["p/a.py"]}).listing().changed == {}


def test_staged_and_committed_edits_count_since_the_base(make) -> None:
    repo = make(GONE)
    base = repo.git("rev-parse", "HEAD").strip()
    repo.edit("p/a.py").git("add", "-A")
    assert repo.selected() == {"tests/test_a.py"}
    repo.commit()
    assert repo.selected() == set()
    assert repo.selected(base) == {"tests/test_a.py"}


def test_the_base_is_where_the_branches_parted(make) -> None:
    repo = make(GONE)
    repo.git("branch", "other")
    repo.git("checkout", "-q", "other")
    repo.edit("tests/test_other.py").commit()
    repo.git("checkout", "-q", "-")
    repo.edit("p/a.py").commit()
    assert repo.selected("other") == {"tests/test_a.py"}


def test_a_chain_leads_from_the_test_to_the_change(make) -> None:
    repo = make(
        {"p/__init__.py": "", "p/a.py": "", "p/b.py": "import p.a\n", "tests/test_a.py": "import p.b\n" + T}
    )
    (one,) = repo.edit("p/a.py").listing().selected
    assert one.because == "p/a.py was modified through p/b.py"
    assert one.chain == ("tests/test_a.py imports p/b.py", "p/b.py imports p/a.py")


def test_a_damaged_cache_is_made_anew(make) -> None:
    repo = make(GONE).edit("p/a.py")
    repo.selected()
    for path in (repo.root / ".proveout/impacted").glob("*.msgpack"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert repo.selected() == {"tests/test_a.py"}


def test_a_file_that_links_to_the_edited_one(make) -> None:
    repo = make({"p/__init__.py": "", "real/a.py": "", **OTHER})
    (repo.root / "linked").symlink_to("real")
    repo.write({"tests/test_a.py": "import linked.a\n" + T}).commit()
    assert "tests/test_a.py" in repo.edit("real/a.py").selected()
