"""Choosing on a page: the view follows, the address with it, and a link restores what was chosen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.registry import load_registry
from leaderboard.publication.case_files import CaseFiles
from leaderboard.service.pictures import Pictures
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Opener, Serve
from tests.leaderboard.pages.models.made_up import IDS
from tests.leaderboard.pages.moved.moved_fixture import BEFORE, DONE
from tests.leaderboard.pages.serving import app_of
from tests.leaderboard.pages.synthetic import keep
from tests.leaderboard.views.example_fixture import NOISY, RIGHT, entry_id

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Sites = Callable[[str], str]


# Boards.


def test_a_filter_ranks_anew_and_its_link_restores_it(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}boards?benchmark=ratings")
    ranking = page.locator(".as-board")
    rank = ranking.locator("tr", has_text="TIFA").locator(".as-range")
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 8 of 10"))
    page.get_by_label("Metrics or submitters").fill("tifa, dsg, siglip")
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 2 of 3"))
    expect(page.get_by_role("group", name="Filters")).to_contain_text("3 of 12 metrics")
    expect(page.locator(".as-heat tbody tr")).to_have_count(3)
    page.get_by_label("Hide trained on this benchmark").check()
    page.wait_for_url(re.compile(r"untrained=1&search=tifa,\+dsg,\+siglip$"))
    expect(page.get_by_label("Metrics or submitters")).to_have_value("tifa, dsg, siglip")
    page.reload()
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 2 of 3"))
    expect(page.get_by_label("Hide trained on this benchmark")).to_be_checked()
    expect(page.get_by_label("Metrics or submitters")).to_have_value("tifa, dsg, siglip")
    page.get_by_role("button", name="Reset").click()
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 8 of 10"))
    page.wait_for_url(re.compile(r"/boards\?benchmark=ratings&measure=srcc~paper$"))


def test_several_skills_are_chosen_one_after_the_other_and_their_mean_is_shown(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}boards?benchmark=ratings&measure=accuracy")
    for skill in ("Counting", "Colour"):
        page.get_by_label("Skills", exact=False).first.click()
        page.get_by_role("option", name=skill).click()
        expect(page.locator(".as-section h2").first).to_contain_text(skill)
    expect(page.locator(".as-section h2").first).to_contain_text("mean of Counting and Colour")
    page.wait_for_url(re.compile(r"skill=counting,colour&measure=accuracy~assay$"))
    page.reload()
    expect(page.locator(".as-section h2").first).to_contain_text("mean of Counting and Colour")


def test_the_heatmap_follows_and_differences_can_be_reached_with_the_keyboard(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}boards?benchmark=ratings", width=390)
    expect(page.locator(".as-heat")).to_be_attached()
    region = page.get_by_role("region", name="Metric against metric")
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
    page.locator(".as-page a", has_text="Ratings").first.click()
    expect(page.locator("#ratings")).to_be_in_viewport()


def test_a_refused_form_keeps_what_was_filled_in(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('boards')}submit")
    expect(page.get_by_role("button", name="Submit module")).to_be_enabled()
    page.get_by_label("Signed as").first.fill("A group")
    page.get_by_role("button", name="Submit module").click()
    expect(page.get_by_role("alert")).to_contain_text("No archive is chosen")
    expect(page.get_by_label("Signed as").first).to_have_value("A group")


def test_pins_and_chips_change_the_view_and_the_address_without_loading_the_page_again(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('boards')}boards?benchmark=ratings&kind=metric&columns=plcc~paper")
    page.evaluate("window.asSame = true")
    row = page.locator(".as-board tr", has_text="TIFA")
    row.get_by_role("link", name="Pin TIFA").click()
    expect(page.locator(".as-board tbody").first).to_contain_text("TIFA")
    page.wait_for_url(re.compile(r"pin=made-up-0008%2FTIFA"))
    expect(row.get_by_role("link", name="Unpin TIFA")).to_be_focused()
    page.get_by_role("link", name="Remove run by Assay").click()
    expect(page.get_by_role("group", name="Filters")).to_have_count(0)
    expect(page.get_by_label("Entries")).to_have_value("All entries")
    assert "kind=" not in page.url
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
    for name, shown in (
        ("All pairs", "#matrix"),
        ("Skills", ".as-empty"),
        ("Examples", ".as-empty"),
    ):
        page.get_by_role("tab", name=name).click()
        expect(page.locator(shown).first).to_be_visible()
        expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
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


# Index and skills.


def weight(page: Page, benchmark: str) -> str:
    return page.locator(f"#as-w-{benchmark} input[type=number]").input_value()


def test_weights_make_a_link_that_restores_them(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('index')}index")
    lacking = page.locator(".as-i-lacks", has_text="Contrast pairs").first
    expect(lacking).to_be_visible()
    page.locator("#as-w-accuracy input[type=number]").fill("0")
    expect(page.locator(".as-aside", has_text="on all 4 benchmarks")).to_be_visible()
    page.locator("#as-w-graphs input[type=range]").fill("2.5")
    page.wait_for_url(re.compile(r"/index\?w=graphs:2\.5,.*accuracy:0$"))
    index = page.locator(".as-i-value b").first.text_content()

    other = open_page(page.url, ".as-index")
    assert weight(other, "graphs") == "2.5"
    assert weight(other, "accuracy") == "0"
    expect(other.locator(".as-i-value b").first).to_have_text(index or "")

    page.get_by_role("button", name="Equal weights").click()
    page.wait_for_url(re.compile(r"/index$"))
    assert weight(page, "graphs") == "1"
    assert weight(page, "genai_527") == "0"


def test_an_unusable_link_is_answered_with_remarks(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('index')}index?w=graphs:nan,<b>x</b>:1&order=nothing")
    expect(page.locator(".as-notice")).to_have_count(3)
    assert weight(page, "graphs") == "1"


def test_the_download_is_the_table_with_its_weights(
    sites: Sites, open_page: Opener, tmp_path: Path
) -> None:
    page = open_page(f"{sites('index')}index?w=graphs:3")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert download.value.suggested_filename == "index.csv"
    saved = tmp_path / "index.csv"
    download.value.save_as(saved)
    lines = saved.read_text("utf-8").splitlines()
    assert lines[0].startswith("metric,version,submitter")
    assert any(",graphs," in line and ",3.0," in line for line in lines)


def test_a_typed_word_gives_an_answer_whose_link_restores_it(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('skills')}skills")
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

    other = open_page(page.url)
    expect(other.locator(".as-answers .as-leader").nth(1)).to_have_text(best or "")
    expect(other.locator(".as-part").first).to_be_visible()


def test_two_presses_lead_from_the_skills_to_images_where_the_affordable_metric_fails(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('skills')}skills")
    page.get_by_role("link", name="Spatial relations").click()
    card = page.locator(".as-answers .as-card", has_text="Best affordable")
    link = card.get_by_role("link", name="Images where it fails")
    expect(link).to_have_attribute(
        "href",
        re.compile(
            r"\./compare\?benchmark=croc&a=.+&skill=spacial_relation&show=failures&view=examples"
        ),
    )


def test_a_weight_moves_the_list_and_the_link(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('skills')}skills?skill=counting")
    expect(page.locator(".as-skill-list").first).to_be_visible()
    page.get_by_role("button", name="Weights").click()
    page.locator("#as-w-gecko input[type=number]").fill("0")
    page.wait_for_url(re.compile(r"gecko:0"))
    expect(page.locator(".as-skill-list").first).to_contain_text("PickScore")


def test_the_page_of_a_metric_copies_its_metadata(sites: Sites, browser: Browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{sites('skills')}skills?skill=counting")
    page.locator(".as-answers .as-leader a").first.click()
    expect(page).to_have_url(re.compile(r"/metric\?id=made-up-"))
    block = page.locator("#hub .as-copyable")
    page.get_by_role("button", name="Copy Evaluation results for the Hub").click()
    expect(block.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == block.locator("pre").text_content()
    assert copied.startswith("- dataset:")
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
    assert "case=p" in page.url
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


# Models and what moved.


def test_a_form_leads_to_the_view_whose_link_restores_it(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('models')}models")
    page.get_by_label("Words in the prompt").fill("box")
    page.get_by_label("Skill", exact=True).select_option("count")
    page.get_by_text("Only some models").click()
    page.get_by_label("Aurora XL").check()
    page.get_by_label("Daub").check()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("group", name="Filters")).to_contain_text("2 of 5 models")
    assert re.search(r"skill=count", page.url) and page.url.count("models=") == 2
    expect(page.locator(".as-models tbody th.as-c-metric")).to_have_count(2)
    page.get_by_role("link", name="Remove 2 of 5 models").click()
    expect(page.locator(".as-models tbody th.as-c-metric")).to_have_count(5)
    expect(page.get_by_label("Words in the prompt")).to_have_value("box")


def test_from_a_figure_to_the_images_behind_it_and_to_one_prompt(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('models')}models")
    page.locator(".as-models tbody td a").nth(1).click()
    expect(page.locator("h1")).to_contain_text("Aurora XL")
    picture = page.locator("#images img").first
    expect(picture).to_be_visible()
    page.wait_for_function("() => document.querySelector('#images img').naturalWidth > 0")
    page.locator("#images h3 a").first.click()
    expect(page.get_by_role("navigation", name="Prompts")).to_be_visible()
    before = page.locator(".as-prompt").first.text_content()
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".as-prompt").first).not_to_have_text(before or "")
    assert "skill=count" in page.url


def test_a_disagreement_leads_to_the_two_models(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('models')}models", "#disagreements")
    page.locator("#disagreements").get_by_role("link", name="Compare the two").first.click()
    expect(page.locator(".as-verdict")).to_contain_text("is better")
    page.get_by_role("link", name="Swap the two").click()
    page.wait_for_url(re.compile(rf"a={IDS[1]}&b={IDS[0]}"))


def test_a_board_leads_to_what_moved_and_nothing_runs_over_the_edge(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('moved')}boards?benchmark=ratings", width=390)
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


def test_another_measure_is_chosen_and_goes_into_the_address(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('moved')}moved?benchmark=ratings")
    expect(page.locator(".as-moved tbody tr")).to_have_count(DONE)
    choice = page.get_by_label("Measure")
    choice.click()
    page.get_by_role("option", name="Pairwise accuracy").first.click()
    page.wait_for_url("**measure=accuracy~paper**")
    expect(page.locator(".as-moved thead")).to_contain_text("Pairwise accuracy")


def test_the_table_is_reached_by_keyboard(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('moved')}moved?benchmark=ratings")
    region = page.get_by_role("region", name="What moved")
    region.focus()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "What moved"
