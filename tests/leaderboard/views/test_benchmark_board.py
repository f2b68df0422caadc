"""Ranking of a benchmark: a filter changes no rank, tier or p-value, and the verdict is tested."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.statistics.joint_tests import LEVEL
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.ranking.cells import Cell
from leaderboard.views import benchmark_board
from leaderboard.views.benchmark_board import (
    SkillHeat,
    data_of,
    equal_to,
    has_skills,
    is_stored,
    ranking_of,
    ranking_with_tests,
    ranks_among,
    skill_heat,
    verdict_of,
)
from leaderboard.views.board_tables import pairs
from leaderboard.views.boards import Arrangement, BoardQuery, Filters, resolve
from tests.kit import boards as synthetic
from tests.kit.boards import SKILLS, chosen, entry_of

LOW_THREE = "tifa,dsg,siglip"


@pytest.fixture(scope="module")
def view() -> View:
    return synthetic.view()


FILTERS = [Filters(LOW_THREE), Filters(kind="scores"), Filters(untrained=True), Filters("clip")]


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize(
    ("skill", "measure"), [("", ""), ("counting", "accuracy~assay"), ("counting,spatial", "")]
)
def test_a_filter_changes_no_rank_no_tier_and_no_p_value(
    view: View, filters: Filters, skill: str, measure: str
) -> None:
    whole = ranking_of(chosen(view, skill=skill, measure=measure), view)
    choice = chosen(view, skill=skill, measure=measure, filters=filters)
    found = ranking_of(choice, view)
    assert 0 < len(found.shown) < len(whole.shown)
    assert found.cells == whole.cells and found.basis == whole.basis and not found.within
    assert set(found.shown) < set(whole.shown)
    kept = {cell.entry_id for cell in found.shown}
    tests = pairs(ranking_with_tests(choice, view), None, kept)
    every = pairs(ranking_with_tests(chosen(view, skill=skill, measure=measure), view), None)
    assert tests == tuple(pair for pair in every if {pair.a, pair.b} <= kept)


def test_the_rank_in_a_filter_stands_beside_the_rank_on_the_board(view: View) -> None:
    found = ranking_of(chosen(view, filters=Filters(f"{LOW_THREE},always")), view)
    ranks = {view.entries[c.entry_id].metric: c.rank for c in found.shown}
    places = {view.entries[entry_id].metric: place for entry_id, place in found.places.items()}
    assert ranks == {"SigLIP-2": 7, "TIFA": 8, "DSG": 9, "always-half": None}
    assert places == {"SigLIP-2": 1, "TIFA": 2, "DSG": 3}
    assert ranking_of(chosen(view), view).places == {}


def test_equal_ranks_are_equal_ranks_in_a_filter() -> None:
    base = dict.fromkeys(("variant", "split", "facet", "skill", "value", "ci_low", "ci_high"))
    base |= {"measure": "srcc", "n_items": 9, "n_clusters": 9, "n_missing": 0, "note": ""}
    cells = [Cell.model_validate({**base, "entry_id": e, "rank": r}) for e, r in
             (("a", 2), ("b", 5), ("c", 5), ("d", 9), ("e", None))]  # fmt: skip
    assert ranks_among(cells) == {"a": 1, "b": 2, "c": 2, "d": 4}


def test_only_where_it_is_asked_for_are_those_of_a_filter_ranked_and_tested_anew(
    view: View,
) -> None:
    choice = chosen(view, filters=Filters(LOW_THREE, within=True))
    found = ranking_of(choice, view)
    assert found.within and found.cells == found.shown and found.places == {}
    assert [cell.rank for cell in found.shown] == [1, 2, 3]
    assert found.basis.n_pairs == 3 == len(pairs(ranking_with_tests(choice, view)))
    assert sum(cell.best_share or 0.0 for cell in found.shown) == pytest.approx(1.0)
    whole = {
        (pair.a, pair.b): pair.p_corrected
        for pair in pairs(ranking_with_tests(replace(choice, filters=Filters()), view))
    }
    among = pairs(ranking_with_tests(choice, view))
    gained = [whole[pair.a, pair.b] - pair.p_corrected for pair in among]
    assert max(gained) > 0, "fewer tests, smaller p-values: that is why it must be asked for"


@pytest.mark.parametrize("filters", [Filters(), *FILTERS, Filters(LOW_THREE, within=True)])
def test_a_large_headline_is_the_one_of_the_snapshot_whatever_is_filtered(
    view: View, filters: Filters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark_board, "STORED_ABOVE", 5)
    choice = chosen(view, filters=filters)
    found = ranking_of(choice, view)
    assert is_stored(choice) is (found.tested is None) is not filters.within
    if found.tested is None:
        fresh = view.orders.ranked(choice.board.card, choice.slices())
        ranks = [(c.entry_id, c.rank, c.rank_low, c.rank_high, c.tier) for c in found.cells]
        assert ranks == [(c.entry_id, c.rank, c.rank_low, c.rank_high, c.tier) for c in fresh.cells]
        assert (found.basis.n_resamples, found.basis.n_pairs) == (200, 45)
    assert not is_stored(chosen(view, skill="counting"))


# The verdict.


def test_the_verdict_names_who_ranks_first_and_counts_who_does_not_differ(view: View) -> None:
    choice = chosen(view)
    found = verdict_of(choice, view)
    tests = [
        p
        for p in pairs(ranking_with_tests(choice, view), None)
        if p.a == entry_of(view, "CLIPScore")
    ]
    equal = sum(not pair.significant for pair in tests)
    assert found.sentence.startswith("CLIPScore ranks first on Ratings by Spearman ρ")
    assert "0.720 [0.632, 0.812]" in found.sentence
    assert f"{equal} of {len(tests)} other metrics" in found.sentence
    assert [view.entries[one.entry_id].metric for one in found.answers] == ["CLIPScore"] * 2
    assert (
        "best in 69% of resamples" in found.answers[0].figure and "38.4" in found.answers[1].figure
    )


@pytest.mark.parametrize("filters", [*FILTERS, Filters(LOW_THREE, within=True), Filters("zzz")])
def test_no_filter_changes_the_verdict(view: View, filters: Filters) -> None:
    assert verdict_of(chosen(view, filters=filters), view) == verdict_of(chosen(view), view)


def changed(view: View, metric: str, **fields: object) -> View:
    """The same view with another entry of a metric."""
    entry_id = entry_of(view, metric)
    entry = view.entries[entry_id].model_copy(update=fields)
    return replace(view, entries={**view.entries, entry_id: entry})


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"trained_on": ("ratings",)}, "trained on this benchmark"),
     ({"template": "ratio"}, "an unchanged template")],
)  # fmt: skip
def test_a_metric_that_was_trained_here_or_is_a_template_is_not_recommended(
    view: View, fields: dict[str, object], why: str
) -> None:
    found = verdict_of(chosen(view), changed(view, "CLIPScore", **fields))
    assert found.sentence.startswith("BLIP2-ITM is the highest-ranked qualified metric on Ratings")
    assert "CLIPScore (0.720 [0.632, 0.812]" in found.detail and why in found.detail
    assert "CLIPScore" not in {view.entries[one.entry_id].metric for one in found.answers}


def test_where_nobody_is_above_chance_or_could_be_ordered_the_verdict_says_so(view: View) -> None:
    assert verdict_of(chosen(view, "tiny"), view).sentence == (
        "Too few prompt pairs to order metrics (5; at least 8 needed)."
    )
    assert verdict_of(chosen(view, "unused"), view).answers == ()
    board = view.boards["ratings"]
    info = board.card.measures["srcc"].model_copy(update={"chance": 0.95})
    card = board.card.model_copy(
        update={"measures": {**board.card.measures, "srcc": info}, "headline_scale": None}
    )
    high = BoardIndex(board._board.__class__(card=card, cells=board._board.cells))
    found = verdict_of(resolve(BoardQuery("ratings"), {"ratings": high}), view)
    assert found.sentence == "No metric is significantly above chance." and not found.answers
    trained = {e: entry.model_copy(update={"trained_on": ("ratings",)})
               for e, entry in view.entries.items()}  # fmt: skip
    found = verdict_of(chosen(view), replace(view, entries=trained))
    assert "trained on this benchmark" in found.sentence and not found.answers


def test_without_tests_at_hand_only_those_of_its_tier_count_as_equal(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = ranking_of(chosen(view), view)
    first = tested.cells[0]
    monkeypatch.setattr(benchmark_board, "STORED_ABOVE", 5)
    stored = ranking_of(chosen(view), view)
    same = {c.entry_id for c in stored.cells if c.tier == 1} - {first.entry_id}
    assert equal_to(first, stored) == same <= equal_to(first, tested)
    assert f"tier 1 with {len(same)} metrics" in verdict_of(chosen(view), view).sentence


# Data.


def test_pins_pages_and_details_are_for_the_eye_and_leave_the_address_of_the_data(
    view: View,
) -> None:
    eye = Arrangement(("plcc~paper",), (entry_of(view, "DSG"),), "plcc~paper", 2,
                      (entry_of(view, "DSG"),))  # fmt: skip
    choice = chosen(view, arranged=eye, filters=Filters("clip", within=True))
    data = data_of(choice)
    assert data.startswith("./v1/boards/ratings?benchmark=ratings&measure=srcc~paper&search=clip")
    assert "within=1" in data and "columns=plcc~paper&sort=plcc~paper" in data
    assert not {"pin=", "page=", "open="} & {
        part.partition("=")[0] + "=" for part in data.split("&")
    }
    assert "columns" not in data_of(choice, "pairs")


def test_every_pair_is_tested_once_and_corrected_over_all_of_them(view: View) -> None:
    found = ranking_with_tests(chosen(view), view)
    every = pairs(found, None)
    assert len({frozenset((pair.a, pair.b)) for pair in every}) == len(every) == 45
    assert {pair.p_corrected < LEVEL for pair in every} == {True, False}
    values = {cell.entry_id: cell.value or 0.0 for cell in found.cells}
    for pair in every:
        assert pair.difference == pytest.approx(values[pair.a] - values[pair.b])


# Values by skill.


def heat(view: View, filters: Filters | None = None) -> SkillHeat:
    query = BoardQuery("ratings", filters=filters or Filters())
    found = skill_heat(resolve(query, view.boards), view)
    assert found is not None
    return found


def test_every_skill_has_a_column_and_a_board_without_skills_none(view: View) -> None:
    found = heat(view)
    assert [column.skill for column in found.columns] == [None, *SKILLS]
    assert len({column.selector for column in found.columns}) == 2  # variants of one measure
    assert sum(column.tests.best is None for column in found.columns) == 1  # six clusters only
    graphs = resolve(BoardQuery("graphs"), view.boards)
    assert graphs.selector is not None and not has_skills(graphs.board, graphs.selector)
    assert skill_heat(graphs, view) is None
    assert skill_heat(resolve(BoardQuery("unused"), view.boards), view) is None


def test_a_filter_takes_rows_away_and_changes_no_test(view: View) -> None:
    whole, three = heat(view), heat(view, Filters(LOW_THREE))
    assert len(three.entry_ids) == 3 < len(whole.entry_ids)
    assert [c.tests for c in three.columns] == [c.tests for c in whole.columns]
    assert three.n_tests == whole.n_tests > 15
    assert heat(view, Filters("zzz")).entry_ids == ()


def test_tests_within_a_filter_are_those_of_its_rows_alone(view: View) -> None:
    three = heat(view, Filters(LOW_THREE, within=True))
    assert three.n_tests == 15  # three pairs in each of five tested columns
    alone = heat(view, Filters("tifa", within=True))
    assert (len(alone.entry_ids), alone.n_tests) == (1, 0)


def test_what_may_be_best_is_the_best_or_not_significantly_different_from_it(view: View) -> None:
    for column in heat(view).columns:
        for cell in column.cells.values():
            expected = cell.rank_low == 1
            if column.tests.best is not None:
                p = column.tests.corrected.get(cell.entry_id, 0.0)
                expected = cell.entry_id == column.tests.best or p >= 0.05
            assert column.may_be_best(cell) is expected
