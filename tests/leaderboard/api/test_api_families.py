"""Boards of every family of cards, made up or bundled, are answered by `/v1` and shown on their pages."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest

from benchmarks.schema import KINDS
from leaderboard.views.boards import BoardQuery, resolve
from leaderboard.web.benchmark_tab import board_html
from leaderboard.web.pages.docs_page import benchmark_html
from tests.kit.html import harmless, parse
from tests.leaderboard.api.asking import asking
from tests.leaderboard.web.families_fixture import (
    FAMILIES,
    METRICS,
    bundled,
    run_on,
    site_store,
    small,
)

BUNDLED = bundled()
EVERY = pytest.mark.parametrize(
    "name",
    [*(f"of_{family}" for family in FAMILIES),
     "genai_arena",
     *(pytest.param(name, marks=pytest.mark.slow) for name in BUNDLED if name != "genai_arena")],
)  # fmt: skip


class Shown:
    """A board with made-up metrics, its API, and the values that were measured."""

    def __init__(self, name: str) -> None:
        with TemporaryDirectory() as folder:
            own = BUNDLED.get(name) or small(Path(folder), name.removeprefix("of_"))
            self.run = run_on(own)
        store, cards = site_store([self.run], {name: own})
        self.card, self.api = cards[name], asking(store, cards)

    def values(self, measure: str, token: str) -> dict[str, float | None]:
        """Metric to its value, NaN as None, of one measure over all skills."""
        return {
            row["metric"]: row["value"]
            for row in self.run.result.rows
            if row["measure"] == measure and row["skill"] is None and _token(row) == token
        }


shown = cache(Shown)


def _token(row: dict[str, object]) -> str:
    parts = [row[key] or "" for key in ("measure", "variant", "split", "facet")]
    return "~".join(map(str, parts)).rstrip("~")


@pytest.mark.first_quick
@EVERY
def test_the_catalogue_says_what_a_board_of_a_family_measures(name: str) -> None:
    own = shown(name)
    catalogue = own.api.table("/v1/benchmarks")
    (row,) = catalogue["rows"]
    told = {key: row[key] for key in ("name", "title", "family", "kind", "n_entries")}
    assert told == {
        "name": name, "title": own.card.title, "family": own.card.family, "kind": own.card.kind,
        "n_entries": len(METRICS),
    }  # fmt: skip
    meanings = {column["name"]: column["meaning"] for column in catalogue["columns"]}
    assert all(kind in meanings["kind"] for kind in KINDS)
    found = own.api.table(f"/v1/benchmarks/{name}")
    assert {row["measure"] for row in found["rows"]} == set(own.card.measures)
    assert set(found["about"]["card"]) == set(type(own.card).model_fields)


@EVERY
def test_a_board_of_a_family_is_answered_in_every_measure_and_format(name: str) -> None:
    own, board = shown(name), f"/v1/boards/{name}"
    headline = own.api.rows(board)
    assert {row["measure"] for row in headline} == {own.card.headline.measure}
    for measure in own.card.measures:
        table = own.api.table(f"{board}?measure={measure}")
        values = {row["metric"]: row["value"] for row in table["rows"]}
        assert values == own.values(measure, table["about"]["measure"])
        assert set(values) == set(METRICS)
        ordered = [row["value"] for row in table["rows"] if row["rank"] is not None]
        assert ordered == sorted(ordered, reverse=own.card.higher_is_better(measure))
    silent = next(row for row in headline if row["metric"] == "silent at times")
    assert silent["n_missing"] > 0 and silent["note"]
    parquet = own.api.client.get(f"{board}?format=parquet").content
    assert pq.read_table(io.BytesIO(parquet)).num_rows == len(METRICS)
    csv = own.api.client.get(f"{board}?format=csv").text
    assert len(csv.splitlines()) == 1 + len(METRICS)
    for more in ("pairs", "skills", "published"):
        assert own.api.table(f"{board}/{more}")["about"]["benchmark"] == name


@EVERY
def test_the_pages_of_a_board_of_a_family_name_its_metrics_and_measures(name: str) -> None:
    own = shown(name)
    view = own.api.source.reader.view()
    board = board_html(resolve(BoardQuery(name), view.boards), view)
    assert parse(board).texts(".as-board .as-row-open bdi") == [
        row["metric"] for row in own.api.rows(f"/v1/boards/{name}")
    ]
    page = benchmark_html(own.api.source.cards, name)
    text = parse(page).one("#measures").text
    assert all(info.title in text for info in own.card.measures.values())
    harmless(board, page)
