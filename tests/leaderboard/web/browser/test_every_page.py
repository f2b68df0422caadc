"""Every page on a phone and a desk, in light and dark: it fits, is quiet, and can be used by all."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from leaderboard.views.addresses import (
    compare_address,
    items_address,
    metric_address,
    model_address,
    model_pair_address,
    models_address,
    prompt_address,
)
from leaderboard.web.page import all_pages
from tests.kit.tiers import all_slow_but_one
from tests.leaderboard.views.example_fixture import LACKS, NOISY, RIGHT, TURNED, entry_id
from tests.leaderboard.views.model_track import EMPTY, HOSTILE_ID, IDS, JUDGES, SET
from tests.leaderboard.web.conftest import Opener
from tests.leaderboard.web.families_fixture import FAMILIES
from tests.leaderboard.web.skills_fixture import NASTY

pytestmark = pytest.mark.browser
Sites = Callable[[str], str]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SETTLED_MS = 400
"""Time for late requests and errors to show. The network is never idle: Gradio holds a stream."""
PAGES: dict[str, dict[str, str]] = {
    "boards": {
        **{page.path: "h1" for page in all_pages()},
        "?tab=skill:spatial&ratings=simulated": ".as-skill-parts",
        "?chart=ranks&ratings=simulated&q=s": ".as-fchip",
        "?tab=benchmark:ratings&columns=plcc~paper&search=s": "td.as-fig",
        "?tab=benchmark:ratings&search=tifa,dsg&within=1&open=made-up-0008/TIFA": "#by-skill td",
        metric_address(entry_id(NOISY)): "#results table",
        "benchmark?name=ratings": "#measures table", "guide?name=start": ".as-doc pre",
        "guide?name=reference/settings": ".as-doc table", "guide?name=statistics": ".as-doc img",
        items_address("ratings", a=entry_id(NOISY), b=entry_id(RIGHT)): ".as-case",
        items_address("ratings", a=entry_id(LACKS), case="p3"): ".as-case",
        compare_address("ratings", *map(entry_id, (RIGHT, NOISY, TURNED))): "#pairs table",
        compare_address("ratings", entry_id(10), entry_id(0)): "#measures table",
        "compare?benchmark=ratings&view=pairs": "#agreement table",
        "compare?benchmark=ratings&view=skills": ".as-skill-values",
    },
    "skills": {
        "": ".as-board", "?chart=skills": ".as-chart-parallel",
        "?tab=skill:counting": ".as-skill-parts", "?tab=skill:": ".as-skill-list",
        metric_address("made-up-0002/SigLIP-2"): "#hub",
    },
    "models": {
        models_address(): "#board",
        models_address(SET, skill="count", words="box", judge=JUDGES[1], models=",".join(IDS[:3])):
            "#board",
        models_address(EMPTY): ".as-empty",
        models_address(SET, view="gallery"): "#gallery img",
        models_address(SET, view="judges"): "#orderings",
        model_address(IDS[0]): "#images img",
        model_address(IDS[2], skill="count"): "#images article",
        model_pair_address(SET, IDS[0], IDS[1], skill="count"): "#deciding",
        prompt_address(SET, HOSTILE_ID): "#images img",
        models_address(SET, view="seeds", judge=JUDGES[2]): "#ranks svg",
    },
    "moved": {"?tab=benchmark:ratings&view=changes": ".as-moved tbody tr",
              "?tab=benchmark:ratings&view=earlier": "#earlier tbody tr"},
    "families": {
        **{f"?tab=benchmark:of_{family}": ".as-board td.as-v" for family in FAMILIES},
        **{f"benchmark?name=of_{family}": "#measures table" for family in FAMILIES},
    },
}  # fmt: skip
"""Pages of each site, those with something chosen in them too, and what shows they are complete."""
OVERFLOWING = """() => [...document.querySelectorAll('.as-board td:not(.as-c-axis), .as-board tbody th,'
    + '.as-queue td, #board td, #board dd, .as-page figcaption')]
  .filter(cell => getComputedStyle(cell).display !== 'none' && cell.scrollWidth > cell.clientWidth + 1)
  .map(cell => cell.textContent)"""
"""Cells whose content runs into the next one."""
SERVED_TITLE = re.compile("<title>(.*?)</title>")
UNFOLD = "document.querySelectorAll('.as-page details').forEach(d => d.open = true)"
FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const seen = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
  return [at.tagName, at.getAttribute('href') ?? at.getAttribute('aria-label') ?? at.id, seen];
}"""
"""What has the focus, and whether that is drawn."""


def broken_rules(page: Page) -> list[str]:
    """Each rule that is broken, with the first element that does."""
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": RULES}}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found]


def foreign(address: str, site: str) -> list[str]:
    parts = urlsplit(address)
    own = parts.scheme in {"data", "blob"} or parts.netloc == urlsplit(site).netloc
    return [] if own else [f"asked {address}"]


def wrong(page: Page, width: int, scheme: str, path: str) -> list[str]:
    """All that is wrong with a page that is open."""
    found = [*broken_rules(page), *(f"overflows: {one}" for one in page.evaluate(OVERFLOWING))]
    if page.evaluate("document.documentElement.scrollWidth") > width:
        found.append("wider than the screen")
    if page.evaluate("document.body.classList.contains('dark')") is not (scheme == "dark"):
        found.append("the other scheme")
    if page.locator("h1").count() != 1 or not page.locator("html").get_attribute("lang"):
        found.append("not one heading, or no language")
    if page.locator("img[src=x], a[href^=javascript]").count():
        found.append("markup of a stranger")
    served = SERVED_TITLE.search(page.request.get(page.url).text())
    if served is None or page.title() != unescape(served[1]):
        found.append(f"says it is {page.title()}")
    return [f"{path}: {one}" for one in found]


@pytest.mark.parametrize(
    ("site", "width", "scheme"),
    all_slow_but_one(
        [(site, *view) for site in ("moved", "boards", "skills", "models", "families")
         for view in ((1280, "light"), (390, "light"), (1280, "dark"), (390, "dark"))]
    ),
)  # fmt: skip
def test_every_page_fits_is_quiet_asks_nobody_else_and_breaks_no_rule(
    sites: Sites, browser: Browser, site: str, width: int, scheme: str
) -> None:
    address = sites(site)
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", lambda request: problems.extend(foreign(request.url, address)))
    for path, shown in PAGES[site].items():
        page.goto(f"{address}{path}")
        expect(page.locator(shown).first).to_be_visible()
        page.wait_for_timeout(SETTLED_MS)
        if site == "models":
            page.evaluate(UNFOLD)
        problems += wrong(page, width, scheme, path)
        # `innerWidth` grows with content that does not fit, so the navigation is asked as well.
        expect(page.locator(".as-places a", has_text="Docs")).to_be_in_viewport(ratio=1)
    page.close()
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("site", "path"),
    [("boards", "?tab=benchmark:ratings"), ("models", models_address()),
     ("models", model_address(IDS[2])), ("models", prompt_address(SET, HOSTILE_ID))],
)  # fmt: skip
def test_a_hostile_name_is_shown_as_it_was_typed(
    sites: Sites, open_page: Opener, site: str, path: str
) -> None:
    page = open_page(f"{sites(site)}{path}")
    visible = NASTY.replace("\u202e", "")
    expect(page.locator("h1, .as-name, .as-prompt", has_text=visible).first).to_be_visible()


# By keyboard.


@pytest.mark.slow
def test_the_keyboard_alone_reaches_the_first_metric_and_shows_where_it_is(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:ratings")
    expect(page.locator(".as-board").first).to_be_visible()
    passed: list[tuple[str, str, bool]] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        passed.append(tuple(page.evaluate(FOCUSED)))
    assert any(tag == "A" and where and "open=made-up-0000" in where for tag, where, _ in passed)
    assert ("SELECT", "as-measure", True) in passed
    assert [one for one in passed if not one[2] and one[0] != "BODY"] == []


@pytest.mark.slow
def test_the_current_page_is_marked_and_the_keyboard_skips_to_the_content(
    sites: Sites, open_page: Opener
) -> None:
    for path, place in (("errata", "Docs"), ("?tab=benchmark:graphs", "Metrics")):
        page = open_page(f"{sites('boards')}{path}", width=390)
        expect(page.locator(".as-places a[aria-current]")).to_have_text(place)
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
    page = open_page(sites("boards"), width=width)
    if width < 720:
        page.get_by_role("button", name="Find metric, model, benchmark").click()
    field = page.get_by_role("combobox", name="Find a metric, model or benchmark")
    field.focus()
    page.keyboard.type("clip")
    option = page.get_by_role("option", name="CLIPScore 1.0 metric")
    expect(option).to_be_in_viewport(ratio=1)
    assert broken_rules(page) == []
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    found = field.get_attribute("aria-activedescendant")
    assert found == option.get_attribute("id") and field.get_attribute("aria-expanded") == "true"
    page.keyboard.type("zzz")
    expect(page.locator(".as-find [role=status]")).to_contain_text("No metric")
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator(".as-find [role=status]")).to_be_empty()
    if width < 720:
        page.get_by_role("button", name="Find metric, model, benchmark").click()
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


LAYOUT_SHIFT = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shift += one.value;
}).observe({ type: 'layout-shift', buffered: true });"""


@pytest.mark.parametrize(
    ("width", "height", "path"),
    all_slow_but_one([(w, h, path) for path in ("", "?tab=benchmark:ratings", "models", "submit")
                      for w, h in ((390, 844), (1280, 900))]),
)  # fmt: skip
def test_nothing_moves_once_it_is_painted_and_content_begins_high(
    sites: Sites, browser: Browser, width: int, height: int, path: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.add_init_script(LAYOUT_SHIFT)
    page.goto(f"{sites('boards')}{path}")
    heading = page.locator("main h1")
    expect(heading).to_be_visible()
    page.wait_for_timeout(3 * SETTLED_MS)
    assert page.evaluate("window.shift") < 0.05
    box = heading.bounding_box()
    assert box is not None and box["y"] < 120
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_an_unknown_address_has_a_page_in_the_look_of_the_site(
    sites: Sites, browser: Browser, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    answer = page.goto(f"{sites('boards')}nothing/here")
    assert answer is not None and answer.status == 404
    expect(page.locator("main h1")).to_be_visible()
    assert broken_rules(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("main").get_by_role("link", name="Submit").click()
    page.wait_for_url(f"{sites('boards')}submit")
    page.close()
