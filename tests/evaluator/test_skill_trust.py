"""Trust by skill: boards of a store, released scores, printed figures, or a plain no."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from benchmarks.published import PublishedCell, papers, published
from benchmarks.registry import load_registry
from benchmarks.released.bundle import read_manifest, released_table
from benchmarks.released.verification import references
from evaluator.scorers.registry import load_rows
from evaluator.skill_trust import NAMES, _names, boards_at, trust_of
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.store.opening import StoreName
from tests.kit.worker import desk_of


def test_every_name_is_a_row_and_is_printed_or_released_under_it() -> None:
    printed = {(cell.paper, cell.metric) for cell in published_everywhere()}
    released = {
        (scores.paper, str(metric))
        for scores in read_manifest().scores
        for metric in released_table(scores.path).columns
    }
    for row, names in _names().items():
        assert row in load_rows()
        for paper, metric in names.items():
            assert paper in papers()
            assert (paper, metric) in printed | released, (row, paper, metric)


def test_a_row_has_the_figures_of_the_scores_it_is_compared_with_or_says_whose_they_are() -> None:
    printed = tomllib.loads(NAMES.read_text("utf-8"))
    for row, reference in references().items():
        assert reference.paper not in printed.get(row, {}), "a name stands in one file"
        named = _names().get(reference.figures_of or row, {})
        assert named[reference.paper] == reference.column
        assert not reference.figures_of or reference.paper not in _names().get(row, {})


def published_everywhere() -> list[PublishedCell]:
    return [cell for name in load_registry() for cell in published(name)]


def test_released_scores_give_intervals_and_say_what_is_not_better_than_chance() -> None:
    found = trust_of("clipscore-hessel")
    (whole,) = [one for one in found if one.skill == "all"]
    assert (whole.benchmark, whole.above_chance) == ("tifa160", True)
    assert whole.low is not None and whole.high is not None
    assert whole.low < whole.value < whole.high
    assert boards_at("tifa160").startswith("http://127.0.0.1:7860/")


def test_printed_figures_have_a_place_and_no_interval() -> None:
    found = trust_of("vqascore-t5")
    assert {one.benchmark for one in found} >= {"croc_syn"}
    placement = [one for one in found if one.value == 0.965]
    assert placement and all(one.low is None and " of " in one.place for one in placement)
    assert all(one.above_chance is None for one in found)
    assert trust_of("siglip-so400m") == []
    assert trust_of("vqascore-t5", built_in=False) == [], "a module that is named so"


@pytest.mark.parametrize(
    "rows", [["clipscore-hessel"], pytest.param(sorted(_names()), marks=pytest.mark.slow)], ids=len
)
def test_every_figure_is_an_agreement_of_its_card(rows: list[str]) -> None:
    registry = load_registry()
    for row in rows:
        for one in trust_of(row):
            measures = registry[one.benchmark].card.measures.values()
            assert one.measure.split(",")[0] in {m.title for m in measures if m.higher_is_better}


@pytest.mark.slow
def test_a_board_of_a_store_comes_before_what_ships(tmp_path: Path) -> None:
    from evaluator.commands.worker_loop import make_worker

    store = StoreName.parse(str(tmp_path / "store"))
    opened, registry = store.open(), load_registry()
    desk = desk_of(opened, registry)
    for released in read_manifest().scores:
        if released.paper == "ts2":
            desk.submit_released(released)
    make_worker(opened, store, registry, None, lambda _: None).run_all()
    Publisher(opened, cards_of(registry)).publish_cards(opened.clock())
    found = trust_of("alignscore", store)
    boards = [one for one in found if one.benchmark == "ts2"]
    assert boards and all(one.source.startswith("board of") for one in boards)
    assert any(one.place.endswith("of 19") for one in boards)
    assert any(one.source.startswith("printed") for one in found)
