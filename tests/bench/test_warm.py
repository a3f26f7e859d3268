"""Runs that start from a process which has imported everything."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.runs import SMALL, Finished

from proveout_bench import warm

GRPO = ("grpo", *SMALL, "loss.minibatch_size=4")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("warm") / "socket")
    with subprocess.Popen(
        [sys.executable, "-m", "proveout_bench.warm", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert warm.READY in process.stdout.readline()
        yield path
        process.send_signal(signal.SIGTERM)


def run(path: str, folder: Path, *words: str, **env: str) -> Finished:
    done = subprocess.run(
        [sys.executable, "-m", "proveout_bench", *GRPO, f"output_dir={folder}", *words],
        env={**os.environ, warm.VARIABLE: path, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Finished(done.returncode, done.stdout, done.stderr, folder)


def test_a_warm_run_says_so_and_computes_what_a_fresh_one_does(server: str, tmp_path: Path) -> None:
    warmed, fresh = run(server, tmp_path / "warm"), run(str(tmp_path / "none"), tmp_path / "fresh")
    assert (warmed.status, fresh.status) == (0, 0), warmed.err + fresh.err
    assert "Warm start: forked from process" in warmed.out
    assert "Warm start" not in fresh.out
    mine, theirs = warmed.series(), fresh.series()
    assert {tag: v for tag, v in mine.items() if "timing" not in tag} == {
        tag: v for tag, v in theirs.items() if "timing" not in tag
    }


def test_a_failure_of_a_warm_run_keeps_its_status(server: str, tmp_path: Path) -> None:
    done = run(server, tmp_path / "run", "fault.inject=environment-disk-full", "checkpoint.every=1")
    assert done.status == 3
    assert "No space left" in done.err


@pytest.mark.parametrize("env", [{"PYTHONPATH": "/elsewhere"}, {"OMP_NUM_THREADS": "7"}])
def test_what_would_import_other_things_starts_by_itself(
    server: str, env: dict[str, str], tmp_path: Path
) -> None:
    own = os.pathsep.join(sys.path)
    path = os.pathsep.join([env["PYTHONPATH"], own]) if "PYTHONPATH" in env else own
    done = run(server, tmp_path / "run", **{**env, "PYTHONPATH": path})
    assert done.status == 0, done.err
    assert "Warm start" not in done.out


def test_a_server_that_ends_during_the_run_leaves_no_status_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    child = os.fork()
    if not child:
        caller, _ = listener.accept()
        caller.recv(1 << 16)
        caller.sendall(b"+")
        os._exit(0)
    listener.close()
    monkeypatch.setattr(sys, "argv", ["proveout_bench", "grpo"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert warm.delegate(path) == warm.GONE
    os.waitpid(child, 0)
    assert "has ended" in capsys.readouterr().err


def test_a_run_whose_server_loses_its_owner_comes_to_its_own_end(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with subprocess.Popen(
        [sys.executable, "-m", "proveout_bench.warm", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.readline()
        with subprocess.Popen(
            [sys.executable, "-m", "proveout_bench", *GRPO, f"output_dir={tmp_path}/run"],
            env={**os.environ, warm.VARIABLE: path},
            stdout=subprocess.PIPE,
            text=True,
        ) as going:
            assert going.stdout is not None
            assert "Warm start" in going.stdout.readline()
            server.stdin.close()
            assert "Max number of steps has been reached" in going.stdout.read()
        assert going.returncode == 0
        assert server.wait(30) == 0
