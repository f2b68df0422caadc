"""Whose an entry is and what is flagged about it, wherever the entry is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leaderboard.desk import UNNAMED
from leaderboard.pages.boards.filters import Filters
from leaderboard.pages.boards.query import BoardQuery, resolve
from leaderboard.pages.boards.view import board_view
from leaderboard.pages.compare.query import CompareQuery, opponents
from leaderboard.pages.compare.view import compare_view
from leaderboard.pages.index.base import index_base
from leaderboard.pages.index.csv import index_csv
from leaderboard.pages.index.marks import Strips
from leaderboard.pages.index.query import IndexQuery, resolve_index
from leaderboard.pages.index.view import index_view
from leaderboard.pages.overview.lately import lately
from leaderboard.pages.overview.standings import leader_cards, matrix
from leaderboard.pages.queue.table import queue_table
from leaderboard.pages.reading import View, view_of
from leaderboard.pages.shown.csv_export import board_csv
from leaderboard.pages.shown.flags import (
    MEANINGS,
    SAME_CONTENT,
    SAME_SCORES,
    TEMPLATE,
    flags_of,
    same,
)
from leaderboard.pages.shown.identities import Identity, latest_entries
from leaderboard.pages.shown.signatures import signature
from leaderboard.pages.trust.cards import trust_page
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.orders import Orders
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.index.index_fixture import index_view_of
from tests.leaderboard.pages.synthetic import (
    ACCOUNTS,
    COPIED,
    METRICS,
    NASTY,
    NOW,
    SAME,
    UNSANDBOXED,
    cards,
    fill,
    snapshot,
    submission,
)

LOOSE = "unsandboxed"
MET = [flag for flag in MEANINGS if flag != TEMPLATE]
"""Flags that entries of the made-up store have."""


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(), cards(), Orders(fill(memory_store())))


def entry_at(view: View, place: int) -> Entry:
    return view.entries[f"made-up-{place:04d}/{METRICS[place]}"]


def board(view: View, benchmark: str = "ratings") -> str:
    return board_view(resolve(BoardQuery(benchmark), view.boards), view)


def row_of(html: str, place: int) -> str:
    """The row of a metric in the first table that has it."""
    return next(row for row in html.split("<tr") if f">{METRICS[place]}</bdi>" in row)


def with_flags(view: View, entry_id: str, **flags: object) -> View:
    """A view in which one entry is another's."""
    changed = view.entries[entry_id].model_copy(update=flags)
    return replace(view, entries={**view.entries, entry_id: changed})


# Signatures.


@pytest.mark.parametrize(
    ("signed", "account", "shown"),
    [
        ("A group", "hub:ada", '<bdi>A group</bdi> <span class="as-account">hub:ada</span>'),
        ("ada", "hub:ada", '<span class="as-account">hub:ada</span>'),
        ("", "hub:ada", '<span class="as-account">hub:ada</span>'),
        ("hub:root", "hub:ada", '<bdi>hub:root</bdi> <span class="as-account">hub:ada</span>'),
        ("A group", "", "<bdi>A group</bdi>"),
        ("Assay", "assay:assay", "<bdi>Assay</bdi>"),
    ],
)
def test_the_account_stands_with_a_signature(signed: str, account: str, shown: str) -> None:
    assert signature(signed, account) == shown


def test_a_signature_cannot_be_markup() -> None:
    assert "<img" not in signature(NASTY, NASTY)


def test_rows_of_a_board_say_whose_they_are(view: View) -> None:
    html = board(view)
    assert f'<span class="as-account">{ACCOUNTS[COPIED]}</span>' in row_of(html, COPIED)
    assert f"by A group ({ACCOUNTS[COPIED]})" in row_of(html, COPIED)
    assert "as-account" not in row_of(html, 0)
    assert "assay:assay" not in html


def test_every_page_with_a_submitter_has_the_account(view: View) -> None:
    copied = f"made-up-{COPIED:04d}/{METRICS[COPIED]}"
    first = f"made-up-0000/{METRICS[0]}"
    compared = opponents(CompareQuery(BoardQuery("ratings"), first, copied), view)
    pages = {
        "matrix": matrix(view),
        "lately": lately(view, (), (), NOW, 50),
        "compare": compare_view(compared, view),
        "trust": trust_page(view.entries.values(), cards()),
    }
    assert [name for name, html in pages.items() if ACCOUNTS[COPIED] not in html] == []
    owned = with_flags(view, first, account="hub:leader")
    assert "hub:leader" in leader_cards(owned)
    choice = resolve(BoardQuery("ratings"), view.boards)
    cells = [cell for of_slice in choice.slices() for cell in of_slice]
    assert ACCOUNTS[COPIED] in board_csv(cells, view.entries, choice.board)


def test_the_queue_says_whose_a_submission_is() -> None:
    own = submission(COPIED, "grey", ("ratings",))
    html = queue_table([Status(submission=own, state=State.QUEUED, since=NOW, by="w")], [], {}, NOW)
    assert f'by <bdi>A group</bdi> <span class="as-account">{ACCOUNTS[COPIED]}</span>' in html


def test_the_same_signature_of_another_account_is_another_metric(view: View) -> None:
    mine = entry_at(view, 0)
    theirs = mine.model_copy(update={"entry_id": "x/y", "account": "hub:eve"})
    assert Identity.of(mine) != Identity.of(theirs)
    assert len(latest_entries([mine, theirs])) == 2
    ours = mine.model_copy(update={"account": "assay:assay"})
    assert Identity.of(ours) == Identity.of(mine)


def test_a_search_finds_what_an_account_sent(view: View) -> None:
    kept = Filters(search=ACCOUNTS[COPIED]).kept(view.entries, view.entries, cards()["ratings"])
    assert kept == {entry_at(view, COPIED).entry_id}


def test_the_index_says_whose_a_metric_is_and_what_is_flagged() -> None:
    found = index_view_of()
    entry_id = next(e for e, entry in found.entries.items() if entry.metric == "BLIP2-ITM")
    changed = with_flags(
        found, entry_id, account="hub:ada", same_scores_as={"ratings": ("sent-0001",)}
    )
    base = index_base(changed)
    choice = resolve_index(IndexQuery("", ""), base.boards, base.left_out)
    html = index_view(base, Strips.of(base), choice)
    assert '<span class="as-account">hub:ada</span>' in html
    assert html.count("./queue?submission=sent-0001") == 1
    assert f"<b>{SAME_SCORES}:</b> {MEANINGS[SAME_SCORES]}" in html
    assert "hub:ada" in index_csv(base, choice, changed.entries)


# Flags.


def test_flags_stand_on_the_rows_they_are_about_and_nowhere_else(view: View) -> None:
    html = board(view)
    for place in range(len(METRICS)):
        if METRICS[place] == NASTY:
            continue
        row = row_of(html, place)
        assert (f">{SAME_CONTENT}</span>" in row) is (place == COPIED)
        assert (f">{SAME_SCORES}</span>" in row) is (place == SAME)
        assert (f">{LOOSE}</span>" in row) is (place == UNSANDBOXED)
    assert 'href="./queue?submission=made-up-0000"' in row_of(html, COPIED)
    assert 'href="./queue?submission=made-up-0002"' in row_of(html, SAME)


def test_an_unchanged_template_is_marked_on_its_row(view: View) -> None:
    html = board(with_flags(view, f"made-up-0000/{METRICS[0]}", template="plain"))
    marked = f">{TEMPLATE}</span>"
    assert marked in row_of(html, 0) and html.count(marked) == 1
    assert f"<b>{TEMPLATE}:</b> {MEANINGS[TEMPLATE]}" in html
    assert marked not in board(view)


def test_the_legend_explains_the_flags_that_are_met(view: View) -> None:
    html = board(view)
    assert all(f"<b>{flag}:</b> {MEANINGS[flag]}" in html for flag in MET)
    elsewhere = board(view, "graphs")
    assert f"<b>{SAME_CONTENT}:</b>" in elsewhere
    assert f"<b>{SAME_SCORES}:</b>" not in elsewhere
    assert f"<b>{LOOSE}:</b>" not in elsewhere
    assert not any(f"<b>{flag}:</b>" in board(view, "tiny") for flag in (SAME_SCORES, LOOSE))


def test_overview_comparison_and_trust_page_have_the_flags_too(view: View) -> None:
    shown = matrix(view)
    assert f">{SAME_CONTENT}</span>" in row_of(shown, COPIED)
    assert f">{LOOSE}</span>" in row_of(shown, UNSANDBOXED)
    assert f"<b>{LOOSE}:</b>" in shown
    a, b = (f"made-up-{place:04d}/{METRICS[place]}" for place in (COPIED, SAME))
    compared = compare_view(opponents(CompareQuery(BoardQuery("ratings"), a, b), view), view)
    assert f">{SAME_SCORES}</span>" in compared
    assert f"<b>{SAME_CONTENT}:</b>" in compared
    trust = trust_page(view.entries.values(), cards())
    assert all(f">{flag}</span>" in trust for flag in MET)


def test_content_of_a_private_submission_is_flagged_without_a_link() -> None:
    assert "href" not in same(SAME_CONTENT, (UNNAMED,))
    assert "submission=made-up-0002" in same(SAME_CONTENT, (UNNAMED, "made-up-0002"))


def test_flags_of_several_entries_of_one_metric_are_put_together(view: View) -> None:
    one = entry_at(view, 0).model_copy(update={"same_scores_as": {"graphs": ("a-1", "b-1")}})
    two = entry_at(view, 0).model_copy(update={"same_scores_as": {"ratings": ("b-1", "c-1")}})
    assert flags_of([one, two]) == {SAME_SCORES: ("a-1", "b-1", "c-1")}
    assert flags_of([one, two], {"ratings"}) == {SAME_SCORES: ("b-1", "c-1")}
    assert flags_of([one, two], ()) == {}
