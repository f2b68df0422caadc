"""The first page: the best of the index, the way in by skill, and what the ledger says of late."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from leaderboard.ledger.chronicle import FIRST, Line
from leaderboard.pages.index.base import index_base
from leaderboard.pages.overview.index_first import MOST_ROWS, index_first
from leaderboard.pages.overview.lately import lately
from leaderboard.pages.overview.overview_page import opening, overview
from leaderboard.pages.reading import View, view_of
from leaderboard.pages.shown.markup import number
from leaderboard.ranking.orders import Orders
from leaderboard.reevaluation.history import ANNOUNCED
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.index.index_fixture import NASTY, NOW, index_view_of
from tests.leaderboard.pages.synthetic import cards, fill, snapshot


@pytest.fixture(scope="module")
def view() -> View:
    return index_view_of()


@pytest.fixture(scope="module")
def boards() -> View:
    return view_of(snapshot(), cards(), Orders(fill(memory_store())))


@pytest.fixture(scope="module")
def empty() -> View:
    return view_of(None, cards(), Orders(memory_store()))


# The best of the index.


def test_the_best_of_the_index_are_those_of_the_index_page_with_interval_and_range(
    view: View,
) -> None:
    base = index_base(view)
    weights = {name: board.weight for name, board in base.boards.items()}
    ranked = [one for one in base.standings(weights) if one.standing.rank is not None]
    html = index_first(base)
    rows = html.partition("<tbody>")[2].split("<tr>")[1:]
    assert len(rows) == min(MOST_ROWS, len(ranked)) > 3
    for row, one in zip(rows, ranked, strict=False):
        index, rank = one.standing.index, one.standing.rank
        assert rank is not None
        assert f"<b>{number(index.value)}</b>" in row
        assert number(index.low) in row and number(index.high) in row
        shown = str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"
        assert f'<span class="as-range">{shown}</span>' in row
    assert f"{len(ranked)} metrics on all" in html
    assert 'href="./index"' in html


def test_who_lacks_a_benchmark_of_the_index_is_not_among_its_best(view: View) -> None:
    html = index_first(index_base(view))
    assert "<bdi>VQAScore</bdi>" in html
    assert not any(f"<bdi>{name}</bdi>" in html for name in ("HPSv2", "TIFA", "only simulated"))


def test_names_of_strangers_are_harmless_in_it(view: View) -> None:
    html = index_first(index_base(view)) + opening(view) + lately(view, (), (), NOW, 50)
    assert "<img" not in html and "${" not in html and "\u202e" not in html


def test_where_nothing_is_published_there_is_no_index_and_no_skill(empty: View) -> None:
    assert index_first(index_base(empty)) == ""
    html = opening(empty)
    assert "Which text-to-image metrics can be trusted?" in html
    assert "Which metric for" not in html and "./skills" not in html
    assert lately(empty, (), (), NOW) == ""


# The way in.


def test_every_skill_with_results_is_a_link_to_its_metrics(boards: View) -> None:
    html = overview(boards.group(simulated=True), NOW)
    assert "Which metric for…?" in html
    linked = set(re.findall(r'href="\./skills\?skill=([^"&]+)"', html))
    assert {"counting", "spatial", "text", "colour"} <= linked


# What the ledger says.


def line(n: int, action: str, subject: str, reason: str = "", minutes: int = 0) -> Line:
    return Line(
        n=n, at=NOW - timedelta(minutes=minutes), by="olga", action=action, subject=subject,
        reason=reason, record=FIRST, before=FIRST,
    )  # fmt: skip


def said(view: View, *lines: Line, earlier: tuple[str, ...] = (), most: int = 6) -> list[str]:
    return re.findall(r"<li>.*?</li>", lately(view, lines, earlier, NOW, most))


def test_what_was_taken_off_is_said_with_its_reason_and_its_place_in_the_ledger(
    empty: View,
) -> None:
    hidden, withdrawn = said(
        empty,
        line(1, "withdrawn", "grey-0123456789", minutes=5),
        line(2, "hidden", "green-0123456789", "It is a copy.", minutes=1),
    )
    assert "<code>green-0123456789</code> hidden" in hidden and "It is a copy." in hidden
    assert "./ledger?subject=green-0123456789" in hidden
    assert "<code>grey-0123456789</code> withdrawn by its author" in withdrawn


def test_a_benchmark_that_was_evaluated_again_leads_to_what_moved_where_that_is_kept(
    boards: View,
) -> None:
    again = line(1, ANNOUNCED, "ratings", "A wrong image was replaced.")
    first = said(boards, again)[0]
    assert "<b>Ratings</b> re-evaluated" in first and "A wrong image was replaced." in first
    assert "what moved" not in first
    assert "./moved?benchmark=ratings" in said(boards, again, earlier=("ratings",))[0]
    assert "what moved" not in said(boards, again, earlier=("graphs",))[0]


def test_other_lines_and_benchmarks_that_are_gone_are_left_to_the_ledger(boards: View) -> None:
    others = [
        line(1, "queued", "grey-0123456789"), line(2, "ban", "hub:eve", "Sent miners."),
        line(3, "policy", "policy"), line(4, ANNOUNCED, "gone", "It is gone."),
    ]  # fmt: skip
    assert said(boards, *others, most=50) == said(boards, most=50)


def test_the_newest_come_first_and_only_so_many_are_shown(empty: View) -> None:
    lines = [line(n, "hidden", f"green-{n:010}", minutes=20 - n) for n in range(1, 11)]
    found = said(empty, *lines, most=4)
    assert len(found) == 4
    assert [re.findall(r"green-\d+", one)[0] for one in found] == [
        f"green-{n:010}" for n in (10, 9, 8, 7)
    ]


def test_a_reason_is_shown_as_text_and_cut(boards: View) -> None:
    html = "".join(said(boards, line(1, "hidden", "green-0123456789", NASTY + "x" * 400)))
    assert "<img" not in html and "${" not in html and "\u202e" not in html
    assert "x" * 200 not in html and "&lt;img" in html
