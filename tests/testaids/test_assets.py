"""``proveout assets``: built once for each content, by the checkout's own script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from proveout.cli.main import run
from proveout.testaids.assets import content_hash

SCRIPT = """
import pathlib
assets = pathlib.Path(__file__).with_name("test_assets")
assets.mkdir(exist_ok=True)
(assets / "model.bin").write_bytes(b"weights")
(assets / "deep").mkdir(exist_ok=True)
(assets / "deep" / "config.json").write_text("{}")
with open(pathlib.Path(__file__).with_suffix(".log"), "a") as log:
    log.write("built\\n")
"""
LOADS_A_TOKENIZER = """
import pathlib, shutil
from huggingface_hub import hf_hub_download, snapshot_download
assets = pathlib.Path(__file__).with_name("test_assets")
assets.mkdir(exist_ok=True)
shutil.copy(hf_hub_download("acme/Tiny-Base", "tokenizer.json"), assets / "tokenizer.json")
assert pathlib.Path(snapshot_download("acme/Tiny-Base"), "deep", "vocab.txt").is_file()
"""


@pytest.fixture
def builds(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A checkout with a script; returns how often it has built so far."""
    monkeypatch.setenv("PROVEOUT_CACHE", str(tmp_path / "cache"))
    script = checkout / "tests" / "unit" / "prepare_unit_test_assets.py"
    script.write_text(SCRIPT)

    def count() -> int:
        log = script.with_suffix(".log")
        return len(log.read_text().splitlines()) if log.exists() else 0

    count.script = script
    count.output = script.with_name("test_assets")
    return count


def assets(checkout: Path, capfd, *options: str) -> tuple[int, dict]:
    status = run(["assets", "--repo", str(checkout), "--python", sys.executable, "--json", *options])
    out = capfd.readouterr().out.splitlines()
    return status, json.loads(out[-1]) if out else {}


def test_they_are_built_once_and_then_reused(checkout, builds, capfd):
    status, first = assets(checkout, capfd)
    assert (status, first["how"], first["files"]) == (0, "built", 2)

    status, second = assets(checkout, capfd)
    assert (status, second["how"], builds()) == (0, "present", 1)
    assert second["content"] == first["content"] == content_hash(builds.output)


@pytest.mark.parametrize("damage", ["remove", "change", "add"])
def test_what_is_missing_or_changed_is_put_back_from_the_cache(checkout, builds, capfd, damage):
    assets(checkout, capfd)
    weights = builds.output / "model.bin"
    match damage:
        case "remove":
            weights.unlink()
        case "change":
            weights.write_bytes(b"WEIGHTS")
        case "add":
            (builds.output / "stray").write_text("")

    assert assets(checkout, capfd)[1]["how"] == "cached"
    assert builds() == 1
    assert sorted(path.name for path in builds.output.rglob("*")) == ["config.json", "deep", "model.bin"]
    assert weights.read_bytes() == b"weights"


def test_another_script_is_another_content(checkout, builds, capfd):
    assets(checkout, capfd)
    builds.script.write_text(SCRIPT.replace('b"weights"', 'b"other"'))

    assert assets(checkout, capfd)[1]["how"] == "built"
    assert (builds.output / "model.bin").read_bytes() == b"other"


def test_rebuild_builds(checkout, builds, capfd):
    assets(checkout, capfd)
    assert assets(checkout, capfd, "--rebuild")[1]["how"] == "built"
    assert builds() == 2


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("raise SystemExit(3)", "it failed with exit status 3, so there are no assets"),
        ("print('nothing to do')", "it succeeded, but wrote nothing into"),
    ],
)
def test_a_script_that_fails_or_leaves_nothing_is_blocked(checkout, builds, capfd, script, said):
    builds.script.write_text(script)
    status = run(["assets", "--repo", str(checkout), "--python", sys.executable])

    assert status == 3
    assert said in capfd.readouterr().err


def test_a_script_that_fails_leaves_what_was_there(checkout, builds, capfd):
    assets(checkout, capfd)
    builds.script.write_text("raise SystemExit(3)")
    assets(checkout, capfd)
    assert (builds.output / "model.bin").read_bytes() == b"weights"


def test_a_local_tokenizer_is_found_under_its_hub_name_without_a_network(checkout, builds, tmp_path, capfd):
    local = tmp_path / "tokenizer"
    (local / "deep").mkdir(parents=True)
    (local / "tokenizer.json").write_text('{"model": "tiny"}')
    (local / "deep" / "vocab.txt").write_text("a")
    builds.script.write_text(LOADS_A_TOKENIZER)

    status, answer = assets(checkout, capfd, "--local", f"acme/Tiny-Base={local}")

    assert (status, answer["how"]) == (0, "built")
    assert (builds.output / "tokenizer.json").read_text() == '{"model": "tiny"}'

    (local / "added.txt").write_text("changed")
    assert assets(checkout, capfd, "--local", f"acme/Tiny-Base={local}")[1]["how"] == "built"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--local", "acme/Tiny"], "needs ORG/NAME=DIRECTORY"),
        (["--local", "acme/Tiny=/nowhere/at/all"], "no such directory"),
        (["--script", "tests/none.py"], "no such script"),
    ],
)
def test_wrong_usage_is_a_sentence(checkout, builds, capfd, options, said):
    assert run(["assets", "--repo", str(checkout), "--python", sys.executable, *options]) == 2
    assert said in capfd.readouterr().err
    assert builds() == 0
