"""Checkouts copied to another machine through a real sshd: exact, fresh, compared, and nothing overwritten."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.conftest import Answer

from proveout.domain.errors import BlockedError, UsageError
from proveout.launch.sync import local, place_of, transfer

pytestmark = pytest.mark.real
SSHD = "/usr/sbin/sshd"
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")


def git(where: Path, *words: str) -> str:
    done = subprocess.run([*GIT, "-C", str(where), *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture(scope="session")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The words that connect to an sshd of this test, with keys and a port of its own."""
    if not Path(SSHD).exists() or shutil.which("rsync") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("openssh-server and rsync have to be installed")
        pytest.skip("no openssh-server or rsync here")
    here = tmp_path_factory.mktemp("ssh")
    here.chmod(0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(here / name)], check=True)
    (here / "authorized").write_bytes((here / "user.pub").read_bytes())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": here / "host",
        "AuthorizedKeysFile": here / "authorized",
        "PidFile": here / "pid",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
    }
    (here / "config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(here / "config")], stderr=subprocess.DEVNULL)
    words = ["ssh", "-p", str(port), "-i", str(here / "user"), "-o", "StrictHostKeyChecking=no"]
    words += ["-o", f"UserKnownHostsFile={here / 'known'}", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]
    while subprocess.run([*words, "127.0.0.1", "true"], capture_output=True, check=False).returncode:
        assert server.poll() is None
        time.sleep(0.05)
    yield shlex.join(words)
    for process in [*psutil.Process(server.pid).children(recursive=True), server]:
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            process.kill()
    server.wait()


@pytest.fixture
def bridge(tmp_path: Path) -> Path:
    """A Bridge checkout with all that a working tree can have: changes, new, deleted, ignored files, a submodule."""
    mcore = tmp_path / "mcore"
    (mcore / "megatron" / "core").mkdir(parents=True)
    (mcore / "megatron" / "core" / "__init__.py").write_text("core = 1\n")
    git(tmp_path, "init", "-q", "-b", "main", str(mcore))
    git(mcore, "add", ".")
    git(mcore, "commit", "-qm", "core")
    root = tmp_path / "a bridge"
    (root / "src" / "megatron" / "bridge").mkdir(parents=True)
    (root / "src" / "megatron" / "bridge" / "__init__.py").write_text("one = 1\n")
    (root / "run.sh").write_text("true\n")
    (root / "gone.py").write_text("gone\n")
    (root / ".gitignore").write_text("*.so\n")
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    git(root, "submodule", "add", "-q", str(mcore), "3rdparty/Megatron-LM")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "change")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("run.sh")
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    (root / "src" / "megatron" / "bridge" / "__init__.py").write_text("one = 2\n")
    (root / "new file é.py").write_text("new\n")
    (root / "gone.py").unlink()
    (root / "built.so").write_text("ignored")
    (root / "3rdparty" / "Megatron-LM" / "megatron" / "core" / "__init__.py").write_text("core = 2\n")
    return root


def test_the_other_side_is_the_same_tree_with_the_same_differences(
    ssh: str, bridge: Path, tmp_path: Path, proveout: Callable[..., Answer]
) -> None:
    there = tmp_path / "there"
    before = git(bridge, "status", "--porcelain=v2", "--branch")
    index = (bridge / ".git" / "index").read_bytes()
    answer = proveout("sync", f"127.0.0.1:{there}", "--bridge", str(bridge), "--ssh", ssh, "--json")
    assert answer.status == 0, answer.err
    copied = Path(answer.json["checkouts"][0]["remote"])
    assert git(copied, "status", "--porcelain=v2", "--branch") == before
    assert git(copied, "diff") == git(bridge, "diff")
    assert git(copied, "rev-parse", "main") == git(bridge, "rev-parse", "main")
    assert (copied / "new file é.py").read_text() == "new\n"
    assert not (copied / "built.so").exists()
    assert (bridge / ".git" / "index").read_bytes() == index
    assert local.state_of(copied).tree == answer.json["checkouts"][0]["tree"] == local.state_of(bridge).tree


def test_a_second_copy_stands_beside_the_first_and_leaves_it_alone(
    ssh: str, bridge: Path, tmp_path: Path, proveout: Callable[..., Answer]
) -> None:
    words = ("sync", f"127.0.0.1:{tmp_path / 'there'}", "--bridge", str(bridge), "--ssh", ssh, "--json")
    first = Path(proveout(*words).json["checkouts"][0]["remote"])
    (first / "run.sh").write_text("edited there\n")
    (bridge / "run.sh").write_text("edited here\n")
    second = Path(proveout(*words).json["checkouts"][0]["remote"])
    assert first != second
    assert (first / "run.sh").read_text() == "edited there\n"
    assert (second / "run.sh").read_text() == "edited here\n"


def test_a_tree_that_changes_on_the_way_is_not_taken_for_the_same(
    ssh: str, bridge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied(state: local.State, place: object, target: str) -> None:
        contents(state, place, target)  # type: ignore[arg-type]
        (Path(target) / "run.sh").write_text("spoilt\n")

    contents = transfer._contents
    monkeypatch.setattr(transfer, "_contents", copied)
    with pytest.raises(BlockedError, match=r"bridge: 1 file\(s\) are not the same there \(run\.sh\)"):
        transfer.sync({"bridge": str(bridge)}, place_of(f"127.0.0.1:{tmp_path / 'there'}", ssh))
    assert [path.name[:10] for path in (tmp_path / "there").iterdir()] == [".incoming-"]


def test_a_tree_without_git_is_copied_whole(
    ssh: str, tmp_path: Path, proveout: Callable[..., Answer]
) -> None:
    (tmp_path / "plain" / "src" / "megatron" / "bridge").mkdir(parents=True)
    (tmp_path / "plain" / "src" / "megatron" / "bridge" / "__init__.py").write_text("one = 1\n")
    answer = proveout(
        "sync", f"127.0.0.1:{tmp_path / 'there'}", "--bridge", str(tmp_path / "plain"), "--ssh", ssh
    )
    assert answer.status == 0, answer.err
    assert "bridge: 1 files at no commit" in answer.out


def test_a_host_that_is_not_there_is_blocked_with_the_reason(
    bridge: Path, proveout: Callable[..., Answer]
) -> None:
    nowhere = "ssh -o BatchMode=yes -o ConnectTimeout=2 -p 1"
    answer = proveout("sync", "127.0.0.1:/nowhere", "--bridge", str(bridge), "--ssh", nowhere)
    assert answer.status == 3
    assert "127.0.0.1: no connection: ssh: connect to host 127.0.0.1 port 1" in answer.err


@pytest.mark.parametrize("word", ["host", "host:", ":/dir", "-oProxyCommand=x:/dir", "host:relative"])
def test_what_is_no_place_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        place_of(word)
