"""Agreement by a measure without values of clusters is that of the published scores of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import pytest

from benchmarks.schema import Card, ScoreTable
from benchmarks.statistics.correlation import kendall
from benchmarks.stored_scores import write_stored
from leaderboard.pages.boards.query import BoardQuery
from leaderboard.pages.compare import pair_scores
from leaderboard.pages.compare.agreement import Behind, agreement_view
from leaderboard.pages.compare.clusters import ClusterReader
from leaderboard.pages.compare.pair_scores import PairScoreReader, sampled
from leaderboard.pages.compare.query import CompareQuery, Opponents, opponents
from leaderboard.pages.items.reading import ItemReader
from leaderboard.pages.reading import View, view_of
from leaderboard.ranking.orders import Orders
from leaderboard.store.interface import NotFoundError, Store
from tests.leaderboard.pages.items.looked_at import (
    LACKS,
    NOISY,
    REVISION,
    RIGHT,
    TURNED,
    entry_id,
    filled,
    rated,
    scores_of,
)
from tests.leaderboard.pages.synthetic import cards, snapshot


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def view(store: Store) -> View:
    return view_of(snapshot(), cards(), Orders(store), "one")


def shown(
    store: Store,
    view: View,
    *places: int,
    lower: Mapping[str, Sequence[str]] | None = None,
    here: Mapping[str, Card] | None = None,
) -> str:
    behind = Behind(
        ClusterReader(store.public), ItemReader(store.public), PairScoreReader(store.public),
        cards() if here is None else here, lambda: lower or {},
    )  # fmt: skip
    return agreement_view(pair_of(view, *places), view, behind)


def pair_of(view: View, *places: int) -> Opponents:
    a, b, *further = map(entry_id, places)
    return opponents(CompareQuery(BoardQuery("ratings"), a, b, tuple(further)), view)


def tau(one: int, other: int) -> float:
    cases = rated()
    both = pd.concat([scores_of(cases, one), scores_of(cases, other)], axis=1).dropna()
    return kendall(both.iloc[:, 0].to_numpy(), both.iloc[:, 1].to_numpy())


def test_metrics_are_compared_over_the_pairs_that_both_scored(store: Store, view: View) -> None:
    html = shown(store, view, NOISY, RIGHT, LACKS)
    for one, other in ((NOISY, RIGHT), (NOISY, LACKS), (RIGHT, LACKS)):
        assert f">{tau(one, other):.2f}</td>" in html
    assert 0 < tau(NOISY, RIGHT) < 1
    assert "120 pairs of an image and a prompt" in html
    assert "over pairs of the whole benchmark, whatever skill or split is chosen" in html
    assert "Where they disagree" not in html  # Scores of two metrics have no common scale.


def test_a_metric_whose_smaller_scores_are_better_is_turned_first(store: Store, view: View) -> None:
    whose, metric = entry_id(TURNED).split("/")
    assert ">−1.00</td>" in shown(store, view, RIGHT, TURNED)
    turned = shown(store, view, RIGHT, TURNED, lower={whose: (metric,)})
    assert ">−1.00</td>" not in turned and ">1.00</td>" in turned


def test_only_metrics_whose_scores_are_published_are_in_it(store: Store, view: View) -> None:
    html = shown(store, view, NOISY, RIGHT)
    names = {view.entries[entry_id(place)].metric for place in (RIGHT, NOISY, TURNED, LACKS)}
    absent = {entry.metric for entry in view.entries.values()} - names
    assert all(name in html for name in names)
    assert not any(f">{name}<" in html for name in absent if name.isalnum())


@pytest.mark.parametrize("where", ["the snapshot", "this server"])
def test_scores_are_not_compared_where_either_card_withholds_answers(
    store: Store, where: str
) -> None:
    shut = {**cards(), "ratings": cards()["ratings"].model_copy(update={"answers_public": False})}
    view = view_of(snapshot(), cards(), Orders(store), "one")
    if where == "the snapshot":
        view.boards["ratings"].card = shut["ratings"]
    html = shown(store, view, NOISY, RIGHT, here=shut if where == "this server" else None)
    assert "the answers of this benchmark are not" in html
    assert "<table" not in html


@dataclass
class Files:
    """A repository of scores that says what was read of it."""

    files: dict[str, bytes]
    asked: list[str] = field(default_factory=list)

    def read(self, path: str) -> bytes:
        self.asked.append(path)
        if path not in self.files:
            raise NotFoundError(path)
        return self.files[path]


def many(n: int, view: View) -> Files:
    files = {}
    for place in (RIGHT, NOISY):
        own, metric = entry_id(place).split("/")
        pairs = pd.Index([f"pair {k}" for k in range(n)], name="pair_id")
        table = pd.DataFrame({metric: [float((k * 7919) % (n + place)) for k in range(n)]}, pairs)
        files[f"results/{own}/ratings.scores.parquet"] = write_stored(
            ScoreTable(table), submission_id=own, benchmark="ratings", revision=REVISION
        )
    return Files(files)


def test_of_very_many_pairs_the_same_are_taken_of_every_metric_and_read_once(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_scores, "MOST_PAIRS", 50)
    files = many(500, view)
    reader = PairScoreReader(files)  # type: ignore[arg-type]
    entries = [view.entries[entry_id(place)] for place in (RIGHT, NOISY)]
    found = reader.values(cards()["ratings"], entries, {})
    assert found is not None and found.values.shape == (50, 2)
    assert not pd.isna(found.values).any()
    numbers = sorted(int(pair.split()[1]) for pair in found.clusters)
    assert numbers[0] < 100 and numbers[-1] > 400  # From everywhere.
    again = reader.values(cards()["ratings"], entries, {})
    assert again is not None and again.clusters == found.clusters
    assert len(files.asked) == 2


def test_a_sample_of_what_some_lack_is_still_the_same_among_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pair_scores, "MOST_PAIRS", 50)
    every = {f"p{k}": 0 for k in range(500)}
    lacks = dict.fromkeys(list(every)[5:], 0)
    assert len(set(sampled(every)) & set(sampled(lacks))) >= 45
