"""``proveout run --ray-stop``: what was ended, or why nothing was, stands in the plan's findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import call
from tests.loops import standins

pytestmark = pytest.mark.real


@pytest.mark.parametrize("flag", [True, False])
def test_what_was_done_about_a_cluster_is_told(
    stand_ins: dict[str, str], recording: Path, tmp_path: Path, verl_data: None, flag: bool
) -> None:
    folder = tmp_path / "ray"
    folder.mkdir()
    (folder / "ray_current_cluster").write_text("10.255.255.1:6379")
    env = {**standins.environment(tmp_path / "bin", recording), "RAY_TMPDIR": str(tmp_path)}
    trees = ("--bridge", stand_ins["bridge"], "--verl", stand_ins["verl"], "--set", "reward_model=off")
    asked = ("--ray-stop",) if flag else ()
    answer = call("run", *trees, "--loop", "verl", "--level", "0", "--json", *asked, cwd=tmp_path, env=env)
    found = {f["id"] for f in json.loads(answer.out)["findings"]}
    assert ("flow.ray-stop.elsewhere" in found) is flag
    assert (folder / "ray_current_cluster").read_text() == "10.255.255.1:6379"
