"""The documentation says what is true now: generated pages are current, links lead somewhere, commands exist."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml

from proveout.cli import main
from proveout.cli.commands import COMMANDS
from proveout.domain.layout import RunLayout

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CALL = re.compile(r"proveout ([a-z]+)((?:[ \t]+[^\s|#`]+)*)")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["rules.md", "levels.md", "faults.md", "benchmarks.md"])
def test_generated_pages_are_current(generate: ModuleType, name: str) -> None:
    assert set(generate.PAGES) == {"rules.md", "levels.md", "faults.md", "benchmarks.md"}
    assert (DOCS / name).read_text() == generate.page(name), "run python docs/generate.py"


def test_every_rule_and_level_is_on_its_page(generate: ModuleType) -> None:
    from proveout import loops
    from proveout.triage.catalog import RULES_DIR, parse_rules

    ids = [rule.id for file in RULES_DIR.glob("*.yaml") for rule in parse_rules(file.read_text(), file.name)]
    text = generate.page("rules.md")
    assert [one for one in ids if f"`{one}`" not in text] == []
    levels = generate.page("levels.md")
    for name in loops.LOOPS:
        for number in loops.get(name).levels:
            assert f"### {name} level {number}: " in levels


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        assert other.is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", other.read_text(), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target


def test_every_page_of_the_navigation_is_there_and_every_page_is_reached() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    assert yaml.safe_load(text)["strict"] is True
    named = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    there = {str(page.relative_to(DOCS)) for page in PAGES if page.parent.name != "benchmarks"}
    assert named == there


def test_the_documentation_tools_are_pinned() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert all("==" in requirement for requirement in extras["docs"])


def options_of(command: click.Command) -> set[str]:
    return {word for param in command.params for word in (*param.opts, *param.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_commands_and_options_that_a_page_names_exist(page: Path) -> None:
    blocks = re.findall(r"^    (proveout .*)$|`(proveout [^`]*)`", page.read_text(), re.MULTILINE)
    for line in (first or second for first, second in blocks):
        found = CALL.match(line)
        if found is None:
            continue
        name, rest = found[1], found[2].replace("[--]", "--").replace("[-- ", "-- ").split()
        assert name in COMMANDS, line
        command = main.root.get_command(click.Context(main.root), name)
        assert command is not None
        if isinstance(command, click.Group) and rest and not rest[0].startswith(("-", "[")):
            command = command.get_command(click.Context(command), rest[0])
            assert command is not None, line
        rest = rest[: rest.index("--")] if "--" in rest else rest
        words = {word.partition("=")[0].strip("[]") for word in rest if word.startswith(("--", "[--"))}
        assert words <= options_of(command), line


def test_the_architecture_page_names_the_files_of_a_run_directory() -> None:
    text = (DOCS / "architecture.md").read_text()
    layout = RunLayout(Path("run"))
    for path in (layout.plan, layout.checkouts, layout.preflight, layout.journal):
        assert path.name in text
