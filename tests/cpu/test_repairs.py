"""Repairs are made when their module is imported, and only where it is what they expect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPAIR = """
from proveout_cpu.after_import import after_import
from proveout_cpu.repair import repair, run, expect, rebind, applied

@repair("upstream.norm", "upstream/norm.py", "why not")
def norm(module):
    old = expect(module, "Norm.make", "no gpu", parameters=("self", "size"))
    rebind(module, "helper", lambda: "repaired")

after_import(norm.module, lambda module: run(norm, module))
"""
UPSTREAM = """
def helper(): return "plain"
class Norm:
    def make(self, size):
        assert "no gpu"
        return size
"""


def run(folder: Path, code: str, upstream: str = UPSTREAM) -> tuple[int, str]:
    (folder / "upstream").mkdir()
    (folder / "upstream" / "__init__.py").touch()
    (folder / "upstream" / "norm.py").write_text(upstream)
    (folder / "upstream" / "user.py").write_text("from upstream.norm import helper\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def test_it_is_made_at_import_and_seen_by_who_imported_a_copy(tmp_path: Path) -> None:
    code = f"{REPAIR}\nfrom upstream import user\nprint(user.helper(), *applied())"
    assert run(tmp_path, code) == (0, "repaired norm (upstream/norm.py): why not")


def test_it_is_made_at_once_where_the_module_is_there_already(tmp_path: Path) -> None:
    code = f"from upstream import user\n{REPAIR}\nprint(user.helper())"
    assert run(tmp_path, code) == (0, "repaired")


def test_looking_for_the_module_does_not_use_the_repair_up(tmp_path: Path) -> None:
    code = f"{REPAIR}\nimport importlib.util\nimportlib.util.find_spec('upstream.norm')\n"
    assert run(tmp_path, f"{code}from upstream import user; print(user.helper())") == (0, "repaired")


def test_a_source_that_is_not_as_expected_stops_the_import_and_says_so(tmp_path: Path) -> None:
    status, said = run(tmp_path, f"{REPAIR}\nimport upstream.norm", UPSTREAM.replace("no gpu", "any"))
    assert status == 1
    assert (
        "proveout_cpu: this version is not known: norm: upstream/norm.py: Norm.make has no 'no gpu'" in said
    )
    assert str(tmp_path / "upstream" / "norm.py") in said


def test_no_guarded_import_swallows_an_unknown_version(tmp_path: Path) -> None:
    guarded = "try:\n    import upstream.norm\nexcept ImportError:\n    print('swallowed')"
    status, said = run(tmp_path, f"{REPAIR}\n{guarded}", UPSTREAM.replace("self, size", "self, width"))
    assert status == 1
    assert "Norm.make does not take self, size" in said
    assert "swallowed" not in said
