"""The Compare place over a made-up store, and its states as parsed pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.schema import Card
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.reader import View
from leaderboard.views.comparison import Behind, ClusterReader, CompareQuery, PairScoreReader
from leaderboard.web.compare import ComparePlace
from tests.leaderboard.web.parsed import Node, harmless, read
from tests.leaderboard.web.synthetic import cards


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
