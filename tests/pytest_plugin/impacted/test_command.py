"""``proveout impacted``: the same selection for continuous integration, without pytest."""

from __future__ import annotations

import sys

FILES = {
    "p/__init__.py": "raise RuntimeError('the project must not be imported')\n",
    "p/a.py": "",
    "tests/test_a.py": "import p.a\n\ndef test_a():\n    pass\n",
    "tests/test_b.py": "def test_b():\n    pass\n",
}


def test_json_names_what_changed_and_why_each_test_runs(make, proveout) -> None:
    repo = make(FILES).edit("p/a.py")
    answer = proveout("impacted", "--base", "HEAD", "--json", cwd=repo.root)
    assert answer.status == 0
    assert answer.json == {
        "changed": {"p/a.py": "modified"},
        "selected": [
            {
                "test": "tests/test_a.py",
                "because": "p/a.py was modified",
                "chain": ["tests/test_a.py imports p/a.py"],
            }
        ],
        "all": False,
        "tests": 2,
        "why_all": "",
    }


def test_a_lock_file_is_a_reason_to_run_all(make, proveout) -> None:
    repo = make({**FILES, "uv.lock": ""}).edit("uv.lock")
    found = proveout("impacted", "--base", "HEAD", "--json", cwd=repo.root).json
    assert found["all"]
    assert found["why_all"] == "uv.lock configures every test"


def test_text_and_explanation_from_below_the_root(make, proveout) -> None:
    repo = make(FILES).edit("p/a.py")
    answer = proveout("impacted", "--base", "HEAD", cwd=repo.root / "tests")
    assert answer.out.splitlines() == [
        "tests/test_a.py  p/a.py was modified",
        "1 of 2 test files; 1 changed file",
    ]
    why = proveout("impacted", "--base", "HEAD", "--explain", "test_a.py", cwd=repo.root / "tests")
    assert "tests/test_a.py imports p/a.py" in why.out


def test_an_unknown_base_is_wrong_usage(make, proveout) -> None:
    answer = proveout("impacted", "--base", "--output=x", cwd=make(FILES).root)
    assert answer.status == 2
    assert "no commit '--output=x'" in answer.err


def test_a_start_without_the_options_imports_nothing_of_selection(make) -> None:
    check = (
        "import sys, proveout.pytest_plugin.impacted.hooks as h\n"
        "heavy = [m for m in sys.modules if m.startswith('proveout.') and 'impacted' in m or m == 'msgspec']\n"
        "assert set(heavy) == {'proveout.pytest_plugin.impacted', 'proveout.pytest_plugin.impacted.hooks'}, heavy\n"
    )
    import subprocess

    subprocess.run([sys.executable, "-c", check], check=True)
