"""What moved, in a browser: readable on a phone, by keyboard, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.moved.moved_fixture import BEFORE, DONE, fill_moved
from tests.leaderboard.pages.synthetic import cards

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def address(serve: Serve) -> str:
    return serve(fill_moved(memory_store()), cards())


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["desk", "phone"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, scheme = request.param
    opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    yield opened
    opened.close()
    assert faults == []


def test_a_board_leads_to_what_moved_and_nothing_runs_over_the_edge(
    page: Page, address: str
) -> None:
    page.goto(f"{address}boards?benchmark=ratings")
    page.get_by_role("link", name=f"What moved since {BEFORE}").click()
    expect(page.get_by_role("heading", name="What moved: Ratings")).to_be_visible()
    expect(page.locator(".as-moved tbody tr")).to_have_count(DONE)
    mark = page.locator(".as-moved .as-dumbbell").first.bounding_box()
    assert mark is not None
    assert mark["width"] > 100
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "[...document.querySelectorAll('.as-moved tr > *')].every(e => "
        "e.getBoundingClientRect().right <= innerWidth + 1)"
    )


def test_another_measure_is_chosen_and_goes_into_the_address(page: Page, address: str) -> None:
    page.goto(f"{address}moved?benchmark=ratings")
    expect(page.locator(".as-moved tbody tr")).to_have_count(DONE)
    choice = page.get_by_label("Measure")
    choice.click()
    page.get_by_role("option", name="Pairwise accuracy").first.click()
    page.wait_for_url("**measure=accuracy~paper**")
    expect(page.locator(".as-moved thead")).to_contain_text("Pairwise accuracy")


def test_the_table_is_reached_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}moved?benchmark=ratings")
    region = page.get_by_role("region", name="What moved")
    region.focus()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "What moved"
