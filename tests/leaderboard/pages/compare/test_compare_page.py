"""The page of two metrics: the board's own numbers, every state, and nothing that strangers wrote."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.comparison import figures
from leaderboard.pages.boards.query import BoardQuery
from leaderboard.pages.compare.compare_page import metric_options
from leaderboard.pages.compare.query import CompareQuery, Opponents, opponents
from leaderboard.pages.compare.rows import shown
from leaderboard.pages.compare.view import compare_view
from leaderboard.pages.reading import BoardIndex, Reader, View, view_of
from leaderboard.publication.snapshot import Board
from leaderboard.ranking.comparing import NO_CONTRIBUTIONS, TOO_FEW
from leaderboard.ranking.orders import Orders
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.synthetic import NASTY, cards, fill, snapshot

FIRST, SECOND = "made-up-0000/CLIPScore", "made-up-0001/BLIP2-ITM"
STRANGER = f"made-up-0010/{NASTY}"
CONSTANT = "made-up-0011/always-half"
ONLY_ON_RATINGS = "made-up-0002/VQAScore"


@pytest.fixture(scope="module")
def view() -> View:
    return Reader(fill(memory_store()), cards()).view()


@pytest.fixture(scope="module")
def without_draws() -> View:
    return view_of(snapshot(), cards(), Orders(memory_store()))


def asked(
    view: View, board: str, a: str = "", b: str = "", *, measure: str = "", skill: str = ""
) -> Opponents:
    return opponents(
        CompareQuery(BoardQuery(benchmark=board, skill=skill, measure=measure), a, b), view
    )


def html(
    view: View, board: str, a: str = "", b: str = "", *, measure: str = "", skill: str = ""
) -> str:
    return compare_view(asked(view, board, a, b, measure=measure, skill=skill), view)


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


# The numbers.


@pytest.mark.parametrize("skill", ["", "counting", "counting,colour"])
def test_the_test_is_that_of_the_board(view: View, skill: str) -> None:
    pair = asked(view, "ratings", FIRST, SECOND, skill=skill)
    rows = shown(pair.choice, FIRST, SECOND, view)
    ranked = view.orders.ranked(pair.choice.board.card, pair.choice.slices())
    at = {cell.entry_id: place for place, cell in enumerate(ranked.cells)}
    assert ranked.ordering.tests is not None
    assert rows.chosen.p_value == ranked.ordering.tests.p_value[at[FIRST], at[SECOND]]
    assert rows.chosen.p_corrected == ranked.ordering.corrected[at[FIRST], at[SECOND]]
    values = [ranked.cells[at[entry]].value or 0.0 for entry in (FIRST, SECOND)]
    assert rows.chosen.difference == values[0] - values[1]


def test_skills_are_corrected_over_the_skills_and_measures_over_the_measures(view: View) -> None:
    pair = asked(view, "ratings", FIRST, SECOND)
    rows = shown(pair.choice, FIRST, SECOND, view)
    assert [row.skill for row in rows.skills] == list(pair.choice.board.card.skills)
    assert {row.measure for row in rows.measures} == {"plcc", "accuracy"}
    assert {row.correction for row in (*rows.skills, *rows.measures)} == {"benjamini_hochberg"}
    assert rows.chosen.correction == "holm"
    assert all(row.p_corrected >= row.p_value for row in rows.measures)


def test_the_head_line_says_who_is_better_by_how_much_and_by_what_test(view: View) -> None:
    pair = asked(view, "ratings", FIRST, SECOND)
    row = shown(pair.choice, FIRST, SECOND, view).chosen
    said = plain(html(view, "ratings", FIRST, SECOND))
    value, low, high = figures(row.difference, row.ci_low, row.ci_high)
    assert f"CLIPScore has {value} [{low}, {high}] over BLIP2-ITM" in said
    assert "sign flips of" in said
    assert "Holm over 45 pairs of the whole board, without filters: p " in said
    assert "the same figures, before the board's correction over its 45 pairs" in said
    page = html(view, "ratings", FIRST, SECOND).split('id="measures"')[1]
    assert "<span>d<sub>z</sub></span>" in page.split("</thead>")[0]
    assert "Benjamini-Hochberg over 4 skills" in said


def test_a_clear_difference_is_said_to_be_one_whichever_way_round(view: View) -> None:
    last = "made-up-0009/DSG"
    for a, b in ((FIRST, last), (last, FIRST)):
        said = plain(html(view, "ratings", a, b))
        assert re.search(r"CLIPScore is better than DSG by 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", said)


def test_a_skill_of_too_few_items_is_shown_untested(view: View) -> None:
    pair = asked(view, "ratings", FIRST, SECOND)
    style = shown(pair.choice, FIRST, SECOND, view).skills[-1]
    assert (style.skill, style.untested) == ("style", TOO_FEW)
    assert style.p_value != style.p_value
    assert TOO_FEW in plain(html(view, "ratings", FIRST, SECOND))


def test_a_constant_metric_has_no_value_to_compare(view: View) -> None:
    said = plain(html(view, "ratings", FIRST, CONSTANT))
    assert "always-half has no value here" in said
    assert "All scores are equal" in said


def test_missing_scores_leave_dashes_where_clusters_would_be_counted(view: View) -> None:
    board = snapshot().boards["ratings"]
    cells = tuple(
        c.model_copy(update={"n_missing": 1}) if c.entry_id == SECOND else c for c in board.cells
    )
    index = BoardIndex(Board(card=board.card, cells=cells))
    lacking = View(view.entries, {"ratings": index}, Orders(fill(memory_store())))
    pair = asked(lacking, "ratings", FIRST, SECOND)
    row = shown(pair.choice, FIRST, SECOND, lacking).chosen
    assert row.tally is None
    assert row.p_value == shown(asked(view, "ratings", FIRST, SECOND).choice, FIRST, SECOND,
                                view).chosen.p_value  # fmt: skip
    page = compare_view(pair, lacking)
    assert "not counted: 1 score of BLIP2-ITM is missing" in plain(page)
    assert "as-tally" not in page.replace('class="as-c-tally"', "")


@pytest.mark.parametrize("others", [(), ("made-up-0003/PickScore",)])
def test_all_that_is_shown_is_linked_as_data_in_every_format(
    view: View, others: tuple[str, ...]
) -> None:
    query = CompareQuery(BoardQuery("ratings", "counting"), FIRST, STRANGER, others)
    page = compare_view(opponents(query, view), view)
    links = [
        unescape(one) for one in re.findall(r'<a class="as-button" download href="([^"]+)"', page)
    ]
    assert [one.rpartition("=")[2] for one in links] == ["csv", "parquet", "json"]
    for one in links:
        address, _, asked_for = one.partition("?")
        assert address == "./v1/compare"
        assert CompareQuery.from_params(dict(parse_qsl(asked_for))).a == FIRST
        assert opponents(CompareQuery.from_link(asked_for), view).further == others
    assert "data:" not in page


# Links.


def test_a_link_restores_the_state_it_was_made_from(view: View) -> None:
    pair = asked(view, "ratings", SECOND, STRANGER, measure="accuracy~assay", skill="counting")
    query = pair.query.to_query()
    again = opponents(CompareQuery.from_params(dict(parse_qsl(query[1:]))), view)
    assert (again.a, again.b, again.remarks) == (SECOND, STRANGER, ())
    assert again.query.to_query() == query
    assert CompareQuery.from_link(query) == pair.query


def test_without_a_link_the_two_best_of_the_first_board_are_compared(view: View) -> None:
    pair = asked(view, "")
    assert (pair.a, pair.b) == pair.options[:2]
    assert pair.choice.board.card.name == "ratings"


def test_the_other_metric_is_found_where_one_is_given(view: View) -> None:
    assert asked(view, "ratings", b=FIRST).a == SECOND
    assert asked(view, "ratings", SECOND).b == FIRST


def test_the_page_links_back_to_what_it_compares_by(view: View) -> None:
    assert "./boards?benchmark=ratings&amp;skill=counting" in html(
        view, "ratings", FIRST, SECOND, skill="counting"
    )


def test_metrics_of_one_name_can_be_told_apart_in_the_list(view: View) -> None:
    same = {e: view.entries[e].model_copy(update={"metric": "same", "version": ""})
            for e in (FIRST, SECOND)}  # fmt: skip
    doubled = View({**view.entries, **same}, view.boards, view.orders)
    labels = [label for label, _ in metric_options(asked(doubled, "ratings"), doubled)]
    assert len(set(labels)) == len(labels)


# States.


def test_a_metric_that_is_not_on_the_board_is_named(view: View) -> None:
    pair = asked(view, "graphs", FIRST, ONLY_ON_RATINGS)
    assert pair.b is None
    said = plain(compare_view(pair, view))
    assert "“VQAScore” has no result by this measure on Error graphs" in said
    assert "Choose two metrics" in said


def test_a_metric_that_lacks_one_of_several_skills_is_named(view: View) -> None:
    board = snapshot().boards["ratings"]
    left = [c for c in board.cells if (c.entry_id, c.skill) != (SECOND, "colour")]
    index = BoardIndex(Board(card=board.card, cells=tuple(left)))
    partly = View(view.entries, {"ratings": index}, view.orders)
    pair = asked(partly, "ratings", FIRST, SECOND, skill="counting,colour")
    assert SECOND not in pair.options
    assert "“BLIP2-ITM” has no result by this measure" in plain(compare_view(pair, partly))
    one = html(partly, "ratings", FIRST, SECOND, skill="counting")
    assert "Colour" not in plain(one.split('id="skills"')[1].split("</table>")[0])


@pytest.mark.parametrize("unknown", ["nobody/nothing", NASTY, "x" * 5000])
def test_an_unknown_id_is_said_briefly_and_is_harmless(view: View, unknown: str) -> None:
    page = html(view, "ratings", unknown, SECOND)
    assert "There is no metric with the id" in plain(page)
    assert "<img" not in page
    assert len(page) < 3000


def test_the_same_metric_twice_is_no_comparison(view: View) -> None:
    said = plain(html(view, "ratings", FIRST, FIRST))
    assert "The same metric twice" in said
    assert "p =" not in said


def test_an_empty_board_says_so(view: View) -> None:
    assert "No metric published yet" in html(view, "unused")


def test_without_published_draws_values_are_shown_and_no_test(without_draws: View) -> None:
    page = html(without_draws, "ratings", FIRST, SECOND)
    assert "Nothing to test with" in page
    assert "0.720" in page
    assert NO_CONTRIBUTIONS in plain(page)
    assert "as-whisker" not in page


def test_an_unknown_measure_or_skill_is_said(view: View) -> None:
    said = plain(html(view, "ratings", FIRST, SECOND, measure="nonsense", skill="unheard-of"))
    assert "There is no measure “nonsense”" in said
    assert "unheard-of" in said


def test_a_hostile_name_is_text_wherever_it_stands(view: View) -> None:
    page = html(view, "ratings", STRANGER, FIRST)
    assert "<img" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "{{" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_where_lower_is_better_the_smaller_value_wins(view: View) -> None:
    pair = asked(view, "tiny", FIRST, "made-up-0003/PickScore")
    row = shown(pair.choice, FIRST, "made-up-0003/PickScore", view).chosen
    assert row.difference > 0
    assert row.advantage[0] == -row.difference
    assert "PickScore has 0." in plain(compare_view(pair, view))


def test_headers_have_a_scope_and_drawings_a_name(view: View) -> None:
    page = html(view, "ratings", FIRST, SECOND)
    assert all('scope="' in th for th in re.findall(r"<th[ >][^>]*", page))
    assert all("aria-" in svg for svg in re.findall(r"<svg[^>]*", page))


# In a browser.


@pytest.fixture(scope="module")
def site(serve: Serve) -> str:
    return serve(fill(memory_store()), cards())


@pytest.mark.slow
@pytest.mark.browser
def test_choosing_another_metric_and_swapping_change_view_and_address(
    site: str, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(f"{site}compare?benchmark=ratings&a=made-up-0000%2FCLIPScore")
    expect(page.locator(".as-verdict")).to_contain_text("CLIPScore and BLIP2-ITM")
    page.get_by_label("Metric B").click()
    page.get_by_role("option", name="DSG", exact=True).click()
    expect(page.locator(".as-verdict")).to_contain_text("CLIPScore is better than DSG")
    page.wait_for_url(re.compile(r"a=made-up-0000%2FCLIPScore&b=made-up-0009%2FDSG"))
    page.get_by_role("button", name="Swap").click()
    page.wait_for_url(re.compile(r"a=made-up-0009%2FDSG&b=made-up-0000%2FCLIPScore"))
    expect(page.locator(".as-sides li").first).to_contain_text("DSG")
    page.get_by_label("Benchmark").click()
    page.get_by_role("option", name="Error graphs").click()
    expect(page.locator("#verdict h2")).to_contain_text("Error graphs")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV of comparison").click()
    assert download.value.suggested_filename == "graphs-compare.csv"
    page.close()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_names_neither_run_nor_widen_the_page(
    site: str, browser: Browser, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    problems: list[str] = []
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("pageerror", lambda error: problems.append(str(error)))
    link = CompareQuery(BoardQuery(benchmark="ratings"), STRANGER, FIRST).to_query()
    page.goto(f"{site}compare{link}")
    expect(page.locator(".as-verdict")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert problems == []
    page.close()


@pytest.mark.slow
@pytest.mark.browser
def test_on_a_phone_the_result_comes_early_and_the_other_choosers_unfold(
    site: str, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{site}compare?benchmark=ratings")
    verdict = page.locator(".as-verdict")
    expect(verdict).to_be_visible()
    box = verdict.bounding_box()
    assert box is not None and box["y"] < 844, "the result begins below the first screen"
    expect(page.get_by_label("Metric B")).to_be_visible()
    expect(page.get_by_label("Metric C (optional)")).to_be_hidden()
    page.get_by_text("Skills, measure, and more metrics").click()
    expect(page.get_by_label("Metric C (optional)")).to_be_visible()
    page.get_by_role("combobox", name="Measure").click()
    page.get_by_role("option", name="Pearson r").click()
    expect(page.locator("#verdict h2")).to_contain_text("Pearson r")
    expect(page.get_by_label("Metric D (optional)")).to_be_visible()
    page.close()
