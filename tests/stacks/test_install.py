"""An environment is what its lock says, is proved by importing in it, and is completed after an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proveout.domain.errors import BlockedError, UsageError
from proveout.stacks.check import ask, problems
from proveout.stacks.install import install, remove
from proveout.stacks.lock import Loaded, Lock, LockStep, Verify
from proveout.stacks.place import Place, installed
from tests.stacks.wheelhouse import waiting_source, wheel

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def loaded(
    *steps: LockStep, modules: tuple[str, ...], roles: tuple[str, ...] = (), constraints: str = ""
) -> Loaded:
    lock = Lock(
        about="a test's",
        python=(PYTHON,),
        megabytes=20,
        minutes=0.1,
        step=steps,
        verify=Verify(modules=modules),
        roles=roles,
    )
    return Loaded(name="small", lock=lock, constraints=constraints, digest=f"{steps}")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "wheels"
    place.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return place


def made(place: Place, what: Loaded, checkouts: dict[str, str] | None = None) -> list[str]:
    said: list[str] = []
    install(place, what, sys.executable, checkouts or {}, said.append)
    return said


def test_pinned_versions_are_installed_and_proved_and_damage_is_found_and_repaired(
    house: Path, tmp_path: Path
) -> None:
    wheel(house, "alpha")
    wheel(house, "alpha", "2.0")
    wheel(house, "gamma", tag="cp399-cp399-manylinux2014_x86_64")
    what = loaded(
        LockStep(name="first", packages=("alpha",)),
        LockStep(name="other", packages=("gamma==1.0",), kind="unpack", wheel_python="3.99"),
        modules=("alpha", "gamma"),
        constraints="alpha==1.0\n",
    )
    place = Place(tmp_path / "stacks", "small")

    said = made(place, what)

    assert "about 0.0 GB and 0.1 minutes" in said[0]
    answer = ask(place, what, {})
    assert problems(answer, what, {}) == ()
    assert answer.versions["alpha"] == "1.0"
    assert {Path(item.file).parent.parent for item in answer.imports} == {
        place.root / "lib" / f"python{PYTHON}" / "site-packages"
    }
    assert installed("small", {}, tmp_path / "stacks") is not None

    Path(answer.imports[0].file).unlink()
    wrong = problems(ask(place, what, {}), what, {})
    assert any("1 files are missing, alpha/__init__.py first" in problem for problem in wrong)
    made(place, what)
    assert problems(ask(place, what, {}), what, {}) == ()

    remove(place)
    assert not place.root.exists()
    assert installed("small", {}, tmp_path / "stacks") is None


def test_a_killed_install_goes_on_where_it_stopped(house: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    wheel(house, "alpha")
    waiting = waiting_source(house, "beta", pipe)
    steps = (
        'LockStep(name="first", packages=("alpha==1.0",)), LockStep(name="second", packages=("beta==1.0",))'
    )
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.stacks.test_install import Place, LockStep, loaded, made\n"
        f'made(Place(Path({str(tmp_path / "stacks")!r}), "small"), loaded({steps}, modules=("alpha", "beta")))\n'
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], start_new_session=True
    )
    assert pipe.read_text()[:8] == "building"
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()

    place = Place(tmp_path / "stacks", "small")
    assert (place.record.done, place.record.begun) == (("first",), "second")
    assert installed("small", {}, tmp_path / "stacks") is None
    record = next(place.root.glob("lib/*/site-packages/alpha-1.0.dist-info/RECORD"))
    record.unlink()
    waiting.unlink()
    wheel(house, "beta")
    what = loaded(
        LockStep(name="first", packages=("alpha==1.0",)),
        LockStep(name="second", packages=("beta==1.0", "alpha==1.0")),
        modules=("alpha", "beta"),
    )
    place.write(
        type(place.record)(
            name="small", digest=what.digest, python=sys.executable, done=("first",), begun="second"
        )
    )

    said = made(place, what)

    assert any("installing again: alpha-1.0.dist-info (no RECORD)" in line for line in said)
    assert not any(line.startswith("[1/2]") for line in said)
    assert record.exists()
    assert place.record.verified == what.digest


def test_a_checkout_stands_in_front_of_the_wheel(house: Path, tmp_path: Path) -> None:
    wheel(house, "verl")
    tree = tmp_path / "tree"
    (tree / "verl").mkdir(parents=True)
    (tree / "verl" / "__init__.py").write_text("WHERE = 'checkout'\n")
    what = loaded(LockStep(name="verl", packages=("verl==1.0",)), modules=("verl",), roles=("verl",))
    place = Place(tmp_path / "stacks", "small")

    made(place, what, {"verl": str(tree)})

    done = subprocess.run(
        [place.python, "-c", "import verl; print(verl.WHERE)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "checkout\n"
    other = subprocess.run(
        [place.python, "-c", "import verl; print(verl.WHERE)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(copy_of(tree, tmp_path / "later", "later"))},
    )
    assert other.stdout == "later\n"
    made(place, what, {})
    back = subprocess.run(
        [place.python, "-c", "import verl; print(verl.VERSION)"], capture_output=True, text=True, check=True
    )
    assert back.stdout == "1.0\n"


def copy_of(tree: Path, target: Path, word: str) -> Path:
    (target / "verl").mkdir(parents=True)
    (target / "verl" / "__init__.py").write_text(f"WHERE = {word!r}\n")
    return target


def test_an_import_that_fails_there_is_no_stack(house: Path, tmp_path: Path) -> None:
    wheel(house, "alpha", text="import not_there_at_all\n")
    what = loaded(LockStep(name="first", packages=("alpha==1.0",)), modules=("alpha",))
    with pytest.raises(
        BlockedError, match="import alpha: ModuleNotFoundError: No module named 'not_there_at_all'"
    ):
        made(Place(tmp_path / "stacks", "small"), what)
    assert installed("small", {}, tmp_path / "stacks") is None


def test_what_pip_cannot_find_is_blocked_with_its_own_words(house: Path, tmp_path: Path) -> None:
    what = loaded(LockStep(name="first", packages=("nowhere==1.0",)), modules=())
    with pytest.raises(BlockedError, match=r"No matching distribution found for nowhere==1\.0"):
        made(Place(tmp_path / "stacks", "small"), what)


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    place = Place(tmp_path, "small")
    place.root.mkdir()
    (place.root / "thesis.txt").write_text("mine")
    what = loaded(modules=())
    with pytest.raises(UsageError, match="proveout did not make it"):
        made(place, what)
    with pytest.raises(UsageError, match="no stack small is installed"):
        remove(place)
    assert (place.root / "thesis.txt").read_text() == "mine"


def test_a_tree_of_another_kind_is_no_checkout(tmp_path: Path) -> None:
    what = loaded(modules=(), roles=("verl",))
    with pytest.raises(UsageError, match="this is no verl checkout"):
        made(Place(tmp_path / "stacks", "small"), what, {"verl": str(tmp_path)})
    with pytest.raises(UsageError, match="takes no bridge checkout; it takes: verl"):
        made(Place(tmp_path / "stacks", "small"), what, {"bridge": str(tmp_path)})
