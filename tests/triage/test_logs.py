"""The log model: any bytes, any size, prefixes, several files; and what cannot be read."""

from __future__ import annotations

import gzip
import io
import os
import re
import socket
import subprocess
import sys
import threading
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.domain.errors import UsageError
from proveout.triage import provider_constructed, reader, stages_reached, triage
from proveout.triage.engine import scanner
from proveout.triage.lines import parse
from proveout.triage.reader import blocks

CAUSE = b"ModuleNotFoundError: No module named 'nowhere'"

PEAK = """
import sys
from pathlib import Path
from proveout.triage import triage

print(triage([Path(sys.argv[1])]).verdict.value)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def answer(tmp_path, data: bytes, name="run.log"):
    log = tmp_path / name
    log.write_bytes(data)
    return triage([log])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"\n"),
        (b"\x00\x00", b"\x00\n"),
        (b"\xff\xfe broken utf-8 \xc3\n", b"\n"),
        (b"  3%|#  | 1/9 [00:01<00:09]\r 6%|## | 2/9 [00:02<00:08]\r", b"\n"),
        (b"\x1b[36m(Worker pid=7, ip=10.0.0.3)\x1b[0m ", b"\x1b[32m [repeated 3x across cluster]\x1b[0m\n"),
        (b"[pod/trainer-0/main] 2026-12-01T10:00:00.123Z [rank3]: ", b"\n"),
        (b"12: ", b"\n"),
        (b"x" * 3_000_000 + b" ", b"\n"),
        (b"a\n" * 400_000, b""),
    ],
    ids=["bare", "nul", "utf8", "cr", "ray", "pod", "srun", "long line", "many lines"],
)
def test_the_line_is_found_whatever_stands_around_it(tmp_path, before, after):
    result = answer(tmp_path, before + CAUSE + after)
    assert result.verdict == "Blocked"
    assert CAUSE.decode() in result.cause.text
    assert result.cause.where.line == before.count(b"\n") + 1
    assert len(result.cause.text) < 2000


def test_gzip_is_read_and_a_cut_gzip_as_far_as_it_goes(tmp_path):
    noise = os.urandom(200_000).hex().encode()
    whole = gzip.compress(CAUSE + b"\n" + noise)
    assert answer(tmp_path, whole, "run.log.gz").verdict == "Blocked"
    assert answer(tmp_path, whole[:100_000], "cut.log.gz").verdict == "Blocked"


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"", "empty"), (bytes(range(256)) * 400, "not look like a log"), (b"hello\n", "without")],
)
def test_logs_that_say_nothing_are_incomplete(tmp_path, data, says):
    result = answer(tmp_path, data)
    assert (result.boundary, result.verdict, result.cause) == ("incomplete", "Incomplete", None)
    assert says in result.undecided_because


def test_a_directory_and_a_missing_file_are_usage_errors(tmp_path):
    for path in (tmp_path, tmp_path / "none.log"):
        with pytest.raises(UsageError):
            triage([path])
    with pytest.raises(UsageError):
        triage([])


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"ok\n" * 1000 + CAUSE + b"\n"))
    writer.start()
    result = triage([pipe])
    writer.join()
    assert result.cause.where.line == 1001


def test_a_log_that_is_still_written_is_judged_by_what_is_there(tmp_path):
    log = tmp_path / "run.log"
    log.write_bytes(b"starting\n" + CAUSE[:8])
    assert triage([log]).verdict == "Incomplete"
    with log.open("ab") as stream:
        stream.write(CAUSE[8:])
    assert triage([log]).cause.where.line == 2


def test_a_socket_is_a_usage_error(tmp_path):
    with socket.socket(socket.AF_UNIX) as open_socket:
        open_socket.bind(str(tmp_path / "s"))
        with pytest.raises(UsageError, match=re.escape(str(tmp_path / "s")) + "|No such device"):
            triage([tmp_path / "s"])


def test_memory_does_not_grow_with_one_endless_line(tmp_path):
    log = tmp_path / "run.log"
    with log.open("wb") as stream:
        for _ in range(100):
            stream.write(b"half a word in one endless line ... " * 29_127)
        stream.write(CAUSE)
    asked = subprocess.run([sys.executable, "-c", PEAK, log], capture_output=True, text=True, check=True)
    verdict, peak_kb = asked.stdout.split()
    assert verdict == "Blocked"
    assert int(peak_kb) < 150 * 1024


def test_what_is_kept_does_not_grow_with_the_log(tmp_path):
    log = tmp_path / "run.log"
    log.write_text(
        "".join(f"ValueError: thing {'abcdefgh'[n % 8] * (n % 97)} broke {n}\n" for n in range(60_000))
    )
    scan = scanner().scan(log)
    assert scan.lines >= 60_000
    assert len(scan.events) < 200


def test_the_earlier_of_two_causes_wins_across_files_by_time(tmp_path):
    main, other = tmp_path / "run.log", tmp_path / "worker.err"
    main.write_text("2026-12-01 10:00:09,100 ERROR OSError: [Errno 28] No space left on device\n")
    other.write_text("2026-12-01 10:00:01,100 ERROR OSError: [Errno 116] Stale file handle\n")
    assert "Stale" in triage([main, other]).cause.text
    other.write_text("2026-12-01 10:00:59,100 ERROR OSError: [Errno 116] Stale file handle\n")
    assert "No space" in triage([main, other]).cause.text


@settings(deadline=None)
@given(st.binary(max_size=6000), st.integers(1, 900), st.sampled_from([0, reader.LARGE]))
def test_blocks_hold_every_byte_once_and_count_lines(data, size, large):
    with mock.patch.object(reader, "LARGE", large):
        got = list(blocks(io.BytesIO(data), size + 1024))
    assert b"".join(block.data[block.fresh :] for block in got) == data
    for block in got:
        assert data[block.offset : block.offset + len(block.data)] == block.data
        assert block.line == data[: block.offset].count(b"\n") + 1


@given(st.binary(max_size=300))
def test_any_bytes_are_a_line(raw):
    line = parse(raw.replace(b"\n", b""), 1)
    assert "\x00" not in line.text
    assert line.repeated >= 1


def test_prefixes_give_source_rank_and_time():
    line = parse(
        b"(Actor[rank=3] pid=12, ip=10.0.0.2) 2026-12-01 10:00:01,5 [rank3]: hello [repeated 4x across cluster]",
        9,
    )
    assert (line.text, line.rank, line.repeated, line.number) == ("hello", 3, 5, 9)
    assert "pid=12" in line.source
    assert line.time is not None


@pytest.mark.parametrize(
    ("raw", "text", "source", "rank", "level"),
    [
        (
            "[2026-10-22 09:14:03 DP1 TP0] Scheduler hit an exception: x",
            "Scheduler hit an exception: x",
            "",
            None,
            "",
        ),
        ('[engine-0]   File "a.py", line 1, in f', '  File "a.py", line 1, in f', "engine-0", None, ""),
        (
            "[1,3]<stderr>:Traceback (most recent call last):",
            "Traceback (most recent call last):",
            "/rank3",
            3,
            "",
        ),
        ("2026-10-22T09:14:03.5Z stderr F ValueError: x", "ValueError: x", "", None, ""),
        ("2026-04-08 17:01:31 | INFO     | rl.tools:210 - x", "rl.tools:210 - x", "", None, "INFO"),
        ("[c10d] recvValue failed", "[c10d] recvValue failed", "", None, ""),
        ("[rank2]:[W1012 12:00:00 x.cpp:1] y", "[W1012 12:00:00 x.cpp:1] y", "/rank2", 2, "WARNING"),
    ],
)
def test_prefixes_of_other_programs(raw, text, source, rank, level):
    line = parse(raw.encode(), 1)
    assert (line.text, line.source, line.rank, line.level) == (text, source, rank, level)


def test_stages_and_whether_the_provider_was_built(tmp_path):
    log = tmp_path / "run.log"
    log.write_text("Loaded configuration from: x\n▶ Setting up compute cluster...\nValueError: no\n")
    assert not provider_constructed([log])
    assert stages_reached([log]) == {"preflight", "ray_start"}
    log.write_text("(WorkerDict pid=3) Qwen3ForCausalLM contains 1.72B parameters\n")
    assert provider_constructed([log])


def test_a_program_is_no_log_whatever_its_words_are(tmp_path):
    file = tmp_path / "tool"
    file.write_bytes(b"\x7fELF" + bytes(range(1, 9)) * 4000 + b"\nValueError: invalid argument x for y\n" * 3)
    told = triage([file])
    assert (told.boundary, told.verdict, told.cause) == ("incomplete", "Incomplete", None)
    assert "not look like a log" in told.undecided_because


def test_nuls_that_a_truncation_left_at_the_start_hide_nothing(tmp_path):
    log = tmp_path / "run.log"
    log.write_bytes(
        b"\0" * 200_000 + b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    assert triage([log]).boundary == "oom-gpu"


def test_work_that_the_end_of_a_long_log_no_longer_shows_is_not_missed(tmp_path):
    log = tmp_path / "run.log"
    log.write_text(
        "stage train epoch 5/5 loss 0.600\n" + "writing a shard of the results\n" * 60_000 + "exit code 0\n"
    )
    assert triage([log]).verdict == "Pass"
    log.write_text("writing a shard of the results\n" * 10 + "exit code 0\n")
    assert triage([log]).verdict == "Incomplete"


def test_what_was_built_long_before_counts(tmp_path):
    log = tmp_path / "run.log"
    lines = (
        "(WorkerDict pid=16) Qwen3ForCausalLM contains 14.77B parameters\n"
        + "waiting for the engine\n" * 100_000
    )
    error = "ValueError: Free memory on device (47.3/79.1 GiB) on startup is less than desired GPU memory utilization."
    log.write_text(lines + error + "\n")
    assert triage([log]).subkind == "engine-memory"


class _Growing(io.BytesIO):
    """A log that somebody writes to: each read finds a little more, and no line end is there yet."""

    def read(self, size=-1):
        return super().read(min(size, 7))

    def readline(self, size=-1):
        return b""


@given(st.binary(max_size=200))
def test_blocks_of_a_log_that_grows_end_at_line_ends(data):
    got = list(blocks(_Growing(data), 1024))
    assert b"".join(block.data[block.fresh :] for block in got) == data
    assert all(block.data.endswith(b"\n") for block in got[:-1])


def test_a_damaged_gzip_counts_up_to_the_damage(tmp_path):
    packed = bytearray(
        gzip.compress(
            b"OSError: [Errno 28] No space left on device\n" + os.urandom(200_000).hex("\n", 40).encode()
        )
    )
    for name, damaged in (
        ("cut", packed[:-9000]),
        ("hurt", packed[:150_000] + b"\xff" * 900 + packed[150_900:]),
    ):
        log = tmp_path / f"{name}.log.gz"
        log.write_bytes(damaged)
        assert triage([log]).subkind == "disk-full"


def test_what_stands_across_the_cut_of_a_very_long_line_is_found(tmp_path):
    words = b" torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    for back in (5, 30, 60):
        log = tmp_path / "run.log"
        log.write_bytes(b"x" * (2 * reader.BLOCK - back) + words + b"x" * 5000 + b"\n")
        assert triage([log]).boundary == "oom-gpu"
