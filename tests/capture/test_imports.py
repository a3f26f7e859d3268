"""Which tree a worker imported Megatron from, as real consoles show it."""

from __future__ import annotations

from pathlib import Path

from proveout.capture.imports import read_imports

RAY = "\x1b[36m(IsolatedWorkerInitializer pid=27969)\x1b[0m "


def records(tmp_path: Path, text: str) -> list[tuple[str, str, str, int | None]]:
    (tmp_path / "run.log").write_text(text)
    return [
        (record.importer, record.module, record.path, record.where.where.line if record.where else None)
        for record in read_imports(tmp_path / "run.log")
    ]


def test_a_process_says_it_itself(tmp_path: Path) -> None:
    text = "(Worker pid=3) [import] worker megatron.bridge /b/src/megatron/bridge/__init__.py\n"
    assert records(tmp_path, text) == [
        ("worker", "megatron.bridge", "/b/src/megatron/bridge/__init__.py", 1)]  # fmt: skip


def test_warnings_and_tracebacks_of_workers_name_the_file_each_tree_once(tmp_path: Path) -> None:
    text = (
        f"Initializing workers: 0%|  | 0/2{RAY}/ws/mlm/megatron/core/optimizer/__init__.py:25: UserWarning: no Apex\n"
        f"{RAY}/ws/mlm/megatron/core/optimizer/optimizer.py:29: UserWarning: again\n"
        f'{RAY}  File "/ws/b/src/megatron/bridge/utils/import_utils.py", line 324, in safe_import_from\n'
        f"{RAY}/site-packages/megatron/core/x.py:1: DeprecationWarning: another tree\n"
    )
    assert records(tmp_path, text) == [
        ("worker", "megatron.core", "/ws/mlm/megatron/core/optimizer/__init__.py", 1),
        ("worker", "megatron.bridge", "/ws/b/src/megatron/bridge/utils/import_utils.py", 3),
        ("worker", "megatron.core", "/site-packages/megatron/core/x.py", 4),
    ]


def test_the_driver_and_verls_task_runner_are_no_workers(tmp_path: Path) -> None:
    line = "/s/megatron/core/models/backends.py:34: UserWarning: no Apex\n"
    text = line + "\x1b[36m(TaskRunnerV1 pid=3)\x1b[0m " + line
    assert [found[0] for found in records(tmp_path, text)] == ["driver"]


def test_a_path_that_is_only_mentioned_is_no_import(tmp_path: Path) -> None:
    assert (
        records(tmp_path, f"{RAY}loading /b/src/megatron/bridge/data.py and /b/megatron/core/x.py:9\n") == []
    )


def test_no_log_no_records(tmp_path: Path) -> None:
    assert read_imports(tmp_path / "none.log") == ()
