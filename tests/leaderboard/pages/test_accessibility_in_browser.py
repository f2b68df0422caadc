"""What axe-core finds on every page: names, roles, contrast, order, on a phone and a desk."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from leaderboard.pages.page import all_pages
from leaderboard.pages.shown.addresses import compare_address, items_address, metric_address
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.items.looked_at import LACKS, NOISY, RIGHT, TURNED, entry_id, filled
from tests.leaderboard.pages.synthetic import cards
from tests.tiers import all_slow_but_one

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SETTLED_MS = 600
PATIENCE_MS = 30_000
FURTHER = {
    "skills?skill=spatial&ratings=simulated": "#as-cost-chart .js-plotly-plot .main-svg",
    "boards?benchmark=ratings&columns=plcc~paper&search=s": "td.as-c-more[data-label='Pearson r']",
    metric_address(entry_id(NOISY)): ".as-m-boards",
    items_address("ratings", a=entry_id(NOISY), b=entry_id(RIGHT)): ".as-case",
    items_address("ratings", a=entry_id(LACKS), case="p3"): ".as-case",
    compare_address("ratings", *map(entry_id, (RIGHT, NOISY, TURNED))): "h2:has-text('Agreement')",
}
"""Pages with something chosen in them, and what is there when they are complete."""
FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const seen = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
  return [at.tagName, at.getAttribute('href') ?? at.getAttribute('aria-label') ?? at.id, seen];
}"""
"""What has the focus, and whether that is drawn."""


@pytest.fixture(scope="module")
def site(serve: Serve) -> str:
    return serve(filled(), cards())


def opened(browser: Browser, address: str, width: int, scheme: str, shown: str = "h1") -> Page:
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(address)
    expect(page.locator(shown).first).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_timeout(SETTLED_MS)
    return page


EVERY = {**{page.path: "h1" for page in all_pages()}, **FURTHER}
"""Each page as it is first seen, then those with something chosen; what shows they are there."""


def broken_rules(page: Page) -> list[str]:
    """Each rule that is broken, with the first element that does."""
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": RULES}}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['id']} ({len(rule['nodes'])}): {rule['nodes'][0]['html'][:200]}" for rule in found
    ]


@pytest.mark.parametrize(
    ("width", "scheme"),
    all_slow_but_one([(1280, "light"), (390, "light"), (1280, "dark"), (390, "dark")]),
)
@pytest.mark.parametrize("path", all_slow_but_one(EVERY))
def test_no_page_breaks_a_rule_of_accessibility(
    site: str, browser: Browser, path: str, width: int, scheme: str
) -> None:
    page = opened(browser, f"{site}{path}", width, scheme, EVERY[path])
    assert broken_rules(page) == []
    page.close()


@pytest.mark.slow
def test_every_page_has_one_main_heading_and_says_which_page_it_is(
    site: str, browser: Browser
) -> None:
    for known in all_pages():
        page = opened(browser, f"{site}{known.path}", 1280, "light")
        assert page.locator("h1").count() == 1, known.path
        assert page.locator("html").get_attribute("lang"), known.path
        assert known.title in page.title(), known.path
        page.close()
    for path, shown in FURTHER.items():
        page = opened(browser, f"{site}{path}", 1280, "light", shown)
        assert page.locator("h1").count() == 1, path
        page.close()


@pytest.mark.slow
def test_the_keyboard_alone_reaches_the_first_metric_and_shows_where_it_is(
    site: str, browser: Browser
) -> None:
    page = opened(browser, f"{site}boards", 1280, "light")
    passed: list[tuple[str, str, bool]] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        passed.append(tuple(page.evaluate(FOCUSED)))
    assert any(tag == "A" and where and where.endswith("boards") for tag, where, _ in passed)
    assert any(tag == "INPUT" and where == "Benchmark" for tag, where, _ in passed)
    assert [one for one in passed if not one[2] and one[0] != "BODY"] == []
    page.close()
