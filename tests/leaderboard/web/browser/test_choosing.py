"""Choosing on a page: the view follows, the address with it, and a link restores what was chosen.

Addresses that links and forms lead to are tested without a browser, beside each page.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.leaderboard.views.model_track import IDS
from tests.leaderboard.web.conftest import Opener, Sites

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LOADED_ONCE = "window.asSame === true"


# Boards.


def test_columns_pins_and_chips_change_the_view_and_the_address_without_loading_the_page_again(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:ratings&kind=metric")
    page.evaluate("window.asSame = true")
    page.get_by_label("Add a column").select_option("cost:seconds")
    head = page.locator("thead th", has_text="Seconds")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(head.get_by_role("link")).to_be_focused()
    expect(page.locator(".as-ranking tbody tr").first).to_contain_text("CLIPScore")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    page.wait_for_url(re.compile(r"columns=cost:seconds&sort=-cost:seconds"))
    row = page.locator(".as-ranking tbody tr", has_text="TIFA")
    row.get_by_role("link", name="Pin TIFA").click()
    expect(page.locator(".as-ranking tbody").first).to_contain_text("TIFA")
    page.wait_for_url(re.compile(r"pin=made-up-0008%2FTIFA"))
    expect(row.get_by_role("link", name="Unpin TIFA")).to_be_focused()
    page.get_by_role("link", name="Remove filter run by Assay").click()
    expect(page.get_by_role("group", name="Filters")).to_have_count(0)
    expect(page.get_by_label("Entries")).to_have_value("")
    expect(page).not_to_have_url(re.compile("kind="))
    assert "columns=cost:seconds" in page.url
    assert page.evaluate(LOADED_ONCE)


def test_a_link_into_the_about_page_goes_to_its_place(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}about#unused")
    expect(page.locator("#unused")).to_be_in_viewport()
    expect(page).to_have_title("Methods · Assay")
    page.locator("#ratings a").click()
    expect(page.locator("h1")).to_have_text("Ratings")


def test_a_refused_form_keeps_what_was_filled_in(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}submit")
    check = page.get_by_role("button", name="Check").first
    expect(check).to_be_enabled()
    page.get_by_label("Signed as").first.fill("A group")
    check.click()
    expect(page.get_by_role("alert")).to_contain_text("no_file")
    expect(page.get_by_label("Signed as").first).to_have_value("A group")


# Comparison.


def test_choosing_another_metric_and_swapping_change_view_and_address(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}compare?benchmark=ratings&a=made-up-0000%2FCLIPScore")
    expect(page.locator("h1")).to_contain_text("CLIPScore and BLIP2-ITM")
    page.evaluate("window.asSame = true")
    page.get_by_label("B", exact=True).select_option("made-up-0009/DSG")
    expect(page.locator("h1")).to_contain_text("CLIPScore is better than DSG")
    page.wait_for_url(re.compile(r"a=made-up-0000/CLIPScore&b=made-up-0009/DSG"))
    page.get_by_role("link", name="Swap").click()
    page.wait_for_url(re.compile(r"a=made-up-0009/DSG&b=made-up-0000/CLIPScore"))
    expect(page.locator(".as-sides li").first).to_contain_text("DSG")
    page.locator(".as-pick summary").click()
    page.get_by_label("Counting").check()
    page.wait_for_url(re.compile("skill=counting"))
    expect(page.locator("section.as-verdict")).to_contain_text("Counting")
    expect(page.get_by_label("Colour")).to_be_visible()  # The list of skills stays unfolded.
    assert page.evaluate(LOADED_ONCE)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV of comparison").click()
    assert download.value.suggested_filename == "ratings-compare.csv"


def test_each_tab_is_a_state_of_the_history(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}compare?benchmark=graphs")
    for name, shown, view in (
        ("All pairs", "#matrix", "pairs"),
        ("Skills", ".as-empty", "skills"),
        ("Examples", ".as-empty", "examples"),
    ):
        page.get_by_role("tab", name=name).click()
        expect(page.locator(shown).first).to_be_visible()
        expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        page.wait_for_url(re.compile(f"view={view}"))
    page.go_back()
    expect(page.get_by_role("tab", name="Skills")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_title(re.compile("CLIPScore and BLIP2-ITM on Error graphs · Assay"))


# Models.


def test_filters_of_models_are_joined_and_their_link_restores_them(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('models')}models", "#board")
    page.evaluate("window.asSame = true")
    rows = page.locator(".as-models tbody th[scope=row]")
    page.get_by_label("Words in the prompt").fill("box")
    page.wait_for_url(re.compile(r"words=box"))
    page.get_by_label("Skill", exact=True).select_option("count")
    page.wait_for_url(re.compile(r"skill=count&words=box"))
    page.get_by_text("Only some models").click()
    page.get_by_role("checkbox", name="Aurora XL").check()
    page.wait_for_url(re.compile(rf"models={IDS[0]}$"))
    page.get_by_role("checkbox", name="Daub").check()
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="Remove filter 2 of 5 models").click()
    expect(rows).to_have_count(5)
    expect(page).not_to_have_url(re.compile(r"[?&]models="))
    assert page.evaluate(LOADED_ONCE)
    page.reload()
    expect(page.get_by_label("Words in the prompt")).to_have_value("box")
    expect(page.get_by_role("group", name="Filters")).to_contain_text("skill: Counting")


def test_from_a_figure_to_the_images_behind_it_and_to_one_prompt(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('models')}models", "#board")
    row = page.locator(".as-models tbody tr").filter(has_text="Aurora XL")
    row.locator("td a").nth(1).click()
    expect(page.locator("h1")).to_contain_text("Aurora XL")
    page.wait_for_function("() => document.querySelector('#images img')?.naturalWidth > 0")
    tile = page.locator("#images .as-picture").first.bounding_box()
    assert tile is not None and abs(tile["width"] - tile["height"]) < 1
    page.locator("#images h3 a").first.click()
    expect(page.get_by_role("navigation", name="Prompts")).to_be_visible()
    before = page.locator("#prompt .as-prompt").text_content()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#prompt .as-prompt")).not_to_have_text(before or "")
    page.wait_for_url(re.compile("view=prompt"))
    assert "skill=count" in page.url


# Controls.


def test_a_button_copies_the_whole_text_beside_it(sites: Sites, browser: Browser) -> None:
    page = browser.new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
    page.goto(f"{sites('skills')}?tab=benchmark:gecko")
    for label, begins in (
        ("BibTeX of this board", "@misc{assay-gecko,"),
        ("Python with pandas", "import"),
    ):
        button = page.get_by_role("button", name=f"Copy {label}", exact=True, include_hidden=True)
        expect(button).to_be_attached()
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
        button.click()
        block = page.locator(".as-copyable").filter(has=button)
        expect(block.get_by_text("Copied")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == block.locator("pre").text_content()
        assert copied.startswith(begins)


def test_one_drawer_is_open_at_a_time_and_escape_or_a_press_outside_closes_it(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(sites("index"), ".as-controls")
    columns, weights = (page.locator(".as-drawer", has=page.locator("summary", has_text=text))
                        for text in ("Columns", "Weights"))  # fmt: skip
    columns.locator("summary").click()
    expect(columns).to_have_attribute("open", "")
    columns.locator("input").first.focus()
    page.keyboard.press("Escape")
    expect(columns).not_to_have_attribute("open", "")
    expect(columns.locator("summary")).to_be_focused()
    columns.locator("summary").click()
    weights.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(weights).to_have_attribute("open", "")
    expect(columns).not_to_have_attribute("open", "")
    weights.locator("p").click()
    expect(weights).to_have_attribute("open", "")
    page.locator("h1").click()
    expect(weights).not_to_have_attribute("open", "")
