"""A made-up site whose ratings board has cases and scores to look at, and its Compare place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cases import cases_path, image_cases, of_five, write_cases
from benchmarks.parquet import write_stored
from benchmarks.rated_images import RatedImages, ratings_path
from benchmarks.schema import Card, ScoreTable
from leaderboard.publication.item_scores import CaseSet, ItemReader
from leaderboard.publication.reader import View
from leaderboard.store.interface import Store
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.comparison import Behind, ClusterReader, PairScoreReader
from leaderboard.web.compare import ComparePlace
from leaderboard.web.page import Context
from tests.kit.boards import (
    METRICS,
    NASTY,
    REVISION,
    SKILLS,
    cards,
    fill,
    keep,
    site_of,
)
from tests.kit.html import Node, harmless, read
from tests.kit.store import memory_store

__all__ = ["REVISION"]
N_PROMPTS, N_IMAGES = 30, 4
RIGHT, NOISY, TURNED, LACKS = 0, 2, 3, 5
"""Places of metrics: always right, often wrong, upside down, and with few scores."""


def entry_id(place: int) -> str:
    return f"made-up-{place:04d}/{METRICS[place]}"


def rated() -> pd.DataFrame:
    """Prompts with four images each; one prompt is hostile."""
    rng = np.random.default_rng(5)
    prompts = [f"p{k}" for k in range(N_PROMPTS) for _ in range(N_IMAGES)]
    pairs = [f"{prompt}/m{k % N_IMAGES}" for k, prompt in enumerate(prompts)]
    ratings = rng.permuted(np.tile([1.0, 2.5, 4.0, 5.0], (N_PROMPTS, 1)), axis=1).ravel()
    skills, names = list(SKILLS), dict.fromkeys(prompts)
    return image_cases(
        pairs, prompts, ratings, of_five(ratings),
        texts={prompt: NASTY if prompt == "p3" else f"a cup, {prompt}" for prompt in names},
        skills={prompt: [skills[k % 3]] for k, prompt in enumerate(names)},
        splits={prompt: "real" if k % 2 else "synth" for k, prompt in enumerate(names)},
    )  # fmt: skip


def rated_images() -> RatedImages:
    """The images of these prompts, each with the ratings of three people."""
    cases = rated()
    means = cases["expected"].to_numpy(float)
    spread = np.random.default_rng(9).normal(0, 0.5, (len(means), 2))
    ratings = np.column_stack([spread, -spread.sum(axis=1)]) + means[:, None]
    prompts = cases["cluster"].tolist()
    return RatedImages(prompts, prompts, cases["pair_id"].tolist(), means, ratings, n_outside=1)


def scores_of(cases: pd.DataFrame, place: int) -> pd.Series:
    """What a made-up metric scored."""
    people = cases["expected"].to_numpy(float)
    found = {
        RIGHT: people / 5,
        NOISY: people + np.random.default_rng(1).normal(0, 2, len(people)),
        TURNED: -people,
        LACKS: np.where(np.arange(len(people)) < 8, people, np.nan),
    }[place]
    return pd.Series(found, index=pd.Index(cases["pair_id"], name="pair_id"), name=METRICS[place])


def case_set(cases: pd.DataFrame | None = None) -> CaseSet:
    return CaseSet.of("ratings", REVISION, rated() if cases is None else cases)


def filled(*, with_cases: bool = True) -> Store:
    """The synthetic store, with cases and scores of four metrics."""
    store, cases = fill(memory_store()), rated()
    files: dict[str, bytes] = {}
    if with_cases:
        files[cases_path("ratings", REVISION)] = write_cases(cases)
        files[ratings_path("ratings", REVISION)] = rated_images().to_bytes()
    for place in (RIGHT, NOISY, TURNED, LACKS):
        own = f"made-up-{place:04d}"
        table = ScoreTable(scores_of(cases, place).to_frame())
        files[f"results/{own}/ratings.scores.parquet"] = write_stored(
            table, submission_id=own, benchmark="ratings", revision=REVISION
        )
    keep(store, files)
    return store


def context(store: Store | None = None, *, withheld: bool = False) -> Context:
    """The site; with answers withheld if it is to be so."""
    shown = cards()
    if withheld:
        shown["ratings"] = shown["ratings"].model_copy(update={"answers_public": False})
    return site_of(store or filled(), cards_=shown)


# The Compare place over it.


@dataclass(frozen=True)
class MadeUpImages:
    """Images and prompts that are here, by id and cluster."""

    ids: Collection[str] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)

    def available(self, benchmark: str) -> Collection[str]:
        return self.ids if benchmark == "ratings" else ()

    def texts(self, benchmark: str) -> Mapping[str, str]:
        return self.prompts


def behind_of(
    store: Any, here: Mapping[str, Card] | None = None, lower: Any = None, images: Any = None
) -> Behind:
    public = store.public
    return Behind(
        ItemReader(public), images or MadeUpImages(), cards() if here is None else here,
        lambda: lower or {}, ClusterReader(public), PairScoreReader(public),
    )  # fmt: skip


def place_of(
    view: View, store: Any, here: Mapping[str, Card] | None = None, images: Any = None
) -> ComparePlace:
    return ComparePlace(lambda: view, behind_of(store, here, images=images))


def html(place: ComparePlace, **params: str) -> str:
    found = place.answer(CompareQuery.from_params(params)).html
    harmless(found)
    return found


def page(place: ComparePlace, **params: str) -> Node:
    return read(html(place, **params))


def withheld() -> dict[str, Card]:
    return {k: card.model_copy(update={"answers_public": False}) for k, card in cards().items()}
