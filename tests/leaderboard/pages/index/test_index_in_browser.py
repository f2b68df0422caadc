"""Weights in a real browser: moved, linked, restored, reset and downloaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.index.index_fixture import cards, fill

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def site(serve: Serve) -> str:
    return serve(fill(memory_store()), cards())


def opened(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".as-index").first).to_be_visible()


def weight(page: Page, benchmark: str) -> str:
    return page.locator(f"#as-w-{benchmark} input[type=number]").input_value()


def test_weights_make_a_link_that_restores_them(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}index")
    lacking = page.locator(".as-i-lacks", has_text="Contrast pairs").first
    expect(lacking).to_be_visible()
    page.locator("#as-w-accuracy input[type=number]").fill("0")
    expect(page.locator(".as-aside", has_text="on all 4 benchmarks")).to_be_visible()
    page.locator("#as-w-graphs input[type=range]").fill("2.5")
    page.wait_for_url(re.compile(r"/index\?w=graphs:2\.5,.*accuracy:0$"))
    index = page.locator(".as-i-value b").first.text_content()

    other = browser.new_page()
    opened(other, page.url)
    assert weight(other, "graphs") == "2.5"
    assert weight(other, "accuracy") == "0"
    expect(other.locator(".as-i-value b").first).to_have_text(index or "")
    other.close()

    page.get_by_role("button", name="Equal weights").click()
    page.wait_for_url(re.compile(r"/index$"))
    assert weight(page, "graphs") == "1"
    assert weight(page, "genai_527") == "0"
    page.close()


def test_an_unusable_link_is_answered_with_remarks(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}index?w=graphs:nan,<b>x</b>:1&order=nothing")
    expect(page.locator(".as-notice")).to_have_count(3)
    assert weight(page, "graphs") == "1"
    page.close()


def test_the_download_is_the_table_with_its_weights(
    site: str, browser: Browser, tmp_path: Path
) -> None:
    page = browser.new_page()
    opened(page, f"{site}index?w=graphs:3")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert download.value.suggested_filename == "index.csv"
    saved = tmp_path / "index.csv"
    download.value.save_as(saved)
    lines = saved.read_text("utf-8").splitlines()
    assert lines[0].startswith("metric,version,submitter")
    assert any(",graphs," in line and ",3.0," in line for line in lines)
    page.close()
