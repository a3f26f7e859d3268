"""What an attempt writes outside its directory is kept, whatever its wrapper removes meanwhile."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.flow.made_runs import a_step

from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Source
from proveout.flow.keep import Keeper, kept_path


def test_a_folder_that_goes_while_it_is_read_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    for experiment in ("exp_001", "exp_002"):
        (logs / experiment / "tensorboard").mkdir(parents=True)
        (logs / experiment / "tensorboard" / "events.out.tfevents.1").write_bytes(b"read")
    files = AttemptLayout(tmp_path / "attempt")
    files.root.mkdir()
    step = a_step(metrics=(Source(format="tensorboard", path=str(logs)),))
    scandir = os.scandir

    def removed_first(path: Any = ".") -> Any:
        if not isinstance(path, int) and Path(path).name == "exp_001":
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", removed_first)
    Keeper(step, files).look()
    assert kept_path(files, logs / "exp_002/tensorboard/events.out.tfevents.1").read_bytes() == b"read"
    assert not kept_path(files, logs / "exp_001").exists()
