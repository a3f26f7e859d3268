"""The HTML report in a real browser: it draws, it can be used from the keyboard, and nothing of a log runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from tests.report.browser import chromium, complaints, look
from tests.report.samples import AGAINST, BLOCKED, COMMAND, FAIL, HOSTILE, PASS

from proveout.domain.report import Report
from proveout.report import render

PAGES = {"pass": PASS, "fail": FAIL, "blocked": BLOCKED, "against": AGAINST, "hostile": HOSTILE}


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def show(browser: webdriver.Chrome, tmp_path: Path):
    def opened(report: Report) -> webdriver.Chrome:
        file = tmp_path / "report.html"
        file.write_text(render(report, "html"))
        look(browser, "light", 1200)
        browser.get(file.as_uri())
        return browser

    return opened


def find(browser: webdriver.Chrome, selector: str):
    return browser.find_elements(By.CSS_SELECTOR, selector)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_opens_without_a_complaint_and_shows_its_verdict(name: str, show) -> None:
    page = show(PAGES[name])
    assert complaints(page) == []
    assert find(page, "h1")[0].text.split()[-1] == PAGES[name].result.value
    assert page.title.startswith(PAGES[name].result.value)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_nothing_of_a_log_runs(name: str, show) -> None:
    page = show(PAGES[name])
    assert page.execute_script("return [window.owned, document.scripts.length]") == [None, 1]
    assert find(page, "img, iframe, object, embed, link, form") == []
    handlers = "return [...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).map(a => a.name)"
    assert not [n for n in page.execute_script(handlers) if n.startswith("on") or n == "style"]


def test_the_text_of_an_injection_is_shown_as_it_is(show) -> None:
    assert "<script>alert(1)</script>" in find(show(BLOCKED), ".log .marked code")[0].text


def test_the_policy_stops_a_script_that_reached_the_page(show) -> None:
    """The second wall: were the escaping broken, the policy would still refuse."""
    page = show(PASS)
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)"
    )
    assert page.execute_script("return window.owned") is None
    assert any("Content Security Policy" in said for said in complaints(page))


@pytest.mark.parametrize(("name", "lines"), [("pass", 2), ("fail", 1), ("against", 4)])
def test_plots_are_drawn(name: str, lines: int, show) -> None:
    page = show(PAGES[name])
    assert len(find(page, ".plot .series")) == lines
    for svg in find(page, ".plot svg"):
        assert svg.size["height"] > 100
    for dot in find(page, ".plot circle"):
        assert 62 <= float(dot.get_attribute("cx")) <= 428
        assert 14 <= float(dot.get_attribute("cy")) <= 164


def test_candidate_and_baseline_are_told_apart_and_offending_steps_marked(show) -> None:
    page = show(AGAINST)
    dashes = "return getComputedStyle(document.querySelector(arguments[0])).strokeDasharray"
    assert page.execute_script(dashes, ".series.baseline path") != "none"
    assert page.execute_script(dashes, ".series.candidate path") == "none"
    assert len(find(page, "rect.offending")) == 2
    assert len(find(page, ".cross")) == 1
    assert "20251231-000000-012345 (Pass)" in find(page, ".legend")[0].text
    assert [cell.text for cell in find(page, "#configuration tbody tr:first-child > *")] == [
        "bench-L0-grpo",
        "lr",
        "0.001",
        "1.0",
    ]


def test_arrow_keys_read_the_values_of_each_step(show) -> None:
    page = show(AGAINST)
    svg, said = find(page, ".plot svg")[1], find(page, ".plot .readout")[1]
    page.execute_script("arguments[0].focus()", svg)
    svg.send_keys(Keys.HOME)
    assert said.text == "step 1: this run 1 · baseline 1"
    svg.send_keys(Keys.ARROW_RIGHT)
    assert said.text == "step 2: this run 1.4 · baseline 1 · offending"
    svg.send_keys(Keys.END)
    assert said.text.startswith("step 3:")


def test_the_pointer_reads_the_values_too(show) -> None:
    page = show(AGAINST)
    svg = find(page, ".plot svg")[0]
    webdriver.ActionChains(page).move_to_element(svg).perform()
    assert find(page, ".plot .readout")[0].text.startswith("step 2: this run 0.3")


def test_the_evidence_of_a_deliverable_is_one_key_away(show) -> None:
    page = show(PASS)
    row = find(page, "details.row")[0]
    summary = row.find_element(By.TAG_NAME, "summary")
    summary.send_keys(Keys.ENTER)
    assert row.get_attribute("open") is not None
    assert "train/loss = 0.25 at step 3" in row.text
    (link,) = [a for a in row.find_elements(By.TAG_NAME, "a") if a.text == "run.log"]
    assert link.get_attribute("href").endswith("attempts/01-bench-L0-grpo/run.log")


def test_the_whole_page_can_be_walked_with_the_tab_key(show) -> None:
    page = show(AGAINST)
    seen: list[str] = []
    for _ in range(80):
        page.switch_to.active_element.send_keys(Keys.TAB)
        where = page.switch_to.active_element
        if where.tag_name == "body":
            break
        outline = page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", where)
        assert outline != "none", where.get_attribute("outerHTML")
        seen.append(where.tag_name)
    assert seen[0] == "a"
    assert {"a", "summary", "svg", "button", "pre"} <= set(seen)
    assert len(seen) < 79, "the focus is caught somewhere"


def test_copy_buttons_give_the_command_as_it_was_typed(show) -> None:
    page = show(PASS)
    box = "const a = document.createElement('textarea'); a.id = 'paste'; document.body.prepend(a)"
    page.execute_script(box)
    button = find(page, "button[data-copy]")[0]
    button.send_keys(Keys.ENTER)
    WebDriverWait(page, 5).until(lambda p: find(p, "#said")[0].get_attribute("textContent"))
    assert find(page, "#said")[0].get_attribute("textContent") == "Copied"
    paste = find(page, "#paste")[0]
    paste.send_keys(Keys.CONTROL, "v")
    assert paste.get_attribute("value") == COMMAND


def test_every_control_has_a_name_and_headings_are_in_order(show) -> None:
    page = show(AGAINST)
    for element in find(page, "svg, button, a, summary, [role=region]"):
        name = element.get_attribute("aria-label") or element.get_attribute("textContent")
        assert name.strip(), element.get_attribute("outerHTML")
    levels = [int(h.tag_name[1]) for h in find(page, "h1, h2, h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    targets = page.execute_script(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1))"
    )
    assert set(targets) <= set(ids)


CONTRAST = """
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (c) => {
  const [r, g, b] = parse(c).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (parse(c)[3] !== 0) return c;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("p, li, dt, dd, td, th, code, a, span, pre, button")]
  .filter((e) => e.offsetParent && e.textContent.trim())
  .map((e) => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 120)];
  })
  .sort((x, y) => x[0] - y[0])[0];
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["pass", "blocked", "against"])
def test_text_can_be_read_in_both_themes(name: str, theme: str, show, browser) -> None:
    page = show(PAGES[name])
    look(browser, theme, 1200)
    ratio, element = page.execute_script(CONTRAST)
    assert ratio >= 4.5, element


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_no_width_makes_the_page_scroll_sideways(width: int, show, browser) -> None:
    page = show(AGAINST)
    look(browser, "light", width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
