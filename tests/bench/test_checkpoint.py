"""A run that is saved and resumed goes on bit for bit; what cannot be resumed from is refused and named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.bench.runs import inside

from proveout_bench.checkpoint import find, store
from proveout_bench.checkpoint.state import PythonRandom, TorchRandom
from proveout_bench.config.resolve import resolve
from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import ConfigError

pytestmark = pytest.mark.real
LORA = ("lora.rank=2", "lr=0.01")
KINDS = {
    "grpo-lora": ("grpo", LORA),
    "ppo": ("ppo", ("critic.epochs=2",)),
    "sft": ("sft", ("sft.examples=20", "sft.batch_size=12", "optimizer.warmup_steps=5")),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints of one LoRA run of two steps, one after each."""
    root = tmp_path_factory.mktemp("saved")
    inside("grpo", root / "run", "checkpoint.every=1", *LORA)
    return root / "run" / "checkpoints"


@pytest.mark.parametrize("kind", KINDS)
def test_save_and_resume_equals_the_run_that_never_stopped(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    algorithm, words = KINDS[kind]
    through = inside(algorithm, tmp_path / "through", "max_steps=3", "validation.every=1", *words)
    inside(algorithm, tmp_path / "half", "max_steps=1", "checkpoint.every=1", "validation.every=1", *words)
    words = (*words, f"resume={tmp_path / 'half' / 'checkpoints'}", "validation.every=1", "max_steps=3")
    resumed = inside(algorithm, tmp_path / "rest", *words)
    assert {tag: {step: points[step] for step in (2, 3)} for tag, points in through.items()} == resumed
    assert (
        f"Resumed from {tmp_path / 'half' / 'checkpoints' / 'step_1'} at step 1\n" in capsys.readouterr().out
    )


@pytest.mark.parametrize("part", ["policy", "optimizer", "sampler", "dataloader", "minibatches"])
def test_a_part_that_is_not_restored_shows_in_the_numbers(part: str, saved: Path, tmp_path: Path) -> None:
    words = (*LORA, "max_steps=3", f"resume={saved / 'step_1'}")
    sound = inside("grpo", tmp_path / "sound", *words)
    broken = inside("grpo", tmp_path / "broken", *words, f"fault.not_restored={part}")
    assert sound["train/loss"].keys() == broken["train/loss"].keys() == {2, 3}
    assert sound["train/loss"] != broken["train/loss"]


def test_auto_goes_on_from_the_newest_and_begins_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("resume=auto", "checkpoint.every=2", f"checkpoint.dir={tmp_path / 'saved'}")
    assert set(inside("grpo", tmp_path / "one", *words)["train/loss"]) == {1, 2}
    assert f"No checkpoint in {tmp_path / 'saved'}: starting from scratch" in capsys.readouterr().out
    assert set(inside("grpo", tmp_path / "two", *words, "max_steps=3")["train/loss"]) == {3}
    out = capsys.readouterr().out
    assert f"Resumed from {tmp_path / 'saved' / 'step_2'} at step 2" in out
    assert f"Saved checkpoint {tmp_path / 'saved' / 'step_3'} at step 3" in out


def test_a_save_that_is_cut_off_leaves_the_one_before(tmp_path: Path) -> None:
    root, parts = tmp_path / "root", {"a": TorchRandom(torch.Generator()), "b": _Unwritable()}
    store.save(root, 1, {"a": parts["a"]}, {}, keep=0)
    with pytest.raises(OSError, match="full"):
        store.save(root, 2, parts, {}, keep=0)
    config = RunConfig(resume="auto", checkpoint=resolve([f"checkpoint.dir={root}"]).checkpoint)
    assert find.find(config) == root / "step_1"


class _Unwritable:
    def state_dict(self) -> dict[str, object]:
        raise OSError("the disk is full")

    def load_state_dict(self, state: dict[str, object]) -> None:
        raise AssertionError


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (8, 9, 10, 11):
        store.save(tmp_path, step, {"a": TorchRandom(torch.Generator())}, {}, keep=2)
    assert sorted(path.name for path in tmp_path.glob("step_*")) == ["step_10", "step_11"]
    assert (tmp_path / find.TRACKER).read_text().strip() == "11"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: (folder / "optimizer.pt").unlink(), r"optimizer\.pt.*missing"),
        (lambda folder: (folder / "policy.pt").write_bytes(b"no"), r"policy\.pt.*digest"),
        (lambda folder: (folder / "checkpoint.json").write_text("{"), r"checkpoint\.json"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_nothing_is_loaded(change, named, tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(1)
    parts = {"policy": TorchRandom(draw), "optimizer": TorchRandom(torch.Generator())}
    folder = store.save(tmp_path, 3, parts, {}, keep=0)
    change(folder)
    draw.manual_seed(2)
    before = draw.get_state()
    with pytest.raises(ConfigError, match=named):
        store.restore(folder, parts, {})
    assert torch.equal(draw.get_state(), before)


@pytest.mark.parametrize("word", ["lora.rank=4", "lora.alpha=1", "tiny.init_std=0.5", "lora.rank=0"])
def test_another_kind_of_run_is_refused(word: str, saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=word.partition("=")[0].replace(".", r"\.")):
        inside("grpo", tmp_path / "run", *LORA, word, f"resume={saved}")


def test_a_place_without_a_checkpoint_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        resolve([f"resume={tmp_path / 'nowhere'}"])
    with pytest.raises(ConfigError, match="holds no checkpoint"):
        resolve([f"resume={tmp_path}"])
    (tmp_path / find.TRACKER).write_text("7\n")
    with pytest.raises(ConfigError, match="'7'"):
        resolve([f"resume={tmp_path}"])


def test_a_random_state_survives_the_file(tmp_path: Path) -> None:
    import random

    draw = random.Random(5)
    folder = store.save(tmp_path, 1, {"draw": PythonRandom(draw)}, {}, keep=0)
    expected = [draw.random() for _ in range(3)]
    store.restore(folder, {"draw": PythonRandom(draw)}, {})
    assert [draw.random() for _ in range(3)] == expected
