"""Runs that start from a process which has imported everything already.

``python -m proveout_bench.warm SOCKET [BACKEND]`` serves; with PROVEOUT_BENCH_WARM=SOCKET in the environment
``python -m proveout_bench WORDS...`` hands its words, environment, directory and output to it and ends as the forked
run ends. Each run is a process of its own that has trained nothing before. Where there is no server, or one that was
started with another interpreter or other ``DECISIVE`` variables, the run starts by itself. Needs no package but the
standard library until the server imports the loop.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Any

VARIABLE = "PROVEOUT_BENCH_WARM"
READY = "Warm server ready"
STARTED = "Warm start: forked from process {parent}, which had imported the loop and run nothing"
GONE = 75
"""Exit status where the server ended during the run: what is left of it says nothing."""
DECISIVE = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONPYCACHEPREFIX"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
    *("HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TORCH_COMPILE_DISABLE"),
)
"""What is read when modules are imported."""
BACKEND = "backend="
_ACCEPTED = b"+"


def delegate(path: str) -> int | None:
    """Run this process's command in the server at ``path``; its exit status, a signal as 128 and its number.

    None where no server takes it.
    """
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    asked = {"argv": sys.argv[1:], "env": environment, "cwd": str(Path.cwd()), "python": sys.executable}
    text, files = json.dumps(asked).encode(), array.array("i", [1, 2])
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        end.connect(path)
        end.sendmsg([len(text).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        end.sendall(text)
        if end.recv(1) != _ACCEPTED:
            return None
    except OSError:
        return None
    signal.signal(signal.SIGTERM, _leave)
    answer = _received(end)
    if answer is None:
        print("Error: the process that this run was forked from has ended", file=sys.stderr)
        return GONE
    status = int.from_bytes(answer, "big", signed=True)
    return status if status >= 0 else 128 - status


def _received(end: socket.socket) -> bytes | None:
    try:
        return end.recv(4) or None
    except OSError:
        return None


def serve(path: str, backend: str = "hf") -> None:
    """Serve ``path`` until standard input ends or SIGTERM; a run whose caller is gone is killed with its children.

    Who asks before everything is imported waits. Where standard input ends, whoever started this is gone: runs that go
    on come to their own end first.
    """
    ours = {"python": sys.executable, "env": dict(os.environ), "backend": backend}
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(16)
    _import_all(backend)
    signal.signal(signal.SIGTERM, _leave)
    print(READY, flush=True)
    runs: dict[socket.socket, tuple[int, int]] = {}
    entries: list[Any] = [0, listener]
    try:
        while entries or runs:
            waited = [*entries, *runs, *(handle for _, handle in runs.values())]
            ready, _, _ = select.select(waited, [], [])
            if 0 in ready:
                entries = []
                continue
            if listener in ready:
                caller, _ = listener.accept()
                pid = _start(caller, listener, runs, ours)
                if pid is None:
                    caller.close()
                else:
                    runs[caller] = (pid, os.pidfd_open(pid))
            for caller, (pid, handle) in list(runs.items()):
                if handle in ready:
                    _answer(caller, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                elif caller in ready:
                    os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                else:
                    continue
                os.close(handle)
                caller.close()
                del runs[caller]
    finally:
        for pid, _ in runs.values():
            os.killpg(pid, signal.SIGKILL)
        Path(path).unlink(missing_ok=True)


def _start(
    caller: socket.socket,
    listener: socket.socket,
    runs: dict[socket.socket, tuple[int, int]],
    ours: dict[str, Any],
) -> int | None:
    """The process of the run that ``caller`` asks for; None where it must start by itself."""
    length, ancillary, _, _ = caller.recvmsg(4, socket.CMSG_SPACE(8))
    if not ancillary:
        return None
    files = array.array("i")
    files.frombytes(ancillary[0][2])
    size, text = int.from_bytes(length, "big"), b""
    while len(text) < size and (more := caller.recv(size - len(text))):
        text += more
    asked = json.loads(text) if len(text) == size else {}
    pid = os.fork() if _alike(asked, ours) else None
    if pid != 0:
        for file in files:
            os.close(file)
        if pid:
            _send(caller, _ACCEPTED)
        return pid
    os.setsid()
    listener.close()
    for other in (caller, *runs):
        other.close()
    _become(asked, files)
    raise AssertionError


def _alike(asked: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether a run would have imported what this server did."""
    if asked.get("python") != ours["python"]:
        return False
    named = [word.removeprefix(BACKEND) for word in asked["argv"] if word.startswith(BACKEND)]
    return (named or ["hf"])[-1] == ours["backend"] and all(
        asked["env"].get(name) == ours["env"].get(name) for name in DECISIVE
    )


def _become(asked: dict[str, Any], files: array.array[int]) -> None:
    """Be the program that was asked for, and end."""
    from proveout_bench import cli, ranks

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(files[0], 1)
    os.dup2(files[1], 2)
    os.chdir(asked["cwd"])
    sys.path[0] = asked["cwd"]
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = ["proveout_bench", *asked["argv"]]
    print(STARTED.format(parent=os.getppid()), flush=True)
    status = 1
    try:
        cli.main()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    ranks.leave(status)


def _answer(caller: socket.socket, status: int) -> None:
    _send(caller, status.to_bytes(4, "big", signed=True))


def _send(caller: socket.socket, data: bytes) -> None:
    try:
        caller.sendall(data)
    except OSError:
        return


def _import_all(backend: str) -> None:
    """The loop and the ``backend``, without touching a GPU."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    from importlib import import_module

    from proveout_bench import cli, registry

    cli._import_offline()
    if backend in registry.WARM_IMPORTS:
        registry.load(registry.WARM_IMPORTS, backend)()
    for table in (registry.ALGORITHMS, registry.BACKENDS, registry.ENGINES):
        for entry in table.values():
            import_module(entry.partition(":")[0])
    for name in ("peft", "transformers.models.auto.modeling_auto", "tokenizers", "torch._dynamo"):
        import_module(name)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    serve(*sys.argv[1:])
