"""Live view: links, forms, sorting and typing change a part of a page without loading it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

import gradio as gr
import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.datastructures import QueryParams

from leaderboard.web.live import LiveContent, live_view
from tests.kit.site import served

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROWS = "".join(f"<tr><td>row {n}</td></tr>" for n in range(200))
_asked: list[str] = []


def answer(params: QueryParams, _: gr.Request) -> LiveContent:
    _asked.append(str(params))
    tab, search = params.get("tab", "one"), params.get("q", "")
    kinds, sort, runs = params.get("kinds", ""), params.get("sort", ""), int(params.get("runs", 0))
    kept = {"tab": tab if tab != "one" else "", "q": search, "kinds": kinds, "sort": sort,
            "runs": str(runs) if runs else ""}  # fmt: skip
    query = "&".join(f"{key}={value}" for key, value in kept.items() if value)
    if 0 < runs < 3:
        query = query.replace(f"runs={runs}", f"runs={runs + 1}")
    order = "descending" if sort == "-v" else "ascending"
    return LiveContent(
        f'<h1>{escape(tab)}</h1><a data-go="two" data-push href="?tab=two">Two</a>'
        f'<form data-go><input type="hidden" name="tab" value="{escape(tab)}">'
        f'<input type="search" name="q" aria-label="Search" value="{escape(search)}">'
        '<label><input type="checkbox" name="kinds" value="a">A</label>'
        '<label><input type="checkbox" name="kinds" value="b">B</label></form>'
        f'<div class="as-scroll" aria-label="Rows" style="height:90px;overflow:auto"><table><thead>'
        f'<tr><th aria-sort="{order}"><button class="as-sort" data-key="v">V</button></th></tr>'
        f"</thead>{ROWS}</table></div>"
        f'<p id="state">{escape(search)}|{escape(kinds)}|{escape(sort)}|{runs}</p>',
        query=f"?{query}" if query else "",
        title=f"{tab} of the test",
        again_s=0.2 if 0 < runs < 3 else None,
    )


def below(params: QueryParams, _: gr.Request) -> LiveContent:
    return LiveContent(f'<p id="below">below {escape(params.get("tab", "one"))}</p>')


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with gr.Blocks() as app:
        live_view(answer, skeleton='<p id="skeleton">loading</p>', below=below)
    with served(app, {}) as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    _asked.clear()
    page = browser.new_page()
    page.goto(f"{address}?tab=start")
    expect(page.locator("h1")).to_have_text("start")
    expect(page.locator("#below")).to_have_text("below start")
    yield page
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1


def test_a_link_leads_to_another_state_and_back_again_without_loading_the_page(page: Page) -> None:
    page.evaluate("window.asSame = true")
    page.locator("[data-go=two]").click()
    expect(page.locator("h1")).to_have_text("two")
    expect(page.locator("#below")).to_have_text("below two")
    expect(page).to_have_url(re.compile(r"\?tab=two$"))
    expect(page).to_have_title("two of the test · Assay")
    assert page.evaluate("document.activeElement.dataset.go") == "two"
    page.go_back()
    expect(page.locator("h1")).to_have_text("start")
    expect(page).to_have_title("start of the test · Assay")
    assert page.evaluate("window.asSame")


@pytest.mark.parametrize("pause_ms", [0, 100])
def test_what_is_pressed_before_the_last_answer_comes_next_and_a_link_stays_a_step_back(
    page: Page, pause_ms: int
) -> None:
    page.evaluate(
        """pause => {
          const press = (one) => document.querySelector(one).click();
          press('[data-go=two]');
          setTimeout(() => { press('input[value=a]'); press('.as-sort') }, pause);
        }""",
        pause_ms,
    )
    expect(page).to_have_url(re.compile("sort=-v"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"\?tab=start$"))
    expect(page.locator("h1")).to_have_text("start")


def test_typing_is_never_lost_and_the_last_text_is_what_is_shown(page: Page) -> None:
    field = page.get_by_label("Search")
    field.press_sequentially("clip score", delay=60)
    expect(page.locator("#state")).to_have_text("clip score|||0")
    assert page.get_by_label("Search").input_value() == "clip score"
    assert page.evaluate("document.activeElement.name") == "q"
    assert len(_asked) < 11, "a pause of typing asks, not each key"


def test_the_fields_of_a_form_make_the_state_and_several_of_one_name_are_joined(page: Page) -> None:
    page.get_by_role("checkbox", name="A").check()
    expect(page.locator("#state")).to_have_text("|a||0")


def test_a_column_is_sorted_best_first_and_then_the_other_way_round(page: Page) -> None:
    box = page.locator(".as-scroll")
    box.evaluate("box => { box.scrollTop = 40 }")
    # Not `click`, which would scroll the header into view first.
    page.locator(".as-sort").dispatch_event("click")
    expect(page.locator("#state")).to_have_text("||-v|0")
    assert box.evaluate("box => box.scrollTop") == 40
    page.get_by_role("button", name="V", exact=True).click()
    expect(page.locator("#state")).to_have_text("||v|0")


def test_what_changes_by_itself_is_asked_for_until_it_is_final(page: Page, address: str) -> None:
    page.goto(f"{address}?runs=1")
    expect(page.locator("#state")).to_have_text("|||3")
    asked = len(_asked)
    page.wait_for_timeout(3 * 200)  # Longer than from one of these answers to the next.
    assert len(_asked) == asked
