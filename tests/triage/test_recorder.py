"""Flight-recorder dumps: the missing rank is named, and no dump can make anything run."""

from __future__ import annotations

import json
import pickle

import pytest

from proveout.domain.errors import UsageError
from proveout.triage import triage


def entry(seq, state="completed", op="nccl:all_reduce", sizes=((4,),)):
    frames = [
        {"name": "all_reduce", "filename": "/v/torch/distributed/distributed_c10d.py", "line": 9},
        {"name": "update_policy", "filename": "/ws/actor.py", "line": 41},
    ]
    return {
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "is_p2p": False,
        "profiling_name": op,
        "input_sizes": [list(size) for size in sizes],
        "input_dtypes": ["Float"],
        "state": state,
        "frames": frames,
    }


def dump(path, entries, world=3, as_json=False):
    data = {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))}},
        "entries": entries,
    }
    path.write_bytes(json.dumps(data).encode() if as_json else pickle.dumps(data, protocol=2))
    return path


@pytest.mark.parametrize("as_json", [False, True])
def test_the_rank_that_never_came_is_named_with_the_place_where_the_others_wait(tmp_path, as_json):
    done = [entry(seq) for seq in range(1, 6)]
    dumps = [
        dump(tmp_path / "fr_0", [*done, entry(6, "scheduled")], as_json=as_json),
        dump(tmp_path / "fr_1", done, as_json=as_json),
        dump(tmp_path / "fr_2", [*done, entry(6, "started")], as_json=as_json),
    ]
    result = triage(dumps)
    assert (result.boundary, result.verdict, result.subkind) == ("hang", "Fail", "missing-rank")
    assert "missing from it: rank 1 (last 5)" in result.remedy
    assert "/ws/actor.py:41 in update_policy" in result.remedy
    assert [line.split()[:3] for line in result.cause.text.splitlines()[1:]] == [
        ["0", "5", "6"],
        ["1", "5", "5"],
        ["2", "5", "6"],
    ]


def test_a_rank_without_a_dump_and_ranks_that_disagree_are_told(tmp_path):
    result = triage(
        [
            dump(tmp_path / "fr_0", [entry(1), entry(2, "scheduled")]),
            dump(tmp_path / "fr_1", [entry(1), entry(2, "scheduled", "nccl:broadcast")]),
        ]
    )
    assert result.subkind == "collective-mismatch"
    assert "no dump of rank(s) 2" in result.remedy
    assert "nccl:broadcast" in result.remedy


def test_where_nothing_ever_ended_the_run_is_blocked(tmp_path):
    result = triage(
        [dump(tmp_path / "fr_0", [entry(1, "scheduled")]), dump(tmp_path / "fr_1", [entry(1, "started")])]
    )
    assert result.verdict == "Blocked"


def test_dumps_beside_a_log_explain_its_hang_and_leave_other_causes_alone(tmp_path):
    log = tmp_path / "run.log"
    watchdog = (
        "[rank0]:[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=9) ran for 9 milliseconds\n"
    )
    dumps = [
        dump(tmp_path / "fr_0", [entry(5), entry(6, "scheduled")], 2),
        dump(tmp_path / "fr_1", [entry(5)], 2),
    ]
    log.write_text(watchdog, encoding="utf-8")
    hung = triage([log, *dumps])
    assert hung.cause.where.line == 1
    assert "missing from it: rank 1" in hung.cause.what
    log.write_text(watchdog + "OSError: [Errno 28] No space left on device\n", encoding="utf-8")
    assert triage([log, *dumps]).subkind == "disk-full"


def test_collectives_that_all_ended_decide_nothing(tmp_path):
    result = triage([dump(tmp_path / "fr_0", [entry(1)])])
    assert (result.boundary, result.cause) == ("unknown", None)


class Evil:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (self.mark, "w"))


def test_a_pickle_that_names_anything_is_refused_and_nothing_runs(tmp_path):
    mark = tmp_path / "ran"
    path = tmp_path / "fr_0"
    path.write_bytes(pickle.dumps({"entries": [Evil(str(mark))]}, protocol=2))
    with pytest.raises(UsageError, match="names"):
        triage([path])
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("fr_0", b"\x80\x02}q\x00."),
        ("fr_0", b"\x80\x02\xff\xff"),
        ("fr_0", b'{"pg_config": {}, "entries": 3}'),
        ("fr_0", b'{"pg_config": '),
        ("trace", b'{"entries": [], "pg_config": {}}'),
    ],
)
def test_what_is_no_dump_is_a_clear_error(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError):
        triage([tmp_path / name])
