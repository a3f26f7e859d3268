"""Configurations composed and overridden as the stacks do it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proveout.domain.config import hydra, inherit
from proveout.domain.config.interpolate import ABSENT, Unresolved, lookup, raw
from proveout.domain.config.overrides import Override, Problem, apply, keys, parse
from proveout.domain.config.values import OverrideValueError, parse_value
from proveout.domain.errors import UsageError
from proveout.domain.tree import Tree


def tree(tmp_path: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(tmp_path)


def test_the_last_parent_wins_and_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    files = tree(
        tmp_path,
        {
            "c/top.yaml": "defaults: [one.yaml, sub/two.yaml]\nown: 1\n",
            "c/one.yaml": "a: 1\nb: {x: 1, y: 1}\n",
            "c/sub/two.yaml": "defaults: ../base.yaml\nb: {y: 2}\n",
            "c/base.yaml": "a: 0\nb: {z: 9}\n",
        },
    )
    assert inherit.load(files, "c/top.yaml") == {"a": 0, "b": {"x": 1, "y": 2, "z": 9}, "own": 1}


def test_a_section_marked_override_replaces_and_missing_hides_nothing(tmp_path: Path) -> None:
    files = tree(
        tmp_path,
        {
            "top.yaml": "defaults: base.yaml\nb: {_override_: true, only: 1}\nm: ???\n",
            "base.yaml": "b: {x: 1}\nm: 5\nn: ???\n",
        },
    )
    assert inherit.load(files, "top.yaml") == {"b": {"only": 1}, "m": 5, "n": "???"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"top.yaml": "defaults: gone.yaml\n"}, "does not exist: gone.yaml"),
        ({"top.yaml": "defaults: top.yaml\n"}, "inherits from itself"),
        ({"top.yaml": "a: [1\n"}, "not valid YAML"),
        ({"top.yaml": "- 1\n"}, "no mapping"),
        ({}, "cannot be read"),
    ],
)
def test_a_broken_configuration_says_which_file(files: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        inherit.load(tree(tmp_path, files), "top.yaml")
    assert "top.yaml" in caught.value.where


BASE = {"a": {"b": 1, "flag": True, "none": None, "list": [1, 2]}, "d": {"e": "${a.b}"}}


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("a.b=2", "a.b", 2),
        ("a.b=1e-3", "a.b", 0.001),
        ("a.b=null", "a.b", None),
        ("a.flag=False", "a.flag", False),
        ("a.b='x, y'", "a.b", "x, y"),
        ("a.list=[a,{k: 1}]", "a.list", ["a", {"k": 1}]),
        ("a.list.0=7", "a.list", [7, 2]),
        ("+a.new=1", "a.new", 1),
        ("+a.none=1", "a.none", 1),
        ("++a.b=3", "a.b", 3),
        ("++x.y.z=3", "x.y.z", 3),
        ("a.b=${d.e}", "a.b", "${d.e}"),
        ("a.b=/p/q:/r", "a.b", "/p/q:/r"),
    ],
)
def test_overrides_that_hydra_takes_are_applied(word: str, key: str, value: object) -> None:
    config, problems = apply(BASE, [word])
    assert problems == []
    assert raw(config, key) == value
    assert raw(BASE, "a.b") == 1


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("a.c=1", "unknown"),
        ("x=1", "unknown"),
        ("a.none.deep=1", "unknown"),
        ("~a.gone", "unknown"),
        ("~a.none", "unknown"),
        ("~a.b=9", "mismatch"),
        ("+a.b=2", "exists"),
        ("a=[1]", "mismatch"),
        ("a.flag=maybe", "type"),
        ("a.b=1,2", "syntax"),
        ("a.b=[1", "syntax"),
        ("a.b=it's", "syntax"),
        ("a.b=x=y", "syntax"),
        ("a.b=f(x)", "syntax"),
        ("a.b", "syntax"),
        ("=1", "syntax"),
        ("a..b=1", "syntax"),
    ],
)
def test_overrides_that_hydra_refuses_are_problems(word: str, kind: str) -> None:
    assert [problem.kind for problem in apply(BASE, [word])[1]] == [kind]


def test_an_unknown_key_names_the_nearest_one() -> None:
    assert (
        "'policy.megatron_cfg'"
        in apply({"policy": {"megatron_cfg": {"tp": 1}}}, ["policy.megatron.tp=2"])[1][0].what
    )
    assert "'model_engine'" in apply({"a": {"x": 1}, "model_engine": 1}, ["a.model_engine=2"])[1][0].what


def test_places_that_share_a_node_do_not_change_together() -> None:
    shared: dict[str, object] = {}
    config, problems = apply({"one": {"s": shared}, "two": {"s": shared}}, ["+one.s.k=1", "+two.s.k=2"])
    assert problems == []
    assert config == {"one": {"s": {"k": 1}}, "two": {"s": {"k": 2}}}


@given(st.text(max_size=40))
def test_any_word_parses_or_is_a_problem(word: str) -> None:
    assert isinstance(parse(word), Override | Problem)
    config, problems = apply(BASE, [word])
    assert problems or parse(word)
    assert isinstance(config, dict)


_SCALARS = st.one_of(
    st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
)
_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: name not in ("null", "true", "false", "inf", "nan")
)
_VALUES = st.recursive(
    st.one_of(_SCALARS, _NAMES),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)),
    max_leaves=8,
)


def written(value: object) -> str:
    if isinstance(value, list):
        return "[" + ",".join(written(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{written(item)}" for key, item in value.items()) + "}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@given(_VALUES)
def test_a_value_reads_back_as_it_was_written(value: object) -> None:
    assert parse_value(written(value)) == value


def test_references_are_followed() -> None:
    config = {
        "p": {
            "n": 4,
            "m": "${p.n}",
            "rel": "${.n}",
            "text": "a-${p.n}",
            "env": "${oc.env:HOME}",
            "up": "${q}",
        },
        "q": {"deep": 3, "prod": "${mul:${p.n}, ${.deep}}"},
        "sel": "${oc.select:p.gone,7}",
        "loop": "${loop}",
    }
    assert [lookup(config, f"p.{key}") for key in ("m", "rel", "text")] == [4, 4, "a-4"]
    assert lookup(config, "p.up.deep") == 3
    assert lookup(config, "q.prod") == 12
    assert lookup(config, "sel") == 7
    assert isinstance(lookup(config, "p.env"), Unresolved)
    assert isinstance(lookup(config, "loop"), Unresolved)
    assert lookup(config, "p.gone") is ABSENT


def test_numbers_with_exponents_are_numbers(tmp_path: Path) -> None:
    assert tree(tmp_path, {"a.yaml": "lr: 1e-6\nname: e5\n"}).yaml("a.yaml") == {"lr": 1e-6, "name": "e5"}


def test_a_defaults_list_composes_groups_packages_and_overrides(verl_tree: Path) -> None:
    config, problems = hydra.compose(
        Tree(verl_tree), "verl/trainer/config", "ppo_megatron_trainer", ["trainer.nnodes=2"]
    )
    assert problems == []
    actor = config["actor_rollout_ref"]["actor"]
    assert (actor["strategy"], actor["megatron"]["use_mbridge"], actor["optim"]["lr"]) == (
        "megatron",
        True,
        1e-6,
    )
    assert config["critic"]["megatron"]["override_transformer_config"] == {"attention_backend": "flash"}
    assert config["model_engine"] == "megatron"
    assert config["trainer"]["nnodes"] == 2
    assert "hydra" not in config


def test_a_choice_on_the_command_line_picks_another_file(verl_tree: Path) -> None:
    tree_ = Tree(verl_tree)
    config, problems = hydra.compose(tree_, "verl/trainer/config", "ppo_trainer", ["model_engine=megatron"])
    assert problems == []
    assert config["actor_rollout_ref"]["actor"]["strategy"] == "megatron"
    plain, _ = hydra.compose(tree_, "verl/trainer/config", "ppo_trainer", [])
    assert plain["actor_rollout_ref"]["actor"]["strategy"] == "fsdp"


def test_an_override_below_a_reference_needs_both_plus_signs(verl_tree: Path) -> None:
    key = "actor_rollout_ref.ref.megatron.override_transformer_config.fusion"
    tree_ = Tree(verl_tree)
    _, plain = hydra.compose(tree_, "verl/trainer/config", "ppo_megatron_trainer", [f"{key}=False"])
    config, forced = hydra.compose(tree_, "verl/trainer/config", "ppo_megatron_trainer", [f"++{key}=False"])
    assert [problem.kind for problem in plain] == ["unknown"]
    assert forced == [] and raw(config, key) is False


def test_a_defaults_list_that_names_no_file_is_an_error(verl_tree: Path) -> None:
    (verl_tree / "verl/trainer/config/model_engine/megatron.yaml").unlink()
    with pytest.raises(UsageError, match="cannot be read") as caught:
        hydra.compose(Tree(verl_tree), "verl/trainer/config", "ppo_megatron_trainer", [])
    assert caught.value.where.endswith("model_engine/megatron.yaml")


def test_keys_are_dotted_leaves() -> None:
    assert list(keys({"a": {"b": 1, "c": {}}, "d": 2})) == ["a.b", "a.c", "d"]


@pytest.mark.parametrize("text", ["[" * 80 + "]" * 80, "{a}", "'x", "a;b"])
def test_values_that_are_none_say_so(text: str) -> None:
    with pytest.raises(OverrideValueError):
        parse_value(text)
