"""Choosing on a page: the view follows, the address with it, and a link restores what was chosen."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.registry import load_registry
from leaderboard.publication.item_scores import CaseFiles
from leaderboard.service.pictures import Pictures
from tests.kit.boards import keep
from tests.kit.site import app_of
from tests.kit.store import memory_store
from tests.leaderboard.views.example_fixture import NOISY, RIGHT, entry_id
from tests.leaderboard.web.conftest import Opener, Serve
from tests.leaderboard.web.moved_fixture import BEFORE, DONE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Sites = Callable[[str], str]
SHIFT = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
  }).observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(sum), 800);
})"""
"""How far content has moved since the page was opened."""


# Boards.


def test_columns_are_added_and_every_heading_sorts(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:ratings")
    page.get_by_label("Add a column").select_option("cost:seconds")
    head = page.locator("thead th", has_text="Seconds")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(head.get_by_role("link")).to_be_focused()
    expect(page.locator(".as-ranking tbody tr").first).to_contain_text("CLIPScore")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    page.locator("thead .as-sort", has_text="Metric").click()
    expect(page.locator(".as-ranking tbody tr").nth(1)).to_contain_text("ALIGNScore")
    page.wait_for_url(re.compile(r"columns=cost:seconds&sort=metric$"))


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_rows_are_dense_and_the_first_ones_stand_in_the_first_screen(
    sites: Sites, open_page: Opener, width: int, height: int
) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:graphs", width=width)
    page.set_viewport_size({"width": width, "height": height})
    rows = page.locator(".as-ranking tbody tr:not(.as-tier)")
    expect(rows.first).to_be_visible()
    boxes = [box for row in rows.all() if (box := row.bounding_box())]
    assert max(box["height"] for box in boxes) <= 37  # With the line below it.
    seen = sum(box["y"] + box["height"] <= height for box in boxes)
    assert seen >= (min(12, len(boxes)) if width == 1280 else 1)
    first = page.locator(".as-ranking tbody th.as-first").first
    before = first.bounding_box()
    page.locator(".as-board-wrap").evaluate("e => { e.scrollLeft = 200; }")
    after = first.bounding_box()
    assert before is not None and after is not None and before["x"] == after["x"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_row_opens_by_keyboard_and_the_address_says_so(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:ratings")
    name = page.locator(".as-row-open", has_text="PickScore")
    name.focus()
    page.keyboard.press("Enter")
    expect(page.locator("tr.as-detail")).to_contain_text("trained on this benchmark")
    expect(name).to_be_focused()
    page.wait_for_url(re.compile(r"open=made-up-0003%2FPickScore$"))


def test_the_pairs_follow_and_differences_can_be_reached_with_the_keyboard(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:ratings", width=390)
    expect(page.locator("#by-skill .as-heat")).to_be_attached()
    region = page.get_by_role("region", name="All pairs of metrics")
    region.focus()
    expect(region).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".as-pairs tbody a").first).to_be_focused()
    assert region.evaluate("e => e.scrollWidth > e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.get_by_label("Download CSV of pairs")).to_have_attribute(
        "href", re.compile(r"^\./v1/boards/ratings/pairs\?.*format=csv$")
    )


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


def test_pins_and_chips_change_the_view_and_the_address_without_loading_the_page_again(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}?tab=benchmark:ratings&kind=metric&columns=plcc~paper")
    page.evaluate("window.asSame = true")
    row = page.locator(".as-ranking tbody tr", has_text="TIFA")
    row.get_by_role("link", name="Pin TIFA").click()
    expect(page.locator(".as-ranking tbody").first).to_contain_text("TIFA")
    page.wait_for_url(re.compile(r"pin=made-up-0008%2FTIFA"))
    expect(row.get_by_role("link", name="Unpin TIFA")).to_be_focused()
    page.get_by_role("link", name="Remove filter run by Assay").click()
    expect(page.get_by_role("group", name="Filters")).to_have_count(0)
    expect(page.get_by_label("Entries")).to_have_value("")
    expect(page).not_to_have_url(re.compile("kind="))
    assert "columns=plcc~paper" in page.url
    assert page.evaluate("window.asSame") is True


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
    page.get_by_label("Benchmark", exact=True).select_option("graphs")
    expect(page.locator("section.as-verdict")).to_contain_text("Error graphs")
    assert page.evaluate("window.asSame") is True
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV of comparison").click()
    assert download.value.suggested_filename == "graphs-compare.csv"


def test_on_a_phone_the_verdict_is_on_the_first_screen_and_skills_unfold(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}compare?benchmark=ratings", width=390)
    box = page.locator("h1").bounding_box()
    assert box is not None and box["y"] + box["height"] < 844
    counting = page.get_by_label("Counting")
    expect(counting).to_be_hidden()
    page.locator(".as-pick summary").click()
    counting.check()
    page.wait_for_url(re.compile("skill=counting"))
    expect(page.locator("section.as-verdict")).to_contain_text("Counting")
    expect(page.get_by_label("Colour")).to_be_visible()
    page.get_by_label("Colour").check()
    expect(page.locator("section.as-verdict")).to_contain_text("mean of Counting and Colour")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


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


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_once_painted(browser: Browser, sites: Sites, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver(all => { for (const one of all.getEntries())"
        " if (!one.hadRecentInput) window.moved += one.value; })"
        ".observe({ type: 'layout-shift', buffered: true });"
    )
    page.goto(f"{sites('boards')}compare?benchmark=ratings")
    expect(page.locator("#measures table")).to_be_visible()
    page.wait_for_timeout(400)
    assert page.evaluate("window.moved") < 0.05
    page.close()


# Metrics.


def test_a_heading_sorts_and_a_filter_keeps_the_ranks_of_the_whole_board(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(sites("index"), ".as-board")
    page.evaluate("window.asSame = true")
    rank = page.locator(".as-board tr", has_text="SigLIP-2").first.locator(".as-rk").text_content()
    page.get_by_role("button", name="Error graphs").click()
    page.wait_for_url(re.compile(r"sort=-graphs"))
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Error graphs")
    page.get_by_role("button", name="Index").first.click()
    page.wait_for_url(re.compile(r":[0-9]+/$"))
    expect(page.locator(".as-live[aria-busy]")).to_have_count(0)
    page.get_by_label("Filter by name").fill("siglip")
    page.wait_for_url(re.compile(r"q=siglip"))
    rows = page.locator(".as-board tr[data-row]")
    expect(rows).to_have_count(1)
    expect(rows.first.locator(".as-rk")).to_have_text(rank or "")
    expect(page.get_by_label("Filter by name")).to_be_focused()
    page.get_by_role("link", name="Remove filter Name").click()
    expect(rows).not_to_have_count(1)
    assert page.evaluate("window.asSame") is True


def test_a_typed_word_gives_an_answer_whose_link_restores_it(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('skills')}skills", ".as-skill-list")
    field = page.get_by_label("A skill in your words")
    field.fill("how many")
    field.press("Enter")
    expect(page.locator("h1")).to_contain_text("For counting")
    page.wait_for_url(re.compile(r"tab=skill:counting$"))
    page.get_by_label("At most").fill("5")
    expect(page.locator(".as-picks dt").nth(1)).to_have_text("Best under 5.00 s per 1,000 pairs")
    page.wait_for_url(re.compile(r"tab=skill:counting&cost=5$"))
    best = page.locator(".as-picks dd b").nth(1).text_content()

    other = open_page(page.url, ".as-skill-parts article")
    expect(other.locator(".as-picks dd b").nth(1)).to_have_text(best or "")


def test_a_weight_moves_the_list_and_the_link(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('skills')}?tab=skill:counting", ".as-board")
    page.get_by_text("Weights").first.click()
    page.locator("#as-w-gecko").fill("0")
    page.wait_for_url(re.compile(r"gecko:0"))
    row = page.locator(".as-board tr", has_text="PickScore").first
    expect(row.locator(".as-rk")).not_to_have_text("–")


def test_a_row_unfolds_by_keyboard_and_nothing_moves_once_painted(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(sites("skills"), ".as-board")
    shift = page.evaluate(SHIFT)
    assert shift < 0.05
    page.locator(".as-row-open").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Metric page").first).to_be_visible()


@pytest.mark.parametrize(
    ("path", "label", "begins"),
    [
        ("metric?id=made-up-0002/SigLIP-2", "Evaluation results for the Hub", "- dataset:"),
        ("?tab=benchmark:gecko", "BibTeX of this board", "@misc{assay-gecko,"),
        ("?tab=benchmark:gecko", "Python with pandas", "import"),
        ("benchmark?name=gecko", "the citation of this benchmark", "@misc{gecko"),
    ],
)
def test_a_button_copies_the_whole_text_beside_it(
    sites: Sites, browser: Browser, path: str, label: str, begins: str
) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{sites('skills')}{path}")
    button = page.get_by_role("button", name=f"Copy {label}", exact=True, include_hidden=True)
    expect(button).to_be_attached()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    button.click()
    block = page.locator(".as-copyable").filter(has=button)
    expect(block.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == block.locator("pre").text_content()
    assert copied.startswith(begins)
    context.close()


# Examples.


def test_a_visitor_holds_two_metrics_against_each_other_by_keyboard(
    sites: Sites, open_page: Opener
) -> None:
    """By the address that the examples had before."""
    page = open_page(f"{sites('boards')}items?benchmark=ratings&a={entry_id(NOISY)}")
    expect(page.locator("h1")).to_contain_text("fails")
    assert "/compare?" in page.url and "view=examples" in page.url
    page.get_by_label("B", exact=True).focus()
    page.get_by_label("B", exact=True).select_option(entry_id(RIGHT))
    page.wait_for_url(re.compile("b=made-up-0000/CLIPScore"))
    expect(page.locator(".as-item-sums tbody tr")).to_have_count(3)
    page.get_by_label("Show", exact=True).select_option("disagreements")
    expect(page.locator("h1")).to_contain_text("differ")
    page.wait_for_url(re.compile("b=made-up-0000/CLIPScore.*show=disagreements"))
    page.locator(".as-case h3 a").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#everyone")).to_be_visible()
    page.wait_for_url(re.compile("case=p"))
    page.go_back()
    expect(page.locator(".as-case")).to_have_count(12)


def test_images_arrive_and_are_described_by_their_prompt(serve: Serve, open_page: Opener) -> None:
    """The demo's benchmarks with what people said, and no metric yet."""
    registry, store = load_registry(), memory_store()
    keep(store, CaseFiles(registry, None).missing(store.public, ["demo_ts2"]))
    shown = {"demo_ts2": registry["demo_ts2"].card}
    address = serve(app_of(store, shown, pictures=Pictures(registry, None)))
    page = open_page(f"{address}compare?benchmark=demo_ts2&view=examples")
    image = page.locator(".as-tile img").first
    image.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.as-tile img').naturalWidth > 0")
    assert (image.get_attribute("alt") or "").startswith("Image 1 for: ")
    box = page.locator(".as-picture").first.bounding_box()
    assert box is not None and abs(box["width"] - box["height"]) < 1


# What moved.


def test_a_board_leads_to_its_changes_and_back_and_nothing_runs_over_the_edge(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('moved')}?tab=benchmark:ratings", width=390)
    page.get_by_role("link", name=f"Changes since {BEFORE}").click()
    expect(page.locator("h1")).to_contain_text(f"Changes of Ratings from {BEFORE}")
    expect(page.locator(".as-moved tbody tr")).to_have_count(DONE)
    expect(page).to_have_title("Changes of Ratings · Assay")
    mark = page.locator(".as-moved .as-dumbbell").first.bounding_box()
    assert mark is not None
    assert mark["width"] > 100
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.go_back()
    expect(page.locator(".as-ranking")).to_be_visible()


def test_the_table_of_changes_is_reached_by_keyboard(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('moved')}?tab=benchmark:ratings&view=changes")
    region = page.get_by_role("region", name="Changes")
    region.focus()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Changes"


# Controls.


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_ticked_box_has_the_colour_of_what_is_chosen(
    sites: Sites, open_page: Opener, scheme: str
) -> None:
    page = open_page(sites("index"), ".as-page form", color_scheme=scheme)
    page.locator("summary", has_text="Columns").click()
    fill = page.evaluate("getComputedStyle(document.body).getPropertyValue('--as-fill').trim()")
    ticked, other = (page.locator(f"input[name=cols]{which}").first
                     for which in (":checked", ":not(:checked)"))  # fmt: skip
    expect(ticked).to_be_visible()
    expect(ticked).to_have_css("background-color", rgb(fill))
    expect(other).not_to_have_css("background-color", rgb(fill))


def rgb(colour: str) -> str:
    """`rgb(1, 2, 3)` of `#010203`."""
    return "rgb({}, {}, {})".format(*bytes.fromhex(colour.lstrip("#")))


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


def test_the_parts_of_the_legend_of_the_first_board_stand_apart(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(sites("index"), ".as-controls")
    parts = page.locator("p.as-legend").first.locator("> span")
    boxes = [box for part in parts.all() if (box := part.bounding_box())]
    gaps = [
        after["x"] - before["x"] - before["width"]
        for before, after in pairwise(boxes)
        if abs(after["y"] - before["y"]) < 4
    ]
    assert gaps and min(gaps) >= 8
