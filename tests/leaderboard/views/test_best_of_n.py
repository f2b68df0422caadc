"""Is it safe to optimise: gains under people's ratings, what is said of them, and what is withheld."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.parquet import write_stored
from benchmarks.rated_images import RatedImages, RaterNumbers, ratings_path
from benchmarks.schema import ScoreTable
from benchmarks.statistics.best_of_n import FEWEST
from leaderboard.models.choosing import ModelImagesGain, NoGain, Reason
from leaderboard.publication.item_scores import ItemReader
from leaderboard.store.interface import Store
from leaderboard.tables import Table
from leaderboard.views.best_of_n import (
    BestOfN,
    PeopleGain,
    best_of_n,
    best_of_n_table,
    no_gain_text,
    others_sentence,
    people_gain,
    people_sentence,
    raters_text,
    shown_places,
)
from leaderboard.views.metric import MetricOnBoards
from tests.kit.boards import cards, keep, site_of
from tests.kit.store import memory_store
from tests.leaderboard.models.made_up_models import CLIP, VQA, metric_card, metric_entry, world
from tests.leaderboard.views import example_fixture
from tests.leaderboard.views.example_fixture import LACKS, NOISY, RIGHT, TURNED, entry_id

PROMPTS, IMAGES, RATERS = 80, 8, 4
CARD = metric_card()


def rated_store(scores: FloatArray, quality: FloatArray, raters: int = RATERS) -> Store:
    """A benchmark whose raters see quality with noise, and the scores of `m/m`; shape (P, N) both."""
    rng = np.random.default_rng(1)
    prompts = [f"p{k}" for k in range(PROMPTS) for _ in range(IMAGES)]
    pairs = [f"i{k}" for k in range(PROMPTS * IMAGES)]
    seen = quality.ravel()[:, None] + rng.standard_normal((PROMPTS * IMAGES, RATERS))
    rated = RatedImages(prompts, prompts, pairs, seen.mean(axis=1), seen[:, :raters])
    table = ScoreTable(pd.DataFrame({"m": scores.ravel()}, index=pd.Index(pairs, name="pair_id")))
    store = memory_store()
    keep(store, {
        ratings_path("rated", "1"): rated.to_bytes(),
        "results/m/rated.scores.parquet": write_stored(
            table, submission_id="m", benchmark="rated", revision="1"
        ),
    })  # fmt: skip
    return store


def gain_of(store: Store, *lower: str) -> PeopleGain:
    found = people_gain(ItemReader(store.public), metric_entry("m/m"), CARD, {"m": lower})
    assert found is not None
    return found


def quality() -> FloatArray:
    return np.random.default_rng(2).standard_normal((PROMPTS, IMAGES))


@pytest.mark.parametrize(
    ("weight", "sign", "word"), [(1.0, 1, "gains"), (0.0, 0, "undecided"), (-1.0, -1, "loses")]
)
def test_a_planted_metric_gains_what_it_should_and_the_sentence_says_what_is_sure(
    weight: float, sign: int, word: str
) -> None:
    noise = np.random.default_rng(3).standard_normal((PROMPTS, IMAGES))
    store = rated_store(weight * quality() + 0.7 * noise, quality())
    found = gain_of(store)
    low, high = found.curve.ends[:, 3]
    assert (int(low > 0) - int(high < 0)) == sign
    assert (found.curve.falls_from == 1) is (sign < 0)
    said = people_sentence(found, "M")
    assert f" {word}" in said and "4 images" in said and f"{found.curve.values[3]:.2f}"[-4:] in said
    assert found.people is not None and found.people.ends[0, 3] > 0
    assert "2 of 4 raters" in said and ("of which it has" in said) is (sign > 0)
    share = found.share[:, 3]
    assert share[0] == pytest.approx(found.curve.values[3] / found.people.values[3])
    assert share[1] < share[0] < share[2]
    # Smaller scores are better: the same turned.
    turned = gain_of(store, "m")
    assert turned.curve.values[-1] == pytest.approx(
        gain_of(rated_store(-(weight * quality() + 0.7 * noise), quality())).curve.values[-1]
    )


def test_a_metric_that_people_dislike_at_its_highest_is_said_to_turn() -> None:
    worth = np.random.default_rng(4).permuted(np.tile(np.arange(8.0), (PROMPTS, 1)), axis=1)
    found = gain_of(rated_store(worth, np.where(worth == 7, -2.0, worth)))
    assert found.curve.falls_from not in {None, 1}
    assert f"the best of {found.curve.falls_from}." in people_sentence(found, "M")


def test_what_people_gain_is_not_known_without_single_ratings() -> None:
    found = gain_of(rated_store(quality(), quality(), raters=0))
    assert found.people is None and np.isnan(found.share).all()
    assert "raters" not in people_sentence(found, "M")


def test_missing_scores_are_counted_and_no_score_at_all_is_no_gain() -> None:
    scores = quality()
    scores[:5, 0] = np.nan
    found = gain_of(rated_store(scores, quality()))
    assert (found.curve.n_prompts, found.curve.n_missing) == (PROMPTS - 5, 5)
    none = rated_store(np.full((PROMPTS, IMAGES), np.nan), quality())
    items = ItemReader(none.public)
    assert people_gain(items, metric_entry("m/m"), CARD, {}) is None
    assert people_gain(items, metric_entry("m/m"), metric_card("other"), {}) is None


def test_few_prompts_give_no_interval_and_nothing_is_sure() -> None:
    scores = quality()
    scores[FEWEST - 1 :] = np.nan
    found = gain_of(rated_store(scores, quality()))
    assert np.isnan(found.curve.ends).all() and "too few prompts" in people_sentence(found, "M")


# Over the boards


def of_site(store: Store, place: int, *, withheld: bool = False) -> BestOfN:
    site = site_of(store)
    view, here = site.reader.view(), cards()
    if withheld:
        here["ratings"] = here["ratings"].model_copy(update={"answers_public": False})
    shown = MetricOnBoards(view.entries[entry_id(place)], None)
    return best_of_n(
        shown, view, items=ItemReader(store.public), models=site.model_reader, here=here,
        statuses=site.reader.statuses(),
    )  # fmt: skip


@pytest.fixture(name="store", scope="module")
def _store() -> Store:
    return example_fixture.filled()


@pytest.mark.parametrize(("place", "sign"), [(RIGHT, 1), (NOISY, 1), (TURNED, -1), (LACKS, 0)])
def test_every_benchmark_with_ratings_has_its_gain(store: Store, place: int, sign: int) -> None:
    (found,) = of_site(store, place).under_people
    low, high = found.curve.ends[:, -1]
    assert found.card.name == "ratings" and found.entry_id == entry_id(place)
    assert (int(low > 0) - int(high < 0)) == sign
    assert found.curve.n_prompts + found.curve.n_missing == example_fixture.N_PROMPTS


def test_where_answers_are_withheld_here_or_nothing_was_published_nothing_is_said(
    store: Store,
) -> None:
    assert of_site(store, RIGHT, withheld=True) == BestOfN(of_site(store, RIGHT).entry, (), ())
    assert of_site(example_fixture.filled(with_cases=False), RIGHT).under_people == ()
    withheld = cards()["ratings"].model_copy(update={"answers_public": False})
    assert ItemReader(store.public).rated(withheld) is None


# The table


def models_gain(trusted: int = 2) -> ModelImagesGain:
    from leaderboard.models.choosing import model_images_gain

    rng = np.random.default_rng(5)
    names = (VQA, CLIP, "x/m")[: trusted + 1] if trusted > 1 else (VQA,)
    made = world(40, metrics=names)
    worth = rng.standard_normal((4, 40))
    made.add("a", {one: worth + 0.3 * rng.standard_normal((4, 40)) for one in names})
    found = model_images_gain(made.reader, made.view, "drawn", [names[-1]])
    assert found is not None
    return found


def rows_of(table: Table, **wanted: object) -> list[dict[str, object]]:
    return [dict(row) for row in table.rows if all(row.get(k) == v for k, v in wanted.items())]


def test_the_table_has_every_gain_of_every_size(store: Store) -> None:
    models = models_gain()
    found = replace(of_site(store, NOISY), under_others=(models,))
    table = best_of_n_table(found, {"as_of": None})
    (people,) = found.under_people
    assert [row["size"] for row in rows_of(table, under="people")] == [1, 2, 3, 4]
    last = rows_of(table, under="people", size=4)[0]
    assert last["gain"] == people.curve.values[3] and last["source"] == "ratings"
    assert (last["gain_low"], last["gain_high"]) == tuple(people.curve.ends[:, 3])
    assert last["share"] == people.share[0, 3] and last["unit"] == "rating points"
    assert rows_of(table, under="people", size=1)[0]["share"] is None
    assert len(rows_of(table, under="raters")) == 4
    for under, n in (("itself", 1), ("others", 1), ("other", 2)):
        assert len(rows_of(table, under=under, unit="sd", source="drawn")) == 4 * n
    assert {row["valued_by"] for row in rows_of(table, under="other")} == {VQA, CLIP}
    named = {column.name for column in table.columns}
    assert all(set(row) <= named for row in table.rows)
    assert [one["source"] for one in table.about["sentences"]] == ["ratings", "drawn"]


def test_the_sentence_on_other_metrics_says_what_is_sure_and_what_is_not_known() -> None:
    found = models_gain()
    assert found.mean is not None
    said = others_sentence(found, "M")
    assert " gains " in said and "2 other qualified metrics on average" in said
    worse = replace(found, mean=replace(found.mean, draws=-found.mean.draws))
    assert " loses" in others_sentence(worse, "M")
    unsure = replace(found, mean=replace(found.mean, draws=found.mean.draws - found.mean.values))
    assert "undecided" in others_sentence(unsure, "M")
    turned = found.mean.draws * np.array([0.0, 1.0, 0.6, 0.2])
    turning = replace(found, mean=replace(found.mean, draws=turned))
    assert "the best of 2." in others_sentence(turning, "M")
    few = replace(found, mean=replace(found.mean, n_clusters=3))
    assert "too few prompts" in others_sentence(few, "M")
    assert "No other" in others_sentence(replace(found, others=(), mean=None), "M")


def test_it_is_told_apart_why_nothing_is_gained_under_a_metric() -> None:
    found, alike = models_gain(), NoGain(Reason.ALIKE, 0)
    apart = NoGain(Reason.NO_COMMON_SCORES, 40)
    assert "chooses none" in others_sentence(replace(found, own=alike), "M")
    said = others_sentence(replace(found, own=apart), "M")
    assert "chooses none" not in said and "40 choices" in said
    first, second = (
        replace(one, curve=of) for one, of in zip(found.others, (alike, apart), strict=True)
    )
    none = others_sentence(replace(found, others=(first, second, second), mean=None), "M")
    assert "alike: 1" in none and "scores: 2" in none
    assert "alike" in no_gain_text(alike) and "missing" not in no_gain_text(alike)
    assert "alike" not in no_gain_text(apart) and "40 choices" in no_gain_text(apart)
    one_left = replace(found, others=(found.others[0], second))
    assert "under 1 other qualified metric;" in others_sentence(one_left, "M")
    table = best_of_n_table(BestOfN(metric_entry("m/m"), (), (one_left,)), {})
    (row,) = rows_of(table, no_gain="no common scores")
    assert (row["valued_by"], row["n_choices"], row["n_missing"]) == (
        second.judge.entry_id, 0, 40,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((3, 3, 3), "1 of 3 raters"),
        ((2, 2, 2), "1 of 2 raters"),
        ((3, 5, 6), "half of the 3 to 6 raters of each image (usually 2 of 5)"),
    ],
)
def test_how_many_raters_choose_is_said(numbers: tuple[int, int, int], said: str) -> None:
    assert raters_text(RaterNumbers(*numbers)) == said
    gain = replace(gain_of(rated_store(quality(), quality())), raters=RaterNumbers(*numbers))
    assert f"; {said} choosing would gain" in people_sentence(gain, "M")
    rows = rows_of(best_of_n_table(BestOfN(metric_entry("m/m"), (gain,), ()), {}), under="raters")
    assert {(row["n_choosing"], row["n_raters"]) for row in rows} == {(numbers[1] // 2, numbers[1])}


@pytest.mark.parametrize(
    ("largest", "shown"), [(0, []), (2, [2]), (3, [2, 3]), (4, [2, 4]), (16, [2, 4, 8, 16])]
)
def test_tables_on_pages_show_a_few_sizes_and_the_largest(largest: int, shown: list[int]) -> None:
    sizes = tuple(range(1, largest + 1))
    assert [sizes[place] for place in shown_places(sizes)] == shown
