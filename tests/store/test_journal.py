"""The journal keeps every whole event, whatever a kill or a bad disk left between them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from proveout.store.journal import Journal

FIELDS = st.dictionaries(
    st.text(min_size=1).filter(lambda key: key not in ("time", "event")), st.text() | st.integers(-5, 5)
)


@given(events=st.lists(st.tuples(st.text(min_size=1), FIELDS), max_size=8))
@example(events=[("ended", {"self": ""})])
def test_what_is_appended_is_read_back_in_order(tmp_path_factory, events) -> None:
    journal = Journal(tmp_path_factory.mktemp("journal") / "events.jsonl")
    for name, fields in events:
        journal.append(name, **fields)
    read = [{key: value for key, value in event.items() if key != "time"} for event in journal.read()]
    assert read == [{"event": name, **fields} for name, fields in events]


@given(cut=st.integers(1, 60), noise=st.binary(max_size=40).filter(lambda b: b"\n" not in b))
def test_a_line_cut_by_a_kill_spoils_no_other(tmp_path_factory, cut: int, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    journal = Journal(path)
    journal.append("first")
    journal.append("second", detail="x" * 40)
    path.write_bytes(path.read_bytes()[: -min(cut, 40)] + noise)
    journal.append("third")
    names = [event["event"] for event in journal.read()]
    assert names[0] == "first"
    assert names[-1] == "third"


def test_no_file_is_no_events(tmp_path: Path) -> None:
    assert Journal(tmp_path / "absent").read() == []
