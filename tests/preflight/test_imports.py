"""The import proof, with real interpreters: which copy would the worker import?"""

from __future__ import annotations

from pathlib import Path

from tests.preflight import trees
from tests.preflight.conftest import Find, make_venv

from proveout.domain.finding import Severity
from proveout.domain.preflight import Worker
from proveout.domain.step import Command, Coverage, Step
from proveout.domain.verdict import Verdict

WRAPPER = 'set -e\nexport PYTHONPATH="{prefix}${{PYTHONPATH:+:${{PYTHONPATH}}}}"\npython3 -m verl\n'


def site_packages(python: str) -> Path:
    (place,) = (Path(python).parents[1] / "lib").glob("python*/site-packages")
    return place


def test_two_environments_are_told_apart(find: Find, tmp_path: Path) -> None:
    """One worker's environment has the checkout, the other an installed copy: only the other is named."""
    checkout = trees.bridge(tmp_path / "bridge")
    good, bad = make_venv(tmp_path / "good"), make_venv(tmp_path / "bad")
    (site_packages(good) / "editable.pth").write_text(trees.path_of(checkout).replace(":", "\n"))
    for module in ("megatron.bridge", "megatron.core"):
        trees.package(site_packages(bad), module)
    named = tuple(
        Worker(name=name, argv=(python,), loop="nemo-rl") for name, python in (("A", good), ("B", bad))
    )

    findings = find("imports", loops=("nemo-rl",), checkouts={"bridge": checkout}, workers=named)

    other, core = findings
    assert other.id == "preflight.imports.other-copy" and other.decides is Verdict.BLOCKED
    assert (
        other.what.startswith("B would import megatron.bridge from") and str(tmp_path / "bad") in other.what
    )
    assert str(site_packages(bad)) in other.evidence[0].text
    assert f"PYTHONPATH={trees.path_of(checkout)}" in other.remedy
    assert core.id == "preflight.imports.mcore-other" and core.severity is Severity.WARNING


def test_pythonpath_of_the_step_decides(find: Find, tmp_path: Path, bare_python: str) -> None:
    checkout, other = trees.bridge(tmp_path / "bridge"), trees.bridge(tmp_path / "other")
    worker = (Worker(name="W", argv=(bare_python,), loop="nemo-rl"),)
    fields = {"loops": (), "checkouts": {"bridge": checkout}, "workers": worker}

    def step(path: str) -> tuple[Step, ...]:
        command = Command(argv=("uv", "run"), env={"PYTHONPATH": path})
        return (
            Step(
                id="s", coverage=Coverage(loop="nemo-rl", level=0), deliverable="", claim="", command=command
            ),
        )

    assert find("imports", steps=step(trees.path_of(checkout)), **fields) == ()
    wrong = find("imports", steps=step(f"{trees.path_of(other)}:{trees.path_of(checkout)}"), **fields)
    assert [finding.id for finding in wrong] == [
        "preflight.imports.other-copy",
        "preflight.imports.mcore-other",
    ]
    (first, second) = find("imports", steps=step(""), **fields)
    assert "cannot import megatron.bridge" in first.what and "cannot import megatron.core" in second.what


def test_an_uninitialised_submodule_falls_back_to_another_core(
    find: Find, tmp_path: Path, bare_python: str
) -> None:
    checkout = trees.bridge(tmp_path / "bridge", mcore=False)
    trees.package(tmp_path / "installed", "megatron.core")
    path = {"PYTHONPATH": f"{checkout}/src:{tmp_path / 'installed'}"}
    worker = (Worker(name="W", argv=(bare_python,), loop="nemo-rl", env=path),)
    (finding,) = find("imports", loops=("nemo-rl",), checkouts={"bridge": checkout}, workers=worker)
    assert finding.id == "preflight.imports.mcore-fallback" and str(tmp_path / "installed") in finding.what
    alone = (Worker(name="W", argv=(bare_python,), loop="nemo-rl", env={"PYTHONPATH": f"{checkout}/src"}),)
    (absent,) = find("imports", loops=("nemo-rl",), checkouts={"bridge": checkout}, workers=alone)
    assert absent.decides is Verdict.BLOCKED and "--mcore" in absent.remedy
    named = {"bridge": checkout, "mcore": str(tmp_path / "installed")}
    assert find("imports", loops=("nemo-rl",), checkouts=named, workers=worker) == ()


def test_a_named_core_that_is_not_imported_blocks(find: Find, tmp_path: Path, bare_python: str) -> None:
    checkout = trees.bridge(tmp_path / "bridge")
    trees.package(tmp_path / "mcore", "megatron.core")
    worker = (
        Worker(name="W", argv=(bare_python,), loop="nemo-rl", env={"PYTHONPATH": trees.path_of(checkout)}),
    )
    named = {"bridge": checkout, "mcore": str(tmp_path / "mcore")}
    (finding,) = find("imports", loops=("nemo-rl",), checkouts=named, workers=worker)
    assert finding.decides is Verdict.BLOCKED and finding.where.key == "megatron.core"


def test_a_regular_package_that_hides_the_checkout_is_caught(
    find: Find, tmp_path: Path, bare_python: str
) -> None:
    checkout = trees.bridge(tmp_path / "bridge")
    trees.package(tmp_path / "front", "megatron")
    path = {"PYTHONPATH": f"{tmp_path / 'front'}:{trees.path_of(checkout)}"}
    worker = (Worker(name="W", argv=(bare_python,), loop="nemo-rl", env=path),)
    first, *_ = find("imports", loops=("nemo-rl",), checkouts={"bridge": checkout}, workers=worker)
    assert first.id == "preflight.imports.absent" and first.decides is Verdict.BLOCKED


def test_a_hook_that_replaces_the_import_is_seen_by_a_real_import(
    find: Find, tmp_path: Path, bare_python: str
) -> None:
    checkout = trees.bridge(tmp_path / "bridge")
    hidden = trees.package(tmp_path / "hidden", "megatron.bridge")
    init = Path(checkout) / "src" / "megatron" / "bridge" / "__init__.py"
    init.write_text(f"__file__ = {str(hidden / '__init__.py')!r}\n")
    worker = (
        Worker(name="W", argv=(bare_python,), loop="nemo-rl", env={"PYTHONPATH": trees.path_of(checkout)}),
    )
    fields = {"loops": ("nemo-rl",), "checkouts": {"bridge": checkout}, "workers": worker}
    assert find("imports", **fields) == ()
    (finding,) = find("imports", settings={"probe.real_import": "yes"}, **fields)
    assert finding.id == "preflight.imports.import" and str(hidden) in finding.what


def test_nemo_rl_workers_are_found_by_its_own_rules(find: Find, tmp_path: Path) -> None:
    checkout = trees.bridge(tmp_path / "bridge")
    actor = "nemo_rl.models.policy.workers.megatron_policy_worker.MegatronPolicyWorker"
    make_venv(tmp_path / "venvs" / actor)
    make_venv(tmp_path / "venvs" / "nemo_rl.models.generation.vllm.vllm_worker.VllmWorker")
    fields = {"loops": ("nemo-rl",), "checkouts": {"bridge": checkout}}
    env = {"NEMO_RL_VENV_DIR": str(tmp_path / "venvs")}
    bridge, _ = find("imports", env=env, **fields)
    assert bridge.what.startswith("nemo-rl MegatronPolicyWorker cannot import megatron.bridge")
    assert find("imports", env={**env, "PYTHONPATH": trees.path_of(checkout)}, **fields) == ()
    (rebuilt,) = find(
        "imports",
        env={**env, "PYTHONPATH": trees.path_of(checkout), "NRL_FORCE_REBUILD_VENVS": "true"},
        **fields,
    )
    assert rebuilt.id == "preflight.imports.rebuild"


def test_an_environment_that_is_not_built_yet_is_said(find: Find, tmp_path: Path) -> None:
    checkouts = {"bridge": trees.bridge(tmp_path / "bridge"), "nemo-rl": str(tmp_path), "verl": str(tmp_path)}
    nemo, verl = find("imports", loops=("nemo-rl", "verl"), checkouts=checkouts)
    assert nemo.id == verl.id == "preflight.imports.nobody"
    assert nemo.where.file == str(tmp_path / "venvs") and verl.where.file == str(tmp_path / ".venv")


def test_what_verls_wrapper_puts_in_front_is_seen(find: Find, tmp_path: Path) -> None:
    """The copy that the wrapper puts first hides Bridge's own; without that copy the check is silent."""
    checkout, baked = trees.bridge(tmp_path / "bridge"), tmp_path / "baked"
    wrapper = tmp_path / "verl" / "tests" / "special_e2e" / "run_ppo_trainer_megatron.sh"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(WRAPPER.format(prefix=baked))
    fields = {
        "loops": ("verl",),
        "checkouts": {"bridge": checkout, "verl": str(tmp_path / "verl")},
        "env": {"VERL_USE_UV": "0", "PYTHONPATH": trees.path_of(checkout)},
    }
    assert find("imports", **fields) == ()
    trees.package(baked, "megatron.core")
    (finding,) = find("imports", **fields)
    assert finding.id == "preflight.imports.mcore-other" and str(baked) in finding.what


def test_the_probe_writes_nothing_into_a_checkout(find: Find, tmp_path: Path, bare_python: str) -> None:
    checkout = trees.bridge(tmp_path / "bridge")
    before = {path: path.read_bytes() for path in Path(checkout).rglob("*") if path.is_file()}
    worker = (
        Worker(name="W", argv=(bare_python,), loop="nemo-rl", env={"PYTHONPATH": trees.path_of(checkout)}),
    )
    fields = {"loops": ("nemo-rl",), "checkouts": {"bridge": checkout}, "workers": worker}
    assert find("imports", settings={"probe.real_import": "yes"}, **fields) == ()
    assert {path: path.read_bytes() for path in Path(checkout).rglob("*") if path.is_file()} == before
