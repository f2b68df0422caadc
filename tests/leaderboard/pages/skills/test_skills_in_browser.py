"""From a question to a metric and to where it fails, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.skills.skills_fixture import cards, fill

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def site(serve: Serve) -> str:
    return serve(fill(memory_store()), cards())


def opened(browser: Browser, address: str, width: int = 1280) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address)
    expect(page.locator(".as-page h1").first).to_be_visible()
    return page


def test_a_typed_word_gives_an_answer_whose_link_restores_it(site: str, browser: Browser) -> None:
    page = opened(browser, f"{site}skills")
    expect(page.locator(".as-skills").first).to_be_visible()
    field = page.locator("form.as-asking input[name=skill]")
    field.fill("how many")
    field.press("Enter")
    expect(page.locator(".as-question")).to_have_text("Which metric for counting?")
    page.wait_for_url(re.compile(r"/skills\?skill=how\+many$"))
    expect(page.locator(".js-plotly-plot .scatterlayer .point").first).to_be_visible()
    page.locator("#as-budget input").fill("5")
    expect(page.locator(".as-answers h3").nth(1)).to_have_text("Best within 5.00 s")
    page.wait_for_url(re.compile(r"/skills\?skill=counting&budget=5$"))
    best = page.locator(".as-answers .as-leader").nth(1).text_content()

    other = opened(browser, page.url)
    expect(other.locator(".as-answers .as-leader").nth(1)).to_have_text(best or "")
    expect(other.locator(".as-part").first).to_be_visible()
    other.close()
    page.close()


def test_two_presses_lead_from_the_skills_to_images_where_the_affordable_metric_fails(
    site: str, browser: Browser
) -> None:
    page = opened(browser, f"{site}skills")
    page.get_by_role("link", name="Spatial relations").click()
    card = page.locator(".as-answers .as-card", has_text="Best affordable")
    link = card.get_by_role("link", name="Images where it fails")
    expect(link).to_have_attribute(
        "href", re.compile(r"\./items\?benchmark=croc&skill=spacial_relation&a=.+&show=failures")
    )
    page.close()


def test_a_weight_moves_the_list_and_the_link(site: str, browser: Browser) -> None:
    page = opened(browser, f"{site}skills?skill=counting")
    expect(page.locator(".as-skill-list").first).to_be_visible()
    page.get_by_role("button", name="Weights").click()
    page.locator("#as-w-gecko input[type=number]").fill("0")
    page.wait_for_url(re.compile(r"gecko:0"))
    expect(page.locator(".as-skill-list").first).to_contain_text("PickScore")
    page.close()


def test_nothing_overflows_a_phone(site: str, browser: Browser) -> None:
    for path in ("skills", "skills?skill=counting", "metric?id=made-up-0002/SigLIP-2", "metric"):
        page = opened(browser, f"{site}{path}", width=390)
        page.wait_for_timeout(800)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        page.close()


def test_the_page_of_a_metric_copies_its_metadata(site: str, browser: Browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{site}skills?skill=counting")
    page.locator(".as-answers .as-leader a").first.click()
    expect(page).to_have_url(re.compile(r"/metric\?id=made-up-"))
    block = page.locator("#hub .as-copyable")
    page.get_by_role("button", name="Copy Evaluation results for the Hub").click()
    expect(block.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == block.locator("pre").text_content()
    assert copied.startswith("- dataset:")
    context.close()
