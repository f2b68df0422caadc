"""Cases that were published without prompts: how to get these, and that they are shown once there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from benchmarks.cases import cases_path, write_cases
from benchmarks.registry import load_registry
from benchmarks.sources.folder import DataFile
from leaderboard.pages.items.items_page import Items
from leaderboard.pages.items.query import ItemsQuery
from leaderboard.pages.page import Context
from leaderboard.pages.reading import Reader
from leaderboard.service.pictures import Pictures
from leaderboard.store.interface import transact
from tests.leaderboard.pages.items.looked_at import RIGHT, TURNED, context, entry_id, filled, rated
from tests.leaderboard.pages.synthetic import cards

FETCHED = (DataFile(path="ratings/answers.csv", role="answers", repo="owner/ratings"),)


class Texts(Pictures):
    """The prompts of a folder of data that a test fills."""

    def __init__(self) -> None:
        super().__init__({}, None)
        self.here: Mapping[str, str] = {}

    def texts(self, benchmark: str) -> Mapping[str, str]:
        return self.here


@pytest.fixture
def site() -> Context:
    """The made-up site with its cases as a bundle gives them, without prompts."""
    store = filled(with_cases=False)
    content = write_cases(rated().assign(prompt=""))
    card = cards()["ratings"].model_copy(update={"files": FETCHED})
    transact(store.public, lambda: {cases_path("ratings", card.revision): content}, "cases")
    made = context(store)
    shown = {**made.cards, "ratings": card}
    return replace(made, cards=shown, reader=Reader(store, shown), pictures=Texts())


def shown(site: Context, **asked: str) -> str:
    query = ItemsQuery.from_params({"benchmark": "ratings", "a": entry_id(TURNED), **asked})
    return unescape(Items(site).answer(query))


def test_without_prompts_the_page_says_how_to_fetch_them(site: Context) -> None:
    html = shown(site)
    assert "python -m benchmarks fetch ratings" in html
    assert html.count("The prompt is not on this machine.") == 12


def test_prompts_are_shown_as_soon_as_they_are_here_and_nothing_else_moves(site: Context) -> None:
    items = Items(site)
    query = ItemsQuery.from_params({"benchmark": "ratings", "a": entry_id(TURNED)})
    without = items.answer(query)
    assert isinstance(site.pictures, Texts)
    site.pictures.here = {f"p{k}": f"a cup, p{k}" for k in range(30)}
    html = items.answer(query)
    assert "a cup, p7" in html and "The prompt is not on this machine." not in html
    for said in ("In all of these", "Where it fails, worst first"):
        assert said in html and said in without
    assert (
        without.split("In all of these")[1].split("</table>")[0]
        == (html.split("In all of these")[1].split("</table>")[0])
    )
    assert [f"p{k}" in html for k in range(30)] == [f"p{k}" in without for k in range(30)]


def test_cases_that_have_prompts_keep_them(site: Context) -> None:
    own = context()
    pictures = Texts()
    pictures.here = {"p1": "another prompt"}
    html = Items(replace(own, pictures=pictures)).answer(
        ItemsQuery.from_params({"benchmark": "ratings", "a": entry_id(RIGHT), "show": "all"})
    )
    assert "a cup, p1" in html and "another prompt" not in html


@pytest.mark.paper
@pytest.mark.parametrize(
    ("name", "prompts"), [("ts2", 165), ("tifa160", 160), ("genai_1600", 1600)]
)
def test_prompts_of_a_bundled_benchmark_come_from_the_folder_of_data(
    assay_data: Path, name: str, prompts: int
) -> None:
    registry = load_registry()
    assert Pictures(registry, None).texts(name) == {}
    pictures = Pictures(registry, assay_data)
    found = pictures.texts(name)
    assert len(found) == prompts and pictures.texts(name) is found
    clusters = set(registry[name].answers(None).clusters)
    assert set(found) == clusters
