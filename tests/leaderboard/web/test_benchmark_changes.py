"""Changes between two revisions: who is where, who waits, and the board as it was."""

from __future__ import annotations

import csv
import io

import pytest

from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.changes import Movement
from leaderboard.states import State
from leaderboard.tables import to_csv
from leaderboard.views.changes import (
    ChangesQuery,
    Comparison,
    comparison,
    moved_address,
    moved_table,
    progress_of,
)
from leaderboard.views.submit import SubmitQuery
from leaderboard.web.benchmark_tab import benchmark_below, benchmark_tab, changes_html
from leaderboard.web.page import Context
from leaderboard.web.submission_controls import submit_parts
from tests.kit.boards import METRICS, NASTY, NOW, event, keep
from tests.kit.html import Node, named, parse, read
from tests.leaderboard.web import moved_fixture

CHANGES = f"./?tab=benchmark:ratings&view=changes&from={moved_fixture.BEFORE}"
EARLIER = CHANGES.replace("changes", "earlier")


@pytest.fixture(scope="module")
def site() -> Context:
    return moved_fixture.moved_site()


def found(site: Context, **asked: str) -> tuple[Comparison, Movement]:
    compared = comparison(site, ChangesQuery("ratings", **asked))
    assert compared is not None and compared.movement is not None
    return compared, compared.movement


def page_of(site: Context, view: str = "changes") -> Node:
    shown, _ = found(site)
    html = changes_html(shown, progress_of(site, "ratings", shown.then.tag), view)
    return parse(html)


def told_on(site: Context, benchmark: str) -> Node:
    """The board of now."""
    return read(benchmark_tab(site, {"benchmark": benchmark}).html)


def test_every_metric_on_both_boards_has_its_line_with_both_values(site: Context) -> None:
    shown, moved = found(site)
    page = page_of(site)
    named(page)
    assert page.one("[role=region]")["tabindex"] == "0"
    assert len(moved.moved) == len(page.all("svg.as-dumbbell")) == moved_fixture.DONE
    first = moved.moved[0]
    row = page.one(".as-moved").row(first.after.metric)
    for words in (f"{first.then.value:.3f}", f"{first.now.value:.3f}",
                  f"{first.then.rank_low}–{first.then.rank_high} → "):  # fmt: skip
        assert words in row.text
    lines = list(csv.DictReader(io.StringIO(to_csv(moved_table(shown)))))
    assert len(lines) == moved_fixture.DONE and lines[0]["from"] == moved_fixture.BEFORE
    values = [float(lines[0][name]) for name in ("value_then", "value_now")]
    assert values == [first.then.value, first.now.value]


def test_it_says_how_far_the_re_evaluation_is_until_all_is_done(site: Context) -> None:
    page = page_of(site)
    for words in ("8 of 11", "2 metrics in the queue", "For 1 metric"):
        assert words in page
    told = told_on(site, "ratings").one(".as-note[role=status]")
    assert "8 of 11" in told and {CHANGES, EARLIER} <= set(told.links())
    assert not told_on(site, "graphs").links("./?tab=benchmark:graphs&view=changes")
    done = moved_fixture.moved_site(done=len(METRICS) - 1)
    assert "re-evaluated." not in page_of(done)
    board = told_on(done, "ratings")
    assert CHANGES in board.links() and not board.all(".as-note[role=status]")


def test_who_waits_is_told_from_who_left_and_who_came(site: Context) -> None:
    _, moved = found(site)
    names = [{e.metric for e in of} for of in (moved.left, moved.waiting, moved.came)]
    assert names == [{"withdrawn-metric"}, {"TIFA", "DSG", NASTY}, {"always-half"}]


def test_the_whole_earlier_board_is_on_the_page_but_for_what_an_operator_hid(site: Context) -> None:
    page = page_of(site, "earlier")
    assert "withdrawn-metric" in page.names and len(page.all("tbody .as-rk")) >= 12
    assert f"--revision {moved_fixture.BEFORE}" in page and "200 bootstrap resamples" in page
    assert not page.all("a.as-sort") and not page.all(".as-pin")
    other = moved_fixture.moved_site()
    hidden = moved_fixture.own(0)
    assert hidden.name in page_of(other, "earlier").names
    gone = event(State.HIDDEN, at=NOW, by="hub:olga", reason="A name that insults.")
    Ledger(other.store).append(hidden.submission_id, [gone])
    before = found(other)[0].then
    assert not [name for name in before.entries if name.startswith(hidden.submission_id)]


def test_a_link_with_what_does_not_exist_shows_what_does(site: Context) -> None:
    shown, _ = found(site, since="../../x", until="nothing", skill="<b>", measure="what")
    assert (shown.query.since, shown.query.until, shown.query.skill) == (
        moved_fixture.BEFORE,
        "",
        "",
    )
    assert shown.selector == site.cards["ratings"].headline
    assert comparison(site, ChangesQuery("graphs")) is None
    nothing = read(benchmark_tab(site, {"benchmark": "graphs", "view": "changes"}).html)
    assert "No earlier revision" in nothing and "./?tab=benchmark:graphs" in nothing.links()
    asked = found(site, skill="counting", measure="accuracy~assay")[0].query
    query = f"?benchmark=ratings&from={moved_fixture.BEFORE}&skill=counting&measure=accuracy~assay"
    assert (asked.to_query(), moved_address("ratings", moved_fixture.BEFORE)) == (query, CHANGES)


def test_a_submission_leads_to_its_old_results() -> None:
    site = moved_fixture.moved_site()
    keep(site.store, {f"results/made-up-0000/at/{moved_fixture.BEFORE}/ratings.json": b"{}"})
    pages = [
        read(submit_parts(site, None, SubmitQuery(submission_id=ident)).html[1])
        for ident in ("made-up-0000", "made-up-0001")
    ]
    assert (
        CHANGES in pages[0].links()
        and f"report made-up-0000 --revision {moved_fixture.BEFORE}" in pages[0]
    )
    assert not pages[1].links("./?tab")


def test_two_earlier_boards_can_be_compared_with_each_other(site: Context) -> None:
    _, same = found(site, until=moved_fixture.BEFORE)
    assert same.kendall == pytest.approx(1.0)
    assert {one.difference for one in same.moved} == {0.0}
    assert (same.came, same.left, same.waiting) == ((), (), ())


@pytest.mark.parametrize("view", ["changes", "earlier"])
def test_the_address_says_what_is_compared_and_the_title_too(site: Context, view: str) -> None:
    asked = {"tab": "benchmark:ratings", "view": view, "from": "nothing", "skill": "counting"}
    shown = benchmark_tab(site, asked)
    query = {part.partition("=")[0]: part.partition("=")[2] for part in shown.query[1:].split("&")}
    assert query == {"tab": "benchmark:ratings", "view": view, "from": moved_fixture.BEFORE, "skill": "counting",
                     "measure": "srcc~assay"}  # fmt: skip
    assert shown.title == "Changes of Ratings"
    page = read(shown.html)
    tabs = {tab["href"]: tab["aria-current"] for tab in page.all("nav.as-tabs a")}
    assert [one for one, current in tabs.items() if current] == [f"./{shown.query}"]
    assert benchmark_below(site, asked).html == ""
    assert page.links("./v1/moved") if view == "changes" else page.all("#earlier table")
