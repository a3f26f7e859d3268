"""Which levels a changed path asks for: one case for each row of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from proveout.domain.errors import UsageError
from proveout.plan.change import Change, ChangedFile, from_paths, parse_patch
from proveout.plan.levels import as_requests, family_model, read_change
from proveout.plan.rules import path_rules, rule_for, symbol_rules

P = "src/megatron/bridge/"
CONVERSION = P + "models/conversion/"
ROWS = [
    ([CONVERSION + name for name in ("auto_bridge.py", "model_bridge.py", "param_mapping.py", "mapping_registry.py")],
     [0, 1, 2], [0, 1]),
    ([CONVERSION + "peft_bridge.py", P + "peft"], [1, 6], [0, 1, 5]),
    ([CONVERSION + "quant_bridge.py", CONVERSION + "quantization_utils.py", CONVERSION + "modelopt_utils.py",
      P + "training/post_training"], [5], [4]),
    ([P + f"models/{name}.py" for name in ("model_provider", "gpt_provider", "mla_provider", "transformer_config",
                                           "config")] + [P + "models/gpt", P + "models/common"], [0, 4], [0, 2]),
    ([P + "models/hybrid", P + "models/mamba"], [0, 4, 5], [0, 2, 4]),
    ([P + "models/hf_pretrained"], [0, 2], [0]),
    ([P + "models/llama"], [0], [0]),
    ([P + "models/seeing", P + "models/hearing", P + "models/experts"], [0, 5], [0, 4]),
    ([P + "training/checkpointing.py", P + "training/model_load_save.py"], [1], [1]),
    ([P + f"training/{name}.py" for name in ("setup", "initialize", "state", "config")], [0, 4], [0, 2]),
    ([P + f"training/{name}.py" for name in ("optim", "losses", "mixed_precision", "utils/train_utils")],
     [0, 6], [0, 5]),
    ([P + f"training/{name}.py" for name in ("comm_overlap", "flex_dispatcher_backend", "utils/pg_utils")],
     [4], [2]),
    ([P + "training/fsdp_compat.py"], [], [3]),
    ([P + "training/utils/packed_seq_utils.py", P + "data/packing"], [0, 4], [0]),
    ([P + "utils/cuda_graph.py"], [0, 3], [0]),
    ([P + "data/loaders.py", P + "recipes", P + "perf_recipes", P + "diffusion", P + "inference"], [], []),
]  # fmt: skip
CASES = [(path, nemo, verl) for paths, nemo, verl in ROWS for path in paths]


def asked(change: Change, checkouts: dict[str, str], loop: str) -> list[int]:
    requests = as_requests(read_change(change, checkouts).asks)
    return sorted({item.level for item in requests if item.loop == loop})


@pytest.mark.parametrize(("path", "nemo_levels", "verl_levels"), CASES, ids=[case[0] for case in CASES])
def test_a_path_asks_for_the_levels_of_its_row(
    path: str, nemo_levels: list[int], verl_levels: list[int], checkouts: dict[str, str]
) -> None:
    change = Change(files=from_paths([path], checkouts), source="")
    assert asked(change, checkouts, "nemo-rl") == nemo_levels
    assert asked(change, checkouts, "verl") == verl_levels


def test_every_request_gives_its_reason_and_its_paths(checkouts: dict[str, str]) -> None:
    paths = [P + "training/optim.py", P + "peft/lora.py"]
    requests = as_requests(read_change(Change(files=from_paths(paths, checkouts), source=""), checkouts).asks)
    six = next(item for item in requests if (item.loop, item.level) == ("nemo-rl", 6))
    assert set(six.paths) == set(paths)
    assert "optimizer" in six.reason and "LoRA" in six.reason


@pytest.mark.parametrize(
    ("line", "loop", "level", "variant"),
    [
        ("        target_modules = ['linear_qkv']", "nemo-rl", 1, "lora"),
        ("            QKVMapping(megatron_param='x', q='y'),", "nemo-rl", 2, "default"),
        ("        self.fp8_recipe = 'tensorwise'", "nemo-rl", 5, "fp8"),
        ("    def finalize(self) -> None:", "verl", 2, "default"),
        ("        if self.context_parallel_size > 1:", "nemo-rl", 4, "default"),
        ("        self.expert_model_parallel_size = 8", "verl", 2, "ep"),
        ("        mtp_num_layers = 1", "nemo-rl", 5, "eagle"),
        ("        p.requires_grad = False", "verl", 5, "default"),
    ],
)
def test_a_changed_line_asks_for_more_than_its_path(
    line: str, loop: str, level: int, variant: str, checkouts: dict[str, str]
) -> None:
    file = ChangedFile(role="bridge", path=P + "models/llama/llama_bridge.py", lines=(line,))
    found = as_requests(read_change(Change(files=(file,), source=""), checkouts).asks)
    assert any((item.loop, item.level, item.variant) == (loop, level, variant) for item in found)
    commented = ChangedFile(role="bridge", path=file.path, lines=("#" + line,))
    quiet = as_requests(read_change(Change(files=(commented,), source=""), checkouts).asks)
    assert {item.level for item in quiet} == {0}


def test_a_new_family_asks_for_import_and_export_too(checkouts: dict[str, str], bridge: Path) -> None:
    folder = bridge / P / "models/brandnew"
    folder.mkdir(parents=True)
    (folder / "brandnew_bridge.py").write_text(
        'register = object\n@registry.register_bridge(source="BrandNewForCausalLM", target=GPTModel)\nclass B: ...\n'
    )
    file = ChangedFile(role="bridge", path=P + "models/brandnew/brandnew_bridge.py", status="added")
    reading = read_change(Change(files=(file,), source=""), checkouts)
    assert reading.families[0].new
    assert reading.families[0].architectures == ("BrandNewForCausalLM",)
    assert {(ask.loop, ask.level) for ask in reading.asks} == {
        ("nemo-rl", 0), ("nemo-rl", 2), ("verl", 0), ("verl", 1)}  # fmt: skip
    assert any("dummy config" in text for text in reading.limitations)


def test_the_model_is_the_smallest_checkpoint_of_the_one_family_that_changed(
    checkouts: dict[str, str],
) -> None:
    one = read_change(Change(files=from_paths([P + "models/llama"], checkouts), source=""), checkouts)
    assert family_model(one.families) == "meta-llama/Llama-3.2-1B"
    seeing = read_change(Change(files=from_paths([P + "models/seeing"], checkouts), source=""), checkouts)
    assert family_model(seeing.families) is None
    experts = read_change(Change(files=from_paths([P + "models/experts"], checkouts), source=""), checkouts)
    assert family_model(experts.families) is None
    assert any("6.9B" in text for text in experts.limitations)


def test_the_whole_checkout_asks_for_all_but_the_optional_levels(checkouts: dict[str, str]) -> None:
    change = Change(files=(), source="", whole=("bridge",))
    assert asked(change, checkouts, "nemo-rl") == [0, 1, 2, 4, 5, 6]
    assert asked(change, checkouts, "verl") == [0, 1, 2, 4, 5]


def test_rules_are_well_formed() -> None:
    from proveout import loops

    for role in ("bridge", "mcore", "nemo-rl", "verl"):
        rules = path_rules(role)
        assert len({rule.id for rule in rules}) == len(rules)
        for rule in (*rules, *symbol_rules()):
            for loop, levels in rule.levels.items():
                assert set(levels) <= set(loops.get(loop).levels)
            for loop, by_level in rule.variants.items():
                assert set(by_level) <= set(rule.levels[loop])


def test_variants_that_rules_name_exist(checkouts: dict[str, str]) -> None:
    from proveout.loops.nemo_rl.variants import choose as of_nemo
    from proveout.loops.verl.variants import choose as of_verl

    for rule in (*path_rules("bridge"), *path_rules("mcore"), *symbol_rules()):
        for loop, by_level in rule.variants.items():
            for level, names in by_level.items():
                for name in names:
                    assert (of_nemo if loop == "nemo-rl" else of_verl)(level, name)


def test_a_path_that_no_rule_names_inside_the_package_asks_for_the_smoke_level() -> None:
    rule = rule_for("bridge", P + "training/tokenizers/tokenizer.py")
    assert rule is not None and rule.levels == {"nemo-rl": [0], "verl": [0]}
    own = rule_for("bridge", P + "training/pretrain.py")
    assert own is not None and own.levels == {}


@pytest.mark.parametrize("path", ["/etc/passwd", "../elsewhere.py", "no/such/thing.py", "", "a\0b"])
def test_a_path_outside_the_checkouts_is_refused(path: str, checkouts: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        from_paths([path], checkouts)


def test_a_path_in_two_checkouts_must_be_absolute(checkouts: dict[str, str], nemo: Path) -> None:
    for root in (checkouts["verl"], checkouts["nemo-rl"]):
        Path(root, "setup.py").write_text("")
    with pytest.raises(UsageError, match="more than one"):
        from_paths(["setup.py"], checkouts)
    assert from_paths([str(nemo / "setup.py")], checkouts)[0].role == "nemo-rl"


def test_patches_are_read_with_their_lines() -> None:
    patch = (
        b"diff --git a/src/a.py b/src/a.py\nindex 1..2 100644\n--- a/src/a.py\n+++ b/src/a.py\n"
        b"@@ -1,2 +1,2 @@\n ctx\n--- old\n+-- new\n"
        b"diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        b'diff --git "a/caf\\303\\251.py" "b/caf\\303\\251.py"\nnew file mode 100644\n--- /dev/null\n'
        b'+++ "b/caf\\303\\251.py"\n@@ -0,0 +1 @@\n+y\n'
        b"diff --git a/old.py b/new.py\nsimilarity index 100%\nrename from old.py\nrename to new.py\n"
    )
    files = list(parse_patch("bridge", patch, "p"))
    assert [(file.path, file.status) for file in files] == [
        ("src/a.py", "modified"), ("gone.py", "deleted"), ("café.py", "added"), ("new.py", "renamed")]  # fmt: skip
    assert files[0].lines == ("-- old", "-- new")


def test_plain_unified_diffs_are_read() -> None:
    patch = b"--- a/x.py\t2020\n+++ b/x.py\t2020\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/y.py\n@@ -0,0 +1 @@\n+c\n"
    assert [(file.path, file.lines) for file in parse_patch("bridge", patch, "p")] == [
        ("x.py", ("a", "b")), ("y.py", ("c",))]  # fmt: skip
