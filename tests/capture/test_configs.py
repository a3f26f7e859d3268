"""The resolved configuration, read from what the loops print. The data are excerpts of consoles of real runs."""

from __future__ import annotations

import math
import pprint
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proveout.capture.config import read_config
from proveout.capture.configs.printed import literal
from proveout.domain.step import Source

DATA = Path(__file__).parent / "data"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=90)
TREES = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3)),
    max_size=6,
)


def read(kind: str, path: Path):
    config, findings = read_config(Source(format=kind, path=path.name), path.parent)
    return config, [finding.what for finding in findings]


def test_nemo_rl_prints_an_object_on_one_line() -> None:
    config, findings = read("nemo-rl-console", DATA / "nemo_rl_config.log")
    assert findings == [] and config is not None
    assert config["policy.megatron_cfg.enabled"] is True
    assert config["policy.generation.colocated.enabled"] is True
    assert config["grpo.max_num_steps"] == 2
    assert config["reward_penalties.token_ids"] is None


def test_verl_prints_a_dict_over_many_lines_behind_a_ray_prefix() -> None:
    config, findings = read("verl-console", DATA / "verl_config.log")
    assert findings == [] and config is not None
    assert config["actor_rollout_ref.actor.megatron.vanilla_mbridge"] is False
    assert config["actor_rollout_ref.actor.megatron.use_mbridge"] is True
    assert config["trainer.resume_mode"] == "auto"
    assert config["reward.reward_model.enable"] is False


def test_lines_of_other_workers_in_between_are_left_out(tmp_path: Path) -> None:
    lines = (DATA / "verl_config.log").read_text().split("\n")
    noise = "\x1b[36m(WorkerDict pid=9)\x1b[0m 'vanilla_mbridge': True, {"
    (tmp_path / "run.log").write_text("\n".join(part for line in lines for part in (line, noise)))
    config, _ = read("verl-console", tmp_path / "run.log")
    assert config is not None and config["actor_rollout_ref.actor.megatron.vanilla_mbridge"] is False


def test_what_the_same_worker_says_on_its_standard_error_in_between_is_left_out(tmp_path: Path) -> None:
    """Ray forwards both streams of a worker as they come; seen in a real run, a line cut in two with it."""
    lines = (DATA / "verl_config.log").read_text().split("\n")
    at = next(number for number, line in enumerate(lines) if "vanilla_mbridge" in line)
    mark = lines[at][: lines[at].index(")\x1b[0m ") + 6]
    noise = [
        "INFO:2026-11-30 06:16:53,170:made, size: 0256",
        "/x/y.py:3: UserWarning: (old",
        "  warnings.warn(",
    ]
    key, value = lines[at].split(": ", 1)
    lines[at : at + 1] = [key, *(mark + text for text in (*noise, ": ", "", value[:-1], ","))]
    (tmp_path / "run.log").write_text("\n".join(lines))
    config, findings = read("verl-console", tmp_path / "run.log")
    assert findings == [] and config is not None
    assert config["actor_rollout_ref.actor.megatron.vanilla_mbridge"] is False


def test_a_line_with_an_object_stays_where_others_are_left_out(tmp_path: Path) -> None:
    lines = [
        "{'actor_rollout_ref': {'a': 1},",
        "INFO: made (",
        " 'p': PosixPath('x'),",
        " 'trainer': {'b': 2}}",
    ]
    (tmp_path / "run.log").write_text("\n".join(lines))
    config, _ = read("verl-console", tmp_path / "run.log")
    assert config == {"actor_rollout_ref.a": 1, "p": "x", "trainer.b": 2}


def test_the_last_of_several_runs_counts_and_a_prefix_is_taken_off(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(
        "[one] Final config:\n[one] {'policy': {'megatron_cfg': {'enabled': False}}}\n"
        "[two] Final config:\n[two] {'policy': {'megatron_cfg': {'enabled': True},\n[one] late\n[two]  'x': 'a'\n"
        "[two]  'b'}}\n"
    )
    config, _ = read("nemo-rl-console", tmp_path / "run.log")
    assert config == {"policy.megatron_cfg.enabled": True, "policy.x": "ab"}


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("nemo-rl-console", "nothing\n", "no line 'Final config:'"),
        ("nemo-rl-console", "Final config:\n{'a': 1,\n", "does not end"),
        ("nemo-rl-console", "Final config:\n{'a' 1}\n", "no printed value"),
        ("verl-console", "{'actor_rollout_ref': {}}\n", "no printed dict"),
        ("verl-console", "", "no printed dict"),
    ],
)
def test_what_cannot_be_read_says_why(kind: str, text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(text)
    config, findings = read(kind, tmp_path / "run.log")
    assert config is None and why in findings[0]


def test_nothing_that_is_printed_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert literal(f"{{'a': open({str(mark)!r}, 'w')}}")["a"].startswith("open(")
    assert not mark.exists()


def test_objects_enums_and_numbers() -> None:
    found = literal(
        "C(kind=<Kind.A: 'a'>, low=-1, high=inf, path=PosixPath('/x'), none=None, t=(1, 2), s=Empty())"
    )
    assert found == {
        "kind": "<Kind.A: 'a'>", "low": -1, "high": math.inf, "path": "/x", "none": None, "t": [1, 2],
        "s": {}}  # fmt: skip


@given(TREES)
def test_what_pprint_prints_is_read_back(tree: dict[str, object]) -> None:
    assert literal(pprint.pformat(tree)) == tree
