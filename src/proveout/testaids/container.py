"""Command lines that run tests in a container. Pure: text in, argv out; nothing is started.

Every argument of the test command is a word of its own from here to the program in the container: the shell in
between sets the umask and then becomes the command, without reading its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from proveout.domain.errors import UsageError, nearest

ENGINES = ("docker", "podman")
_HF_HOME = "/hf_home"
_HF_DATASETS = "/hf_datasets_cache"
_WORKSPACE = "/workspace"
_OUT = "/proveout-out"


class ContainerRun(msgspec.Struct, frozen=True, kw_only=True):
    """One command in a container.

    ``mounts`` maps directories of the host to places in the container; ``env`` sets variables, ``pass_env``
    hands on the caller's (by name, so that no secret stands in a command line); ``gpus`` are device numbers.
    """

    image: str
    argv: tuple[str, ...]
    workdir: str
    mounts: dict[str, str]
    env: dict[str, str] = {}
    pass_env: tuple[str, ...] = ()
    gpus: tuple[int, ...] = (0, 1)
    capabilities: tuple[str, ...] = ()
    interactive: bool = False


def container_argv(run: ContainerRun, engine: str = "docker") -> tuple[str, ...]:
    """The engine's command line. Raises UsageError for an engine that is not known."""
    if engine not in ENGINES:
        raise UsageError(f"no container engine {engine!r}{nearest(engine, ENGINES)}")
    words = [engine, "run", "--rm", "--user", "root"]
    words += ["--interactive", "--tty"] if run.interactive else []
    words += ["--ulimit", "memlock=-1", "--ulimit", "stack=67108864"]
    words += [f"--cap-add={capability}" for capability in run.capabilities]
    words += _gpus(run.gpus, engine)
    for host, inside in run.mounts.items():
        words += ["--volume", f"{host}:{inside}"]
    for name in run.pass_env:
        words += ["--env", name]
    for name, value in run.env.items():
        words += ["--env", f"{name}={value}"]
    words += ["--workdir", run.workdir, run.image]
    return (*words, "bash", "-c", 'umask 000 && exec "$@"', "bash", *run.argv)


def _gpus(gpus: Sequence[int], engine: str) -> list[str]:
    if not gpus:
        return []
    if engine == "podman":
        return [word for gpu in gpus for word in ("--device", f"nvidia.com/gpu={gpu}")]
    return ["--gpus", f'"device={",".join(map(str, gpus))}"']


def unit_in_container(
    root: Path, image: str, argv: Sequence[str], *, hf_home: Path, out: Path, interactive: bool
) -> ContainerRun:
    """The unit tests' command, with the checkout at ``/workspace`` and ``out`` at ``/proveout-out``."""
    return ContainerRun(
        image=image,
        argv=tuple(argv),
        workdir=f"{_WORKSPACE}/tests",
        mounts={str(root): _WORKSPACE, str(hf_home): _HF_HOME, str(out): _OUT},
        env={"HF_HOME": _HF_HOME, "HOME": "/tmp/", "PYTHONPATH": _WORKSPACE},  # noqa: S108 - in the container
        pass_env=("HF_TOKEN",),
        capabilities=("SYS_PTRACE",),
        interactive=interactive,
    )


def out_in_container(name: str) -> str:
    """Where a file of the ``out`` directory stands in the container."""
    return f"{_OUT}/{name}"


def functional_in_container(
    root: Path,
    image: str,
    script: str,
    overrides: Sequence[str],
    *,
    caches: Mapping[str, Path],
    interactive: bool,
) -> ContainerRun:
    """A functional script with all its overrides. The checkout keeps its path, which scripts write into logs.

    ``script`` is relative to ``root`` or to ``root/tests``; ``caches`` has ``HF_HOME`` and
    ``HF_DATASETS_CACHE``. Raises UsageError where there is no such script.
    """
    found = next((path for path in (root / script, root / "tests" / script) if path.is_file()), None)
    if found is None:
        raise UsageError(
            "no such script", where=script, remedy=f"it is looked for under {root} and its tests"
        )
    return ContainerRun(
        image=image,
        argv=("uv", "run", "bash", "-x", str(found), *overrides),
        workdir=str(root / "tests"),
        mounts={
            str(root): str(root),
            str(caches["HF_HOME"]): _HF_HOME,
            str(caches["HF_DATASETS_CACHE"]): _HF_DATASETS,
        },
        env={"HF_HOME": _HF_HOME, "HF_DATASETS_CACHE": _HF_DATASETS, "HOME": "/tmp/"},  # noqa: S108
        pass_env=("HF_TOKEN", "WANDB_API_KEY"),
        interactive=interactive,
    )
