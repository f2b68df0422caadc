"""From a question to the images that answer it, by what is on the screen and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.serving import served

pytestmark = [pytest.mark.browser, pytest.mark.isolation, pytest.mark.slow]

PATIENCE_MS = 60_000
"""The first look at a page reads the whole store, on a machine that has other work."""
LOADED = "image => image.complete && image.naturalWidth > 0"


class Visitor:
    """Somebody who only presses what is named on the screen.

    Attributes:
        clicks: how often.
    """

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, link: Locator) -> None:
        expect(link).to_be_visible(timeout=PATIENCE_MS)
        link.click()
        self.clicks += 1


def seen_pictures(within: Locator) -> list[Locator]:
    """The images that have arrived, of those a visitor can scroll to."""
    seen = []
    for image in within.get_by_role("img", name=re.compile(r"^Image \d+ for: .+")).all():
        image.scroll_into_view_if_needed()
        image.evaluate("image => image.decode()")
        if image.evaluate(LOADED):
            seen.append(image)
    return seen


def test_three_clicks_lead_from_the_front_page_to_images_where_the_best_affordable_metric_fails(
    store: Path, tmp_path: Path, page: Page
) -> None:
    with served(store, tmp_path / "served.log") as address:
        visitor = Visitor(page)
        page.goto(address)
        visitor.click(page.get_by_role("link", name="Simulated ratings", exact=True))
        visitor.click(page.get_by_role("tab", name="Counting", exact=True))
        affordable = page.locator(".as-answers-for > div", has_text="Best affordable")
        chosen = affordable.get_by_role("link").first
        expect(chosen).to_be_visible(timeout=PATIENCE_MS)
        metric = chosen.inner_text()
        visitor.click(affordable.get_by_role("link", name=re.compile("^Images where it fails")))

        failing = re.compile(rf"^Images where {re.escape(metric)}.* fails")
        expect(page.get_by_role("heading", name=failing)).to_be_visible(timeout=PATIENCE_MS)
        assert visitor.clicks == 3
        cases = page.get_by_role("article", name=re.compile("^Case "))
        expect(cases.nth(2)).to_be_visible(timeout=PATIENCE_MS)
        pictures = []
        for case in cases.all()[:3]:
            pictures += seen_pictures(case)
            prefers = re.compile(rf"^{re.escape(metric)}.* prefers image ")
            expect(case.get_by_text(prefers).first).to_be_visible()
        assert len(pictures) >= 3
