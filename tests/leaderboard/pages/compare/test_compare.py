"""Two to four metrics held against each other: the board's own numbers, and where they agree."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison import figures
from benchmarks.schema import Card, ScoreTable
from benchmarks.statistics.correlation import kendall
from benchmarks.stored_scores import write_stored
from leaderboard.pages.compare.agreement import MOST_CLUSTERS, Behind, agreement_view
from leaderboard.pages.compare.compare_page import metric_options
from leaderboard.pages.compare.view import compare_view
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.reader import BoardIndex, View, view_of
from leaderboard.publication.snapshot import Board
from leaderboard.ranking.comparing import NO_CONTRIBUTIONS, TOO_FEW
from leaderboard.ranking.orders import Orders
from leaderboard.store.interface import NotFoundError, Store
from leaderboard.store.memory import memory_store
from leaderboard.views import comparison as pair_scores
from leaderboard.views.boards import BoardQuery
from leaderboard.views.comparison import (
    ClusterReader,
    ClusterValues,
    CompareQuery,
    Opponents,
    PairScoreReader,
    opponents,
    sampled,
    several,
    shown,
)
from tests.leaderboard.pages.items import looked_at
from tests.leaderboard.pages.items.looked_at import LACKS, NOISY, RIGHT, TURNED, entry_id, filled
from tests.leaderboard.pages.parsed import Node, harmless, named, read
from tests.leaderboard.pages.synthetic import METRICS, NASTY, cards, snapshot

FIRST, SECOND, THIRD, FOURTH = map(entry_id, range(4))
LAST, STRANGER, CONSTANT = map(entry_id, (9, 10, 11))
FORMATS = ["csv", "parquet", "json"]


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def view(store: Store) -> View:
    return view_of(snapshot(), cards(), Orders(store), "one")


def asked(view: View, *metrics: str, board: str = "ratings", **more: Any) -> Opponents:
    a, b, *further = (*metrics, "", "")[: max(2, len(metrics))]
    return opponents(CompareQuery(BoardQuery(board, **more), a, b, tuple(further)), view)


def html(view: View, *metrics: str, **more: str) -> str:
    return compare_view(asked(view, *metrics, **more), view)


def page(view: View, *metrics: str, **more: str) -> Node:
    return read(html(view, *metrics, **more))


# Two: the numbers are the board's.


@pytest.mark.parametrize("skill", ["", "counting", "counting,colour"])
def test_each_two_have_the_test_of_the_board(view: View, skill: str) -> None:
    pair = asked(view, FIRST, THIRD, FOURTH, entry_id(8), skill=skill)
    ranked = view.orders.ranked(pair.choice.board.card, pair.choice.slices())
    at = {cell.entry_id: place for place, cell in enumerate(ranked.cells)}
    tests, corrected = ranked.ordering.tests, ranked.ordering.corrected
    assert tests is not None
    found = several(pair.choice, pair.chosen, view)
    assert found.pairs == tuple(combinations(pair.chosen, 2)) and len(found.rows) == 6
    for (a, b), row in zip(found.pairs, found.rows, strict=True):
        assert row == shown(pair.choice, a, b, view).chosen
        assert row.p_value == tests.p_value[at[a], at[b]]
        assert row.p_corrected == corrected[at[a], at[b]]
        values = [ranked.cells[at[entry]].value or 0.0 for entry in (a, b)]
        assert row.difference == values[0] - values[1]


def test_skills_are_corrected_over_the_skills_and_measures_over_the_measures(view: View) -> None:
    pair = asked(view, FIRST, SECOND)
    rows = shown(pair.choice, FIRST, SECOND, view)
    assert [row.skill for row in rows.skills] == list(pair.choice.board.card.skills)
    assert {row.measure for row in rows.measures} == {"plcc", "accuracy"}
    assert {row.correction for row in (*rows.skills, *rows.measures)} == {"benjamini_hochberg"}
    assert rows.chosen.correction == "holm"
    assert all(row.p_corrected >= row.p_value for row in rows.measures)
    style = rows.skills[-1]
    assert (style.skill, style.untested) == ("style", TOO_FEW) and math.isnan(style.p_value)


def test_the_page_says_who_is_better_by_how_much_and_by_what_test(view: View) -> None:
    row = shown(asked(view, FIRST, SECOND).choice, FIRST, SECOND, view).chosen
    found = page(view, FIRST, SECOND)
    named(found)
    value, low, high = figures(row.difference, row.ci_low, row.ci_high)
    for words in (f"{value} [{low}, {high}] over BLIP2-ITM", "Holm over 45 pairs", TOO_FEW,
                  "over 4 skills"):  # fmt: skip
        assert words in found, words
    assert "dz" in found.one("#measures thead").text
    for a, b in ((FIRST, LAST), (LAST, FIRST)):
        verdict = page(view, a, b).one(".as-verdict").text
        assert re.search(r"CLIPScore is .* DSG by 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", verdict)
    tiny = asked(view, FIRST, FOURTH, board="tiny")
    lower = shown(tiny.choice, FIRST, FOURTH, view).chosen  # Where lower is better.
    assert lower.difference > 0 and lower.advantage[0] == -lower.difference
    assert "PickScore has 0." in page(view, FIRST, FOURTH, board="tiny")


def test_missing_scores_leave_dashes_where_clusters_would_be_counted(
    view: View, store: Store
) -> None:
    board = snapshot().boards["ratings"]
    cells = (
        c.model_copy(update={"n_missing": 1}) if c.entry_id == SECOND else c for c in board.cells
    )
    index = BoardIndex(Board(card=board.card, cells=tuple(cells)))
    lacking = View(view.entries, {"ratings": index}, Orders(store))
    pair = asked(lacking, FIRST, SECOND)
    row, whole = (shown(pair.choice, FIRST, SECOND, one).chosen for one in (lacking, view))
    assert row.tally is None and row.p_value == whole.p_value
    found = page(lacking, FIRST, SECOND)
    assert "1 score of BLIP2-ITM" in found and not found.all("svg.as-tally")


@pytest.mark.parametrize("others", [(), (FOURTH,)])
def test_all_that_is_shown_is_linked_as_data_in_every_format(
    view: View, others: tuple[str, ...]
) -> None:
    links = page(view, FIRST, STRANGER, *others, skill="counting").links("./v1", "a[download]")
    assert [one.rpartition("=")[2] for one in links] == FORMATS
    for one in links:
        address, _, query = one.partition("?")
        assert address == "./v1/compare"
        assert CompareQuery.from_params(dict(parse_qsl(query))).a == FIRST
        assert opponents(CompareQuery.from_link(query), view).further == others


# Links and states.


def test_a_link_restores_the_state_it_was_made_from(view: View) -> None:
    pair = asked(view, SECOND, STRANGER, measure="accuracy~assay", skill="counting")
    query = pair.query.to_query()
    again = opponents(CompareQuery.from_params(dict(parse_qsl(query[1:]))), view)
    assert (again.a, again.b, again.remarks) == (SECOND, STRANGER, ())
    assert again.query.to_query() == query and CompareQuery.from_link(query) == pair.query
    back = page(view, FIRST, SECOND, skill="counting").links("./boards")
    assert back[0].startswith("./boards?benchmark=ratings&skill=counting")
    many = CompareQuery.from_link("?benchmark=b&a=1/x&b=2/y&c=3/z&d=4/w")
    assert many.further == ("3/z", "4/w") and CompareQuery.from_link(many.to_query()) == many
    # A gap closes: who comes fourth without a third is the third.
    assert CompareQuery.from_link("?d=4/w").to_query() == "?c=4%2Fw"


def test_what_a_link_leaves_open_is_filled_in(view: View) -> None:
    pair = asked(view, board="")
    assert (pair.a, pair.b) == pair.options[:2] and pair.choice.board.card.name == "ratings"
    assert asked(view, "", FIRST).a == SECOND and asked(view, SECOND).b == FIRST
    assert asked(view, FIRST, LAST, FIRST, LAST).further == ()
    absent = asked(view, FIRST, SECOND, "nobody/x")
    assert len(absent.remarks) == 1 and "nobody/x" in absent.remarks[0]


def test_metrics_of_one_name_can_be_told_apart_in_the_list(view: View) -> None:
    same = {"metric": "same", "version": ""}
    entries = {e: view.entries[e].model_copy(update=same) for e in (FIRST, SECOND)}
    doubled = View({**view.entries, **entries}, view.boards, view.orders)
    labels = [label for label, _ in metric_options(asked(doubled), doubled)]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("metrics", "more", "words"),
    [
        ((FIRST, THIRD), {"board": "graphs"}, ["“VQAScore”", "Error graphs"]),
        ((FIRST, FIRST), {}, ["twice"]),
        ((FIRST, CONSTANT), {}, ["always-half", "scores are equal"]),
        ((), {"board": "unused"}, ["No metric"]),
        (("nobody/nothing", SECOND), {}, ["nobody/nothing"]),
        ((NASTY, SECOND), {}, ["<img"]),
        (("x" * 5000, SECOND), {}, ["xxx"]),
    ],
)
def test_what_cannot_be_compared_is_said(
    view: View, metrics: Sequence[str], more: dict[str, str], words: list[str]
) -> None:
    found = html(view, *metrics, **more)
    assert all(one in read(found) for one in words) and "p =" not in found
    harmless(found)
    assert len(found) < 3000 or CONSTANT in metrics


def test_an_unknown_measure_or_skill_is_said(view: View) -> None:
    found = page(view, FIRST, SECOND, measure="nonsense", skill="unheard-of")
    assert "nonsense" in found and "unheard-of" in found


def test_a_metric_that_lacks_one_of_several_skills_is_named(view: View) -> None:
    board = snapshot().boards["ratings"]
    left = [c for c in board.cells if (c.entry_id, c.skill) != (SECOND, "colour")]
    index = BoardIndex(Board(card=board.card, cells=tuple(left)))
    partly = View(view.entries, {"ratings": index}, view.orders)
    assert SECOND not in asked(partly, FIRST, SECOND, skill="counting,colour").options
    assert "“BLIP2-ITM”" in page(partly, FIRST, SECOND, skill="counting,colour")
    assert "Colour" not in page(partly, FIRST, SECOND, skill="counting").one("#skills").text


def test_without_published_draws_values_are_shown_and_no_test() -> None:
    found = page(view_of(snapshot(), cards(), Orders(memory_store())), FIRST, SECOND)
    assert "0.720" in found and NO_CONTRIBUTIONS in found and not found.all(".as-whisker")


def test_of_several_each_two_have_interval_corrected_p_and_dominance(view: View) -> None:
    table = next(t for t in page(view, FIRST, THIRD, FOURTH).all("table") if "and" in t.rows[0][
        "First and second metric"])  # fmt: skip
    assert len(table.rows) == 3
    for row in table.rows:
        assert re.fullmatch(r"\S+ \[\S+, \S+\]", row["Difference"].text)
        assert re.match(r"[<\d.]", row["p (Holm)"].text)
        assert re.search(r"R \d\.\d\d and \d\.\d\d", row["Better, tied, worse"].text)


# Agreement.


def behind_of(
    store: Any, here: Mapping[str, Card] | None = None, lower: Any = None
) -> Behind:  # fmt: skip
    public = store.public
    return Behind(ClusterReader(public), ItemReader(public), PairScoreReader(public),
                  cards() if here is None else here, lambda: lower or {})  # fmt: skip


def withheld() -> dict[str, Card]:
    return {k: card.model_copy(update={"answers_public": False}) for k, card in cards().items()}


def agreement(view: View, store: Store, pair: Opponents, **more: Any) -> Node:
    return read(agreement_view(pair, view, behind_of(store, **more)))


def test_agreement_is_kendalls_tau_over_the_clusters_of_each_two(view: View, store: Store) -> None:
    pair = asked(view, FIRST, SECOND, board="graphs")
    cells = {cell.entry_id: cell for cell in pair.choice.slices()[0]}
    card, behind = pair.choice.board.card, behind_of(store)
    found = behind.clusters.values(card, [cells[e] for e in pair.options], "one")
    assert found is not None
    taus = found.taus()
    np.testing.assert_allclose(taus, taus.T)
    assert taus[0, 1] == kendall(found.values[:, 0], found.values[:, 1])
    assert f"{taus[0, 1]:.2f}" in agreement(view, store, pair).texts("td")
    values = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, np.nan], [np.nan, 9.0], [4.0, 1.0]])
    some = ClusterValues(("a", "b"), ("p", "q", "r", "s", "t"), values)
    assert some.of("a", "b").clusters == ("p", "q", "t")
    assert some.taus()[0, 1] == kendall([1, 2, 4], [2, 3, 1])


def test_the_largest_disagreements_come_first_and_lead_to_the_items(
    view: View, store: Store
) -> None:
    pair = asked(view, FIRST, SECOND, board="graphs")
    _, _, rest = agreement_view(pair, view, behind_of(store)).partition("Where they disagree")
    part = read(rest)
    gaps = [abs(float(b.text.replace("−", "-"))) for b in part.all("td b")]
    assert gaps == sorted(gaps, reverse=True) and len(gaps) == MOST_CLUSTERS
    assert len(part.all(".as-ringed")) == MOST_CLUSTERS
    (whole,) = {link for link in part.links("./items") if "case=" not in link}
    assert "show=disagreements" in whole and f"&a={FIRST}&b={SECOND}" in whole


@pytest.mark.parametrize("board", ["graphs", "ratings"])
@pytest.mark.parametrize("where", ["snapshot", "server"])
def test_nothing_is_read_or_shown_where_either_card_withholds_answers(
    store: Store, board: str, where: str
) -> None:
    view = view_of(snapshot(), cards(), Orders(store), "one")
    here = None if where == "snapshot" else withheld()
    if where == "snapshot":
        view.boards[board].card = withheld()[board]
    pair = asked(view, FIRST, SECOND, board=board)
    found = agreement(view, store, pair, here=here)
    assert "answers" in found and not (found.all("table") or found.all("svg"))
    assert not found.links("./items")
    behind, card = behind_of(store), withheld()[board]
    assert behind.clusters.values(card, pair.choice.slices()[0], "one") is None
    assert behind.scores.values(card, [view.entries[e] for e in pair.options], {}) is None


def test_names_of_strangers_are_text_in_the_page_and_its_agreement(
    view: View, store: Store
) -> None:
    pair = asked(view, FIRST, STRANGER, entry_id(4))
    harmless(compare_view(pair, view), agreement_view(pair, view, behind_of(store)))
    assert "<img src=x onerror=alert(1)>" in page(view, STRANGER, FIRST).text


class Files:
    """A repository that says what was read of it."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.asked = inner, list[str]()
        self.public = self

    def read(self, path: str) -> bytes:
        self.asked.append(path)
        if isinstance(self.inner, dict) and path not in self.inner:
            raise NotFoundError(path)
        return bytes(self.inner[path] if isinstance(self.inner, dict) else self.inner.read(path))


def test_the_clusters_of_a_run_are_read_once_for_one_version(view: View, store: Store) -> None:
    files = Files(store.public)
    reader = ClusterReader(files)  # type: ignore[arg-type]
    choice = asked(view, FIRST, SECOND, board="graphs").choice
    cells, card = choice.slices()[0][:3], choice.board.card
    first, again = (reader.values(card, cells, "one") for _ in range(2))
    assert first is not None and again is not None and len(files.asked) == 3
    np.testing.assert_array_equal(first.values, again.values)
    reader.values(card, cells, "two")
    assert len(files.asked) == 6


# By a measure without values of clusters, agreement is that of the published scores of pairs.


def tau(one: int, other: int) -> float:
    cases = looked_at.rated()
    both = pd.concat([looked_at.scores_of(cases, k) for k in (one, other)], axis=1).dropna()
    return kendall(both.iloc[:, 0].to_numpy(), both.iloc[:, 1].to_numpy())


def test_metrics_are_compared_over_the_pairs_that_both_scored(view: View, store: Store) -> None:
    pair = asked(view, *map(entry_id, (NOISY, RIGHT, LACKS)))
    found = agreement(view, store, pair)
    for one, other in combinations((NOISY, RIGHT, LACKS), 2):
        assert f"{tau(one, other):.2f}" in found.texts("td")
    assert 0 < tau(NOISY, RIGHT) < 1 and "120 pairs" in found
    assert "Where they disagree" not in found  # Scores of two metrics have no common scale.
    known = {METRICS[place] for place in (RIGHT, NOISY, TURNED, LACKS)}
    assert {name for name in METRICS if name in found.texts("th bdi")} == known
    none = agreement(view, Files({}), asked(view, FIRST, THIRD))  # type: ignore[arg-type]
    assert "no scores" in none and not none.all("table")


def test_a_metric_whose_smaller_scores_are_better_is_turned_first(view: View, store: Store) -> None:
    pair = asked(view, entry_id(RIGHT), entry_id(TURNED))
    whose, metric = entry_id(TURNED).split("/")
    plain = agreement(view, store, pair).texts("td")
    turned = agreement(view, store, pair, lower={whose: (metric,)}).texts("td")
    assert "−1.00" in plain and "−1.00" not in turned and "1.00" in turned


def test_of_very_many_pairs_the_same_are_taken_of_every_metric_and_read_once(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_scores, "MOST_PAIRS", 50)
    stored = {}
    for place in (RIGHT, NOISY):
        own, metric = entry_id(place).split("/")
        pairs = pd.Index([f"pair {k}" for k in range(500)], name="pair_id")
        table = pd.DataFrame({metric: [float(k * 7919 % (500 + place)) for k in range(500)]}, pairs)
        stored[f"results/{own}/ratings.scores.parquet"] = write_stored(
            ScoreTable(table), submission_id=own, benchmark="ratings", revision=looked_at.REVISION
        )
    files = Files(stored)
    reader = PairScoreReader(files)  # type: ignore[arg-type]
    entries = [view.entries[entry_id(place)] for place in (RIGHT, NOISY)]
    found, again = (reader.values(cards()["ratings"], entries, {}) for _ in range(2))
    assert found is not None and again is not None and again.clusters == found.clusters
    assert found.values.shape == (50, 2) and not np.isnan(found.values).any()
    numbers = sorted(int(pair.split()[1]) for pair in found.clusters)
    assert numbers[0] < 100 and numbers[-1] > 400 and len(files.asked) == 2  # From everywhere.
    every = {f"p{k}": 0 for k in range(500)}
    lacks = dict.fromkeys(list(every)[5:], 0)  # A sample of what some lack is still the same.
    assert len(set(sampled(every)) & set(sampled(lacks))) >= 45
