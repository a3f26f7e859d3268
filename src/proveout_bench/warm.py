"""Runs that start from a process which has imported everything already.

``python -m proveout_bench.warm SOCKET`` serves; with PROVEOUT_BENCH_WARM=SOCKET in the environment
``python -m proveout_bench WORDS...`` hands its words, environment, directory and output to it and ends as the forked
run ends. Each run is a process of its own that has trained nothing before. Needs no package but the standard library
until the server imports the loop.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import sys
from types import FrameType
from typing import Any

VARIABLE = "PROVEOUT_BENCH_WARM"
READY = "Warm server ready"


def delegate(path: str) -> int:
    """Run this process's command in the server at ``path``; its exit status, a signal as 128 and its number."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.connect(path)
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    text = json.dumps({"argv": sys.argv[1:], "env": environment, "cwd": os.getcwd()}).encode()
    files = array.array("i", [1, 2])
    end.sendmsg([len(text).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    end.sendall(text)
    signal.signal(signal.SIGTERM, _leave)
    answer = end.recv(4)
    status = int.from_bytes(answer, "big", signed=True) if answer else 1
    return status if status >= 0 else 128 - status


def serve(path: str) -> None:
    """Serve ``path`` until it is told to stop (SIGTERM); a run whose caller is gone is killed with its children."""
    _import_all()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(16)
    signal.signal(signal.SIGTERM, _leave)
    print(READY, flush=True)
    runs: dict[socket.socket, tuple[int, int]] = {}
    try:
        while True:
            ready, _, _ = select.select([listener, *runs, *(handle for _, handle in runs.values())], [], [])
            if listener in ready:
                caller, _ = listener.accept()
                pid = _start(caller, listener, runs)
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
        os.unlink(path)


def _start(caller: socket.socket, listener: socket.socket, runs: dict[socket.socket, tuple[int, int]]) -> int:
    length, ancillary, _, _ = caller.recvmsg(4, socket.CMSG_SPACE(8))
    files = array.array("i")
    files.frombytes(ancillary[0][2])
    size, text = int.from_bytes(length, "big"), b""
    while len(text) < size:
        text += caller.recv(size - len(text))
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        return pid
    os.setsid()
    listener.close()
    for other in (caller, *runs):
        other.close()
    _become(json.loads(text), files)
    raise AssertionError


def _become(asked: dict[str, Any], files: array.array[int]) -> None:
    """Be the program that was asked for, and end."""
    from proveout_bench import cli

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.dup2(files[0], 1)
    os.dup2(files[1], 2)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = ["proveout_bench", *asked["argv"]]
    status = 1
    try:
        cli.main()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _answer(caller: socket.socket, status: int) -> None:
    try:
        caller.sendall(status.to_bytes(4, "big", signed=True))
    except OSError:
        return


def _import_all() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    from importlib import import_module

    from proveout_bench import cli, registry

    cli._import_offline()
    for table in (registry.ALGORITHMS, registry.BACKENDS, registry.ENGINES):
        for entry in table.values():
            import_module(entry.partition(":")[0])
    for name in ("peft", "transformers.models.auto.modeling_auto", "tokenizers", "torch._dynamo"):
        import_module(name)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    serve(sys.argv[1])
