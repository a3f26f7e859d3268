"""Imports of GPU-only packages that nobody guarded, in a made-up package, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = {
    "__init__.py": "",
    "bare.py": """
        import no_such_gpu
        import no_such_gpu.language as tl
        from no_such_gpu.layers import Linear, helper

        @no_such_gpu.jit
        def kernel(x: tl.constexpr): return x + 1

        @no_such_gpu.autotune(configs=[no_such_gpu.Config({})], key=["n"])
        def tuned(x): return x * 2
    """,
    "guarded.py": """
        try:
            import no_such_gpu
            HAVE = True
        except ImportError:
            HAVE = False
    """,
    "inside.py": """
        def save(model):
            from no_such_gpu.utils import is_quantized
            return bool(is_quantized(model))

        def other():
            from no_such_gpu.others import thing

        def asks():
            try:
                from no_such_gpu.utils import is_quantized
            except ImportError:
                return "absent"
    """,
    "left/__init__.py": "",
    "left/alone.py": "import no_such_gpu\n",
}
SETUP = """
from proveout_cpu import absent_imports
absent_imports.install(
    "gpustack", ["no_such_gpu"], without=("gpustack.left.",), inside={"gpustack.inside": "no_such_gpu.utils"}
)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    import textwrap

    for name, text in SOURCE.items():
        file = tmp_path / "gpustack" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return tmp_path


def run(package: Path, code: str, setup: str = SETUP) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(package)!r})\n{setup}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip()


def test_an_unguarded_import_is_answered_and_its_decorators_leave_functions_as_they_are(
    package: Path,
) -> None:
    code = """
from gpustack import bare
import torch.nn
print(bare.kernel(1), bare.tuned(3), isinstance(object(), bare.Linear), bare.__file__.endswith("bare.py"))
"""
    assert run(package, code.replace("import torch.nn\n", "")) == "2 6 False True"


def test_a_guarded_import_still_fails_so_that_no_flag_changes(package: Path) -> None:
    assert run(package, "from gpustack import bare, guarded; print(guarded.HAVE)") == "False"


def test_a_question_inside_a_function_is_answered_with_no_but_only_the_named_one(package: Path) -> None:
    assert run(package, "from gpustack import inside; print(inside.save(3), inside.asks())") == "False absent"
    assert "No module named 'no_such_gpu'" in run(package, "from gpustack import inside; inside.other()")


def test_modules_that_ask_on_their_own_are_left_alone(package: Path) -> None:
    assert "No module named 'no_such_gpu'" in run(package, "import gpustack.left.alone")


def test_without_the_hook_nothing_of_it_imports(package: Path) -> None:
    assert "No module named 'no_such_gpu'" in run(package, "import gpustack.bare", setup="")


def test_a_package_that_is_there_is_not_replaced(package: Path) -> None:
    (package / "no_such_gpu").mkdir()
    (package / "no_such_gpu" / "__init__.py").write_text(
        "def jit(f): return lambda x: 'real'\nautotune = 1\n"
    )
    assert "No module named 'no_such_gpu.language'" in run(package, "import gpustack.bare")


def test_what_was_answered_is_recorded_with_its_line(package: Path) -> None:
    said = run(package, "import gpustack.bare, proveout_cpu; print(*proveout_cpu.applied(), sep='\\n')")
    assert "gpustack/bare.py, line 2" in said
    assert "import no_such_gpu" in said
