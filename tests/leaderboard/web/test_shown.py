"""What all pages share: text and figures, axes and charts, whose an entry is, and its flags."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from benchmarks.statistics.content_effect import ChangeVerdict
from benchmarks.statistics.prompt_effect import Verdict
from leaderboard.publication.entries import (
    BLIND,
    LOOKUP,
    MEANINGS,
    MOVED,
    SAME_CONTENT,
    SAME_SCORES,
    TEMPLATE,
    Entry,
    Identity,
    flags_of,
    latest_entries,
)
from leaderboard.publication.measure_names import VARIANTS
from leaderboard.publication.reader import View
from leaderboard.records import Status
from leaderboard.rendering import escaped
from leaderboard.states import State
from leaderboard.tables import to_csv
from leaderboard.text import clean, number
from leaderboard.views.board_tables import board_table
from leaderboard.views.boards import Arrangement, BoardQuery, Filters, resolve
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.submissions import Moment, row_of
from leaderboard.web.benchmark_tab import board_html
from leaderboard.web.model_parts import signature
from tests.kit import boards
from tests.kit.html import Node, read
from tests.kit.store import memory_store
from tests.leaderboard.views.example_fixture import place_of
from tests.leaderboard.views.model_track import entry

LOOSE = "unsandboxed"
MET = {SAME_CONTENT: boards.COPIED, SAME_SCORES: boards.SAME, LOOSE: boards.UNSANDBOXED}
"""Flags of entries of the made-up store, and whose."""


# Text, figures and drawings.


def test_what_cannot_be_seen_is_dropped_and_figures_have_a_true_minus() -> None:
    assert clean("ρ 指标 é\u202e\u2066\x00\x1b\ufeff") == "ρ 指标 é"
    assert (clean("a\r\nb\tc"), clean("a\r\nb\tc", lines=True)) == ("a b c", "a\nb\tc")
    assert escaped("x" * 100, limit=10) == "xxxxxxxxx…"
    values = (-0.5, -0.0001, None, math.nan)
    assert [number(value) for value in values] == ["−0.500", "0.000", "—", "—"]


HERE = [*("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")]
FROM_DATA = [pytest.param(name, marks=pytest.mark.paper) for name in ("tifa160", "genai_527")]


@pytest.mark.first_quick
@pytest.mark.parametrize("name", [*HERE, *FROM_DATA])
def test_every_variant_that_a_protocol_emits_is_named(
    name: str, request: pytest.FixtureRequest
) -> None:
    data: Path | None = None if name in HERE else request.getfixturevalue("assay_data")
    benchmark = load_registry()[name]
    answers = benchmark.answers(data)
    scores = np.random.default_rng(0).normal(size=len(answers.pair_ids))
    table = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    rows = benchmark.evaluate(table, answers, n_resamples=2).rows
    assert {row.variant for row in rows} - {None} <= set(VARIANTS)


# Whose an entry is.


def entry_at(view: View, place: int) -> Entry:
    return view.entries[f"made-up-{place:04d}/{boards.METRICS[place]}"]


def board(view: View, benchmark: str = "ratings", opened: str = "") -> Node:
    arranged = Arrangement(opened=(opened,) if opened else ())
    query = BoardQuery(benchmark, arranged=arranged)
    return read(board_html(resolve(query, view.boards), view))


def details(view: View, place: int) -> Node:
    """What unfolds below the row of a metric."""
    return board(view, opened=entry_at(view, place).entry_id).one("tr.as-detail")


def compared(view: View, one: int, other: int) -> str:
    place = place_of(view, memory_store())
    a, b = (entry_at(view, k).entry_id for k in (one, other))
    return place.answer(CompareQuery(benchmark="ratings", a=a, b=b)).html


def with_flags(view: View, entry_id: str, **flags: object) -> View:
    changed = view.entries[entry_id].model_copy(update=flags)
    return replace(view, entries={**view.entries, entry_id: changed})


@pytest.mark.parametrize(
    ("signed", "account", "shown"),
    [("A group", "hub:ada", ("A group", "hub:ada")), ("ada", "hub:ada", ("", "hub:ada")),
     ("", "hub:ada", ("", "hub:ada")), ("hub:root", "hub:ada", ("hub:root", "hub:ada")),
     ("A group", "", ("A group", "")), ("Assay", "assay:assay", ("Assay", ""))],
)  # fmt: skip
def test_the_account_stands_with_a_signature(
    signed: str, account: str, shown: tuple[str, str]
) -> None:
    assert (
        signature(entry(0, "A").model_copy(update={"submitter": signed, "account": account}))
        == shown
    )


def test_every_place_that_shows_an_entry_says_whose_it_is(view: View) -> None:
    page, account = board(view), boards.ACCOUNTS[boards.COPIED]
    assert f"A group ({account})" in details(view, boards.COPIED)
    assert "hub:" not in details(view, 0) and "assay:assay" not in page
    choice = resolve(BoardQuery("ratings"), view.boards)
    cells = [cell for of_slice in choice.slices() for cell in of_slice]
    own = boards.submission(boards.COPIED, "grey", ("ratings",))
    status = Status(submission=own, state=State.QUEUED, since=boards.NOW, by="w")
    for html in (
        compared(view, boards.COPIED, 0), to_csv(board_table(cells, view.entries, choice.board)),
        row_of(status, Moment((), boards.NOW)).account,
    ):  # fmt: skip
        assert account in html
    kept = Filters(search=account).kept(view.entries, view.entries, boards.cards()["ratings"])
    assert kept == {entry_at(view, boards.COPIED).entry_id}


def test_the_same_signature_of_another_account_is_another_metric(view: View) -> None:
    mine = entry_at(view, 0)
    theirs = mine.model_copy(update={"entry_id": "x/y", "account": "hub:eve"})
    assert Identity.of(mine) != Identity.of(theirs)
    assert len(latest_entries([mine, theirs])) == 2
    assert Identity.of(mine.model_copy(update={"account": "assay:assay"})) == Identity.of(mine)


# Flags.


def flagged(view: View, flag: str) -> list[str]:
    return [m for i, m in enumerate(boards.METRICS) if flag in details(view, i).texts(".as-tag")]


def test_flags_stand_in_the_details_they_are_about_and_are_explained_where_met(view: View) -> None:
    page = board(view)
    for flag, place in MET.items():
        assert flagged(view, flag) == [boards.METRICS[place]]
        assert MEANINGS[flag] in page
    for place, other in ((boards.COPIED, 0), (boards.SAME, 2)):
        links = details(view, place).links("./submit")
        assert links == [f"./submit?id=made-up-{other:04d}"]
    graphs, tiny = board(view, "graphs"), board(view, "tiny")
    assert [MEANINGS[flag] in graphs for flag in MET] == [True, False, False]
    assert not any(MEANINGS[flag] in tiny for flag in (SAME_SCORES, LOOSE))
    assert not flagged(view, TEMPLATE)
    template = with_flags(view, entry_at(view, 0).entry_id, template="plain")
    assert flagged(template, TEMPLATE) == [boards.METRICS[0]] and MEANINGS[TEMPLATE] in board(
        template
    )


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("flag", "update", "is_flagged"),
    [
        *((BLIND, {"prompt": boards.prompt_control(verdict)}, verdict == "blind")
          for verdict in get_args(Verdict)),
        *((MOVED, {"content": boards.content_control(verdict)}, verdict == "moved")
          for verdict in get_args(ChangeVerdict)),
        *((LOOKUP, {"cleared": cleared}, not cleared) for cleared in ("", "A floor.")),
    ],
)  # fmt: skip
def test_what_a_control_tells_against_a_metric_is_marked_with_its_values_and_its_rank(
    view: View, flag: str, update: dict[str, object], is_flagged: bool
) -> None:
    report = boards.trust("ratings", turns=flag == LOOKUP).model_copy(update=update)
    changed = with_flags(view, entry_at(view, 0).entry_id, trust={"ratings": report})
    assert flagged(changed, flag) == ([boards.METRICS[0]] if is_flagged else [])
    assert (MEANINGS[flag] in board(changed)) is is_flagged
    assert changed.boards == view.boards


def test_a_comparison_has_the_flags_too(view: View) -> None:
    two = read(compared(view, boards.COPIED, boards.SAME))
    assert SAME_SCORES in two.texts("span") and MEANINGS[SAME_CONTENT] in two


def test_flags_of_several_entries_are_put_together_and_private_ones_have_no_link(
    view: View,
) -> None:
    one, two = (
        entry_at(view, 0).model_copy(update={"same_scores_as": of})
        for of in ({"graphs": ("a-1", "b-1")}, {"ratings": ("b-1", "c-1")})
    )
    assert flags_of([one, two]) == {SAME_SCORES: ("a-1", "b-1", "c-1")}
    assert flags_of([one, two], {"ratings"}) == {SAME_SCORES: ("b-1", "c-1")}
    assert flags_of([one, two], ()) == {}
