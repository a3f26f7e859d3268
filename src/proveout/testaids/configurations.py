"""The unit test configurations that NeMo-RL documents, and the pytest command of each. Pure: starts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from proveout.domain.step import Command
from proveout.testaids.environment import Environment, interpreter, uv


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration: uv extras, pytest flags, and what it runs in words."""

    extras: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    about: str


CONFIGURATIONS: dict[str, Configuration] = {
    "default": Configuration(about="without the hf_gated and mcore tests"),
    "hf-gated": Configuration(flags=("--hf-gated",), about="the default and hf_gated tests, without mcore"),
    "mcore": Configuration(
        extras=("mcore",), flags=("--mcore-only",), about="only mcore tests, without those marked hf_gated"
    ),
    "mcore-hf-gated": Configuration(
        extras=("mcore",),
        flags=("--mcore-only", "--hf-gated"),
        about="only mcore tests, with those marked hf_gated",
    ),
}
_TAKE_A_VALUE = {
    "-k", "-m", "-p", "-c", "-o", "-n", "-W", "-r",
    "--deselect", "--ignore", "--ignore-glob", "--rootdir", "--confcutdir", "--basetemp", "--maxfail", "--tb",
    "--cov-report", "--cov-config", "--junitxml", "--junit-xml", "--dist", "--durations", "--import-mode",
    "--override-ini", "--log-level", "--log-file", "--timeout", "--shard-id", "--num-shards", "--base",
    "--proveout-results",
}  # fmt: skip


def environment_of(configuration: Configuration, python: str | None) -> Environment:
    """uv with the configuration's extras and the test group, or the interpreter that is named instead."""
    return interpreter(python) if python else uv(extras=configuration.extras, groups=("test",))


def unit_command(
    root: Path,
    configuration: Configuration,
    arguments: Sequence[str],
    environment: Environment,
    outer: Mapping[str, str],
) -> Command:
    """The pytest command of a configuration, run in ``root/tests`` as the checkout's own script does.

    Every argument is one word of argv, so ``-k "a and b"`` arrives whole. Where the arguments name no file or
    directory, all of ``unit/`` is run. PYTHONPATH begins with ``root``; ``outer`` is the caller's environment.
    """
    places = [argument for argument in arguments if is_place(root, arguments, argument)]
    words = [_from_tests(root, each) if each in places else each for each in arguments]
    argv = environment.start("pytest", *([] if places else ["unit/"]), *configuration.flags, *words)
    path = [str(root), *filter(None, outer.get("PYTHONPATH", "").split(os.pathsep))]
    return Command(argv=argv, env={"PYTHONPATH": os.pathsep.join(path)}, cwd=str(root / "tests"))


def is_place(root: Path, arguments: Sequence[str], argument: str) -> bool:
    """Whether an argument names a file, directory or test of the checkout, and is no option's value."""
    position = arguments.index(argument)
    if argument.startswith("-") or (position and arguments[position - 1] in _TAKE_A_VALUE):
        return False
    file = argument.partition("::")[0]
    return any((base / file).exists() for base in (root / "tests", root))


def _from_tests(root: Path, argument: str) -> str:
    """An argument that is relative to the checkout's root, as seen from its ``tests`` directory."""
    file, colons, names = argument.partition("::")
    if (root / "tests" / file).exists():
        return argument
    return os.path.relpath(root / file, root / "tests") + colons + names


def junit_of(root: Path, arguments: Sequence[str]) -> Path | None:
    """Where the arguments ask pytest to write its JUnit report, or None where they do not."""
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option in ("--junitxml", "--junit-xml"):
            named = value if equals else next(iter(arguments[position + 1 :]), "")
            return root / "tests" / named
    return None
