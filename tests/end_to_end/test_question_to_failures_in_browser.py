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
    for image in within.get_by_role("img", name=re.compile(r"^Image \d+: .+")).all():
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
        to_try = page.locator("#try-it-yourself")
        visitor.click(to_try.get_by_role("link", name="skills", exact=True))
        visitor.click(page.get_by_role("link", name="Spatial relations", exact=True).first)
        affordable = page.get_by_role("article").filter(
            has=page.get_by_role("heading", name="Best affordable")
        )
        chosen = affordable.get_by_role("link").first
        expect(chosen).to_be_visible(timeout=PATIENCE_MS)
        metric = chosen.inner_text()
        visitor.click(affordable.get_by_role("link", name="Images where it fails"))

        worst = page.get_by_role("heading", name="Where it fails, worst first")
        expect(worst).to_be_visible(timeout=PATIENCE_MS)
        assert visitor.clicks == 3
        cases = page.get_by_role("article", name=re.compile("^Case "))
        pictures = []
        for case in cases.all()[:3]:
            found = seen_pictures(case)
            expect(
                case.get_by_text(re.compile(rf"{re.escape(metric)}.* prefers image "))
            ).to_be_visible()
            expect(case.get_by_text(re.compile(r"\bwrong\b")).first).to_be_visible()
            pictures += found
        assert len(pictures) >= 3
