"""Every page on a phone and a desk, in light and dark: it fits, is quiet, and can be used by all."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import BROWSER_PATIENCE_MS
from tests.kit.accessibility import broken_rules
from tests.leaderboard.web.browser.views import HEIGHT, Inspector, shift_of
from tests.leaderboard.web.conftest import Opener, Sites
from tests.leaderboard.web.sites import PAGES

pytestmark = pytest.mark.browser
SERVED_TITLE = re.compile("<title>(.*?)</title>")
COMPLETE = """() => document.querySelector('.as-foot')
  && ![...document.querySelectorAll('.as-live')].some(part => part.querySelector('[aria-busy=true]'))"""
UNFOLD = "document.querySelectorAll('.as-page details').forEach(d => d.open = true)"
FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const seen = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
  return [at.tagName, at.getAttribute('href') ?? at.getAttribute('aria-label') ?? at.id, seen];
}"""
"""What has the focus, and whether that is drawn."""


def foreign(address: str, site: str) -> list[str]:
    parts = urlsplit(address)
    own = parts.scheme in {"data", "blob"} or parts.netloc == urlsplit(site).netloc
    return [] if own else [f"requests {address}"]


def problems_in_any_view(page: Page) -> list[str]:
    """What is wrong with a page that is open, whatever its width and scheme."""
    problems = []
    if page.locator("h1").count() != 1 or not page.locator("html").get_attribute("lang"):
        problems.append("not one heading, or no language")
    if page.locator("img[src=x], a[href^=javascript]").count():
        problems.append("markup of a stranger")
    served = SERVED_TITLE.search(page.request.get(page.url).text())
    if served is None or page.title() != unescape(served[1]):
        problems.append(f"its title is {page.title()}")
    return problems


@pytest.mark.slow
@pytest.mark.parametrize("site", ["moved", "boards", "skills", "models", "families"])
def test_every_page_fits_is_quiet_requests_nothing_elsewhere_and_breaks_no_rule(
    sites: Sites, browser: Browser, site: str
) -> None:
    address, inspector = sites(site), Inspector()
    page = browser.new_page(viewport={"width": 390, "height": HEIGHT}, reduced_motion="reduce")
    page.set_default_timeout(BROWSER_PATIENCE_MS)
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", lambda request: problems.extend(foreign(request.url, address)))
    for path, shown in PAGES[site].items():
        page.goto(f"{address}{path}")
        expect(page.locator(shown).first).to_be_visible()
        page.wait_for_function(COMPLETE)
        if site == "models":
            page.evaluate(UNFOLD)
        broken = (*problems_in_any_view(page), *inspector.problems(page))
        problems += [f"{path}: {problem}" for problem in broken]
        # `innerWidth` grows with content that does not fit, so the navigation is asked as well.
        expect(page.locator(".as-places a", has_text="Docs")).to_be_in_viewport(ratio=1)
    assert problems == []


# By keyboard.


@pytest.mark.slow
def test_the_keyboard_alone_reaches_the_first_metric_and_shows_where_it_is(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:ratings", ".as-board")
    passed: list[tuple[str, str, bool]] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        passed.append(tuple(page.evaluate(FOCUSED)))
    assert any(tag == "A" and where and "open=made-up-0000" in where for tag, where, _ in passed)
    assert ("SELECT", "as-measure", True) in passed
    assert [focused for focused in passed if not focused[2] and focused[0] != "BODY"] == []


@pytest.mark.slow
def test_the_keyboard_skips_to_the_content(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:graphs", width=390)
    for landmark in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(landmark)).to_have_count(1)
    assert page.locator("main .as-places").count() == 0
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    assert "/?tab=benchmark:graphs" in page.url


# The frame.


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_metric_is_found_by_keyboard_and_no_match_is_said(
    sites: Sites, open_page: Opener, width: int
) -> None:
    page = open_page(f"{sites('boards')}about", width=width)
    unfold = page.get_by_role("button", name="Find metric, model, benchmark")
    if width < 720:
        unfold.click()
    field = page.get_by_role("combobox", name="Find a metric, model or benchmark")
    field.focus()
    page.keyboard.type("clip")
    option = page.get_by_role("option", name="CLIPScore 1.0 metric")
    expect(option).to_be_in_viewport(ratio=1)
    assert broken_rules(page) == []
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    active = field.get_attribute("aria-activedescendant")
    assert active == option.get_attribute("id") and field.get_attribute("aria-expanded") == "true"
    page.keyboard.type("zzz")
    expect(page.locator(".as-find [role=status]")).to_contain_text("No metric")
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator(".as-find [role=status]")).to_be_empty()
    if width < 720:
        unfold.click()
    page.keyboard.type("ratings")
    expect(page.get_by_role("option", name="Ratings benchmark")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/\?tab=benchmark:ratings"))


@pytest.mark.slow
@pytest.mark.parametrize(("system", "chosen"), [("light", "dark"), ("dark", "light")])
def test_a_chosen_theme_is_kept_and_there_before_the_first_paint(
    sites: Sites, open_page: Opener, system: str, chosen: str
) -> None:
    page = open_page(f"{sites('boards')}about", color_scheme=system)
    is_dark = "document.body.classList.contains('dark')"
    assert page.evaluate(is_dark) is (system == "dark")
    button = page.get_by_role("button", name="Dark theme")
    expect(button).to_have_attribute("aria-pressed", str(system == "dark").lower())
    button.click()
    expect(button).to_have_attribute("aria-pressed", str(chosen == "dark").lower())
    page.add_init_script(
        "window.seen = []; const look = () => { if (document.querySelector('.as-top')) seen.push("
        f"{is_dark}); requestAnimationFrame(look); }}; look();"
    )
    page.goto(f"{sites('boards')}status")
    expect(page.locator("main h1")).to_be_visible()
    frames = page.evaluate("window.seen")
    assert frames and set(frames) == {chosen == "dark"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("site", "path", "lowest"),
    [
        ("boards", "", 120), ("boards", "?tab=benchmark:ratings", 120), ("boards", "models", 120),
        ("boards", "submit", 120), ("boards", "compare?benchmark=ratings", HEIGHT),
        ("skills", "", HEIGHT), ("models", "models", HEIGHT),
        ("models", "model?id=drawn-00000", HEIGHT),
    ],
)  # fmt: skip
def test_nothing_moves_once_it_is_painted_and_content_begins_high(
    sites: Sites, open_page: Opener, site: str, path: str, lowest: int
) -> None:
    address = f"{sites(site)}{path}"
    open_page(address).wait_for_function(COMPLETE)  # What it takes longest for is kept then.
    for width in (390, 1280):
        page = open_page(address, "main h1", width)
        page.wait_for_function(COMPLETE)
        assert shift_of(page) < 0.05, width
        box = page.locator("main h1").bounding_box()
        assert box is not None and box["y"] < lowest, width


@pytest.mark.slow
def test_an_unknown_address_has_a_page_in_the_look_of_the_site(
    sites: Sites, browser: Browser
) -> None:
    page = browser.new_page()
    answer = page.goto(f"{sites('boards')}nothing/here")
    assert answer is not None and answer.status == 404
    expect(page.locator("main h1")).to_be_visible()
    assert Inspector().problems(page) == []
    page.locator("main").get_by_role("link", name="Submit").click()
    page.wait_for_url(f"{sites('boards')}submit")


# Where things stand on a screen.


@pytest.mark.slow
def test_rows_are_dense_and_the_first_ones_stand_in_the_first_screen(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:graphs", ".as-ranking tbody tr.as-tier + tr")
    rows = page.locator(".as-ranking tbody tr:not(.as-tier)")
    for width, height, least in ((1280, 900, 12), (390, HEIGHT, 1)):
        page.set_viewport_size({"width": width, "height": height})
        boxes = [box for row in rows.all() if (box := row.bounding_box())]
        assert max(box["height"] for box in boxes) <= 37  # With the line below it.
        seen = sum(box["y"] + box["height"] <= height for box in boxes)
        assert seen >= min(least, len(boxes))
    first = page.locator(".as-ranking tbody th.as-first").first
    before = first.bounding_box()
    page.locator(".as-board-wrap").evaluate("board => { board.scrollLeft = 200; }")
    after = first.bounding_box()
    assert before is not None and after is not None and before["x"] == after["x"]


@pytest.mark.slow
def test_on_a_phone_a_verdict_is_on_the_first_screen_and_changes_can_be_told_apart(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}compare?benchmark=ratings", width=390)
    verdict = page.locator("h1").bounding_box()
    assert verdict is not None and verdict["y"] + verdict["height"] < HEIGHT
    page = open_page(f"{sites('moved')}?tab=benchmark:ratings&view=changes", ".as-dumbbell", 390)
    drawing = page.locator(".as-moved .as-dumbbell").first.bounding_box()
    assert drawing is not None and drawing["width"] > 100


@pytest.mark.slow
def test_the_parts_of_the_legend_of_the_first_board_stand_apart(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(sites("index"), "p.as-legend")
    parts = page.locator("p.as-legend").first.locator("> span")
    boxes = [box for part in parts.all() if (box := part.bounding_box())]
    gaps = [
        after["x"] - before["x"] - before["width"]
        for before, after in pairwise(boxes)
        if abs(after["y"] - before["y"]) < 4
    ]
    assert gaps and min(gaps) >= 8


@pytest.mark.slow
def test_a_ticked_box_has_the_colour_of_what_is_chosen(sites: Sites, open_page: Opener) -> None:
    page = open_page(sites("index"), ".as-page form")
    page.locator("summary", has_text="Columns").click()
    ticked, other = (page.locator(f"input[name=cols]{which}").first
                     for which in (":checked", ":not(:checked)"))  # fmt: skip
    expect(ticked).to_be_visible()
    for _ in ("light", "dark"):
        fill = page.evaluate("getComputedStyle(document.body).getPropertyValue('--as-fill').trim()")
        expect(ticked).to_have_css("background-color", rgb(fill))
        expect(other).not_to_have_css("background-color", rgb(fill))
        page.get_by_role("button", name="Dark theme").click()


def rgb(colour: str) -> str:
    """`rgb(1, 2, 3)` of `#010203`."""
    return "rgb({}, {}, {})".format(*bytes.fromhex(colour.lstrip("#")))
