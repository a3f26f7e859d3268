"""Many attempts are one array and one question; Slurm is asked seldom, and only what is final counts as final."""

from __future__ import annotations

import os
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.launch.engines import require
from tests.launch.shim import counted_calls

from proveout import launch
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch import LaunchSite, Start
from proveout.launch.slurm import query, script
from proveout.launch.slurm.queue import SHORTEST_SECONDS, Queue
from proveout.launch.slurm.settings import SlurmSettings
from proveout.launch.slurm.states import TERMINAL, parse_state


def starts(folder: Path, count: int, *words: str) -> list[Start]:
    found = []
    for number in range(count):
        root = folder / f"attempt-{number}"
        root.mkdir()
        command = Command(argv=words, cwd=str(root), env={"NUMBER": str(number)})
        found.append(Start(command=command, files=AttemptLayout(root), resources=Resources()))
    return found


@pytest.mark.real
def test_many_attempts_are_one_array_and_one_question_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("slurm")
    calls = counted_calls(tmp_path / "bin", monkeypatch)
    starting = launch.launch_for(LaunchSite(scheduler="slurm"))
    wanted = starts(tmp_path, 40, "sh", "-c", 'sleep 0.2; echo "$NUMBER"; exit $((NUMBER % 2))')
    began = time.monotonic()
    jobs = starting.submit_many(wanted)
    records: dict[int, ExitRecord] = {}
    while len(records) < len(jobs):
        records |= {n: found for n, job in enumerate(jobs) if (found := job.poll()) is not None}
        time.sleep(0.02)
    seconds = time.monotonic() - began
    assert calls.counted()["sbatch"] == 1
    assert calls.counted()["squeue"] <= seconds / SHORTEST_SECONDS + 1
    asked = calls.times("squeue")
    assert all(later - earlier > 0.5 for earlier, later in pairwise(asked))
    assert [records[n].code for n in range(40)] == [n % 2 for n in range(40)]
    assert [start.files.log.read_text().strip() for start in wanted] == [str(n) for n in range(40)]


@pytest.mark.real
def test_many_jobs_are_cancelled_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("slurm")
    calls = counted_calls(tmp_path / "bin", monkeypatch)
    starting = launch.launch_for(LaunchSite(scheduler="slurm"))
    jobs = starting.submit_many(starts(tmp_path, 8, "sleep", "600"))
    records = starting.cancel(jobs)
    assert {record.end for record in records} == {End.INTERRUPTED}
    assert calls.counted()["scancel"] <= 2, "once to ask, and once more for what does not obey in time"


def test_while_nothing_changes_slurm_is_asked_more_and_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = [0.0], []
    monkeypatch.setattr("proveout.launch.slurm.queue.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(query, "accounting", lambda: False)

    def answer(jobs: list[str], *, accounts: bool) -> dict[str, object]:
        asked.append(clock[0])
        return query.parse("".join(f"{job}|RUNNING|0|None|n1|1:00|0|\n" for job in jobs))

    monkeypatch.setattr(query, "states", answer)
    queue = Queue()
    for tenth in range(6000):
        clock[0] = tenth / 10
        for job in ("1", "2_0", "2_1"):
            queue.state(job)
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert len(asked) < 35
    assert min(gaps) >= SHORTEST_SECONDS and gaps[-1] >= 29
    assert all(later >= earlier - 0.2 for earlier, later in pairwise(gaps))


def test_only_listed_states_are_final() -> None:
    for state in ("COMPLETING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED", "STAGE_OUT", "SOMETHING_NEW", ""):
        assert state not in TERMINAL
    assert parse_state("CANCELLED by 0") == ("CANCELLED", "root")
    assert parse_state("CANCELLED") == ("CANCELLED", "")
    assert parse_state("OUT_OF_MEMORY") == ("OUT_OF_MEMORY", "")


def test_the_accounting_shows_waiting_tasks_of_an_array_in_one_line() -> None:
    found = query.parse("12_[0-2,7%4]|PENDING|0:0|None|None assigned|00:05:00\n12_3|FAILED|3:0|None|n1|1\n")
    assert sorted(found) == ["12_0", "12_1", "12_2", "12_3", "12_7"]
    assert (found["12_3"].code, found["12_7"].state) == (3, "PENDING")


@pytest.mark.real
def test_a_refusal_is_told_in_slurms_words_and_blocks(tmp_path: Path) -> None:
    require("slurm")
    site = LaunchSite(scheduler="slurm", tables={"slurm": {"partition": "no-such"}})
    with pytest.raises(BlockedError, match="invalid partition"):
        launch.launch_for(site).submit_many(starts(tmp_path, 1, "true"))


def test_without_slurm_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BlockedError, match="sbatch is not installed") as caught:
        launch.launch_for(LaunchSite(scheduler="slurm")).submit_many(starts(tmp_path, 1, "true"))
    assert "--scheduler" in caught.value.remedy


def test_the_batch_script_asks_for_what_site_and_step_need(tmp_path: Path) -> None:
    settings = SlurmSettings(
        account="research", partition="h100", qos="high", exclusive=True, time="4:00:00", extra=("--mem=0",)
    )
    wanted = Resources(gpus=16, nodes=2, timeout_minutes=30)
    found = script.options(settings, wanted, name="proveout-x", log="/run/slurm-%j.log")
    text = script.text(found, "/run/slurm", "/usr/bin/python3", ["/run/job.json"])
    batch = tmp_path / "batch.sh"
    batch.write_text(text)
    subprocess.run(["bash", "-n", str(batch)], check=True)
    for line in ("--nodes=2", "--gres=gpu:8", "--time=35", "--account=research", "--exclusive", "--mem=0"):
        assert f"#SBATCH {line}\n" in text
    assert "#SBATCH --no-requeue\n" in text
    assert os.access(batch, os.R_OK)


@pytest.mark.parametrize(
    ("limit", "minutes"), [("90", 90), ("1:30", 1.5), ("2:00:00", 120), ("1-2", 1560), ("1-00:30", 1470)]
)
def test_time_limits_are_read_as_slurm_reads_them(limit: str, minutes: float) -> None:
    assert script.minutes(limit) == minutes
    assert script.options(SlurmSettings(time="1"), Resources(), name="x", log="y")[-2] == "--time=1"


def test_a_wrong_time_limit_is_refused_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="no time limit"):
        launch.launch_for(LaunchSite(scheduler="slurm", tables={"slurm": {"time": "4 hours"}}))
