"""Reports of a real failing run: written in every format, and without the secrets planted around it."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest
import xmlschema
from tests.conftest import Answer, call
from tests.report.browser import chromium, complaints

from proveout.domain.layout import RunLayout
from proveout.domain.report import Report
from proveout.report import FORMATS

pytestmark = pytest.mark.real

IN_ENVIRONMENT = "correct-horse-battery-staple"
IN_PATH = "hf_" + "PathPathPathPath1234"
IN_LOG = "ghp_" + "LogLogLogLogLogLogLog123"
IN_DIFF = "plain-words-in-a-configuration"
SECRETS = (IN_ENVIRONMENT, IN_PATH, IN_LOG, IN_DIFF)
PRINTS_A_SECRET = """
import os, sys
if "proveout_bench" in " ".join(sys.orig_argv):
    print("the service said", os.environ["MY_SERVICE_TOKEN"], flush=True)
"""


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path, dict[str, str]]:
    """A run whose loss is NaN at step 3, in a directory named by a token, whose worker prints a secret."""
    here = tmp_path_factory.mktemp("real") / IN_PATH
    site = here / "site"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(PRINTS_A_SECRET)
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH", ""))))
    env = {"MY_SERVICE_TOKEN": IN_ENVIRONMENT, "PYTHONPATH": path}
    answer = call("run", "--level", "0", "fault.nan_loss_at_step=3", cwd=here, env=env)
    (run,) = (here / ".proveout" / "runs").iterdir()
    return answer, run, env


def rendered(run: Path) -> list[Path]:
    layout = RunLayout(run)
    return [layout.report(suffix) for suffix, _ in FORMATS.values()]


def test_the_run_writes_every_format(failed: tuple[Answer, Path, dict[str, str]]) -> None:
    answer, run, _ = failed
    assert answer.status == 1, answer.out + answer.err
    assert all(file.stat().st_size > 200 for file in rendered(run))
    assert (run / "junit.xml").is_file()
    xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd")).validate(str(run / "junit.xml"))


def test_the_secret_was_really_printed_and_is_in_no_report(failed) -> None:
    answer, run, _ = failed
    (log,) = run.glob("attempts/*/run.log")
    assert IN_ENVIRONMENT in log.read_text()
    for text in (answer.out, *(file.read_text() for file in rendered(run))):
        assert not [secret for secret in SECRETS if secret in text]


@pytest.fixture(scope="module")
def against(failed: tuple[Answer, Path, dict[str, str]]) -> dict[str, str]:
    """Every format of the run against a copy of it with another configuration and a secret in its log."""
    _, run, env = failed
    other = run.with_name("20200101-000000-baseln")
    shutil.copytree(run, other)
    (config,) = other.glob("attempts/*/config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"service_api_key": IN_DIFF, "lr": 0.5}))
    (log,) = run.glob("attempts/*/run.log")
    lines = log.read_text().splitlines()
    (cause,) = [i for i, line in enumerate(lines) if "Loss: nan" in line]
    lines[cause - 1] = f"cloning with {IN_LOG} for ada@example.org <script>window.owned = 1</script>"
    log.write_text("\n".join(lines) + "\n")
    texts = {}
    for form in FORMATS:
        out = run.parent / form
        words = ("report", str(run), "--format", form, "--baseline", str(other), "--output", str(out))
        answer = call(*words, cwd=run.parent, env=env)
        assert (answer.status, answer.out) == (1, ""), answer.err
        texts[form] = out.read_text()
    return texts


def test_a_secret_in_log_and_diff_is_in_no_format(against: dict[str, str]) -> None:
    for form, text in against.items():
        assert not [secret for secret in (*SECRETS, "ada@example.org") if secret in text], form
    page = against["html"]
    assert "cloning with [redacted] for [e-mail]" in page
    assert "service_api_key" in page
    assert re.search(r"<del><code>0\.5</code></del>", page)


def test_the_model_holds_plots_phases_context_and_the_difference(failed, against: dict[str, str]) -> None:
    _, run, env = failed
    other = str(run.with_name("20200101-000000-baseln"))
    answer = call("report", str(run), "--json", "--no-redact", "--baseline", other, cwd=run.parent, env=env)
    found = answer.json
    known = {field.encode_name for field in msgspec.structs.fields(Report)}
    assert set(found) == known
    titles = {(plot["plot"], plot["role"]) for plot in found["plots"]}
    for title in ("Reward", "Loss", "Gradient norm", "Token probability error", "Refit", "Training step"):
        assert {(title, "candidate"), (title, "baseline")} <= titles
    marked = {plot["tag"]: plot["marked"] for plot in found["plots"] if plot["marked"]}
    assert marked == {"train/loss": [3], "train/grad_norm": [3]}
    (phases,) = found["timeline"].values()
    assert [phase["name"] for phase in phases][:2] == ["start-up", "set-up"]
    assert {"step 1", "step 2", "step 3"} <= {phase["of"] for phase in phases}
    assert all(a["end"] <= b["start"] + 1e-6 for a, b in itertools.pairwise(phases))
    (excerpt,) = found["excerpts"].values()
    assert "Loss: nan" in excerpt["lines"][excerpt["marked"] - excerpt["first"]]
    assert IN_LOG in "\n".join(excerpt["lines"]), "--no-redact shows the log as it is"
    assert {change["key"] for change in found["config_diff"]} == {"lr", "service_api_key"}


def test_its_page_opens_in_a_browser(against: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(against["html"])
    with chromium() as page:
        page.get(file.as_uri())
        assert complaints(page) == []
        assert page.execute_script("return window.owned") is None
        assert page.execute_script("return document.querySelectorAll('.plot path').length") >= 8
