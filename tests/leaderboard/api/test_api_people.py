"""People's ratings of models as tables for programs."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.errors import SubmitterError
from leaderboard.api.routes import routes
from leaderboard.models.people import PeopleBoard, people_boards
from leaderboard.models.reading import ModelReader
from leaderboard.store.memory import memory_store
from tests.leaderboard.api.asking import Asking
from tests.leaderboard.models.made_up_ratings import (
    RATED,
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)
from tests.leaderboard.pages.models.made_up import source_of

RATINGS = f"/v1/models/{RATED}/ratings"
PAIRS = f"{RATINGS}/pairs"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> PeopleBoard:
    missing = SubmitterError("data_missing", "absent needs its ratings.", "Fetch them.")
    answers = rated_answers({"low": 2.0, "middle": 3.0, "high": 4.0}, counting=5)
    rating(monkeypatch, RatedBenchmark(answers), RatedBenchmark(missing, "absent"))
    [found] = people_boards(rated_set(), None)
    return found


@pytest.fixture
def api(board: PeopleBoard) -> Asking:
    store = memory_store()
    sets = {RATED: rated_set(), "missing": rated_set("absent", "missing"),
            "unrated": rated_set("", "unrated")}  # fmt: skip
    source = replace(source_of(store), models=ModelReader(store, sets, None))
    app = Starlette(routes=routes(source))
    return Asking(source, TestClient(app, "http://made.up", raise_server_exceptions=False))


def test_ratings_have_the_figures_of_the_board(api: Asking, board: PeopleBoard) -> None:
    rows = api.table(RATINGS)["rows"]
    assert len(rows) == 3 * 3
    for row in rows:
        mean = board.skills[row["skill"]].means[row["model"]]
        for key in ("ci_low", "ci_high", "n_prompts", "rank", "rank_low", "rank_high", "tier"):
            assert row[key] == getattr(mean, key), key
        assert row["mean"] == mean.value and row["facet"] == ""
    assert {row["tier"] for row in rows if row["skill"] == "counting"} == {None}  # five prompts


def test_pairs_have_the_tests_of_each_two_models_on_each_skill(
    api: Asking, board: PeopleBoard
) -> None:
    rows = api.table(PAIRS)["rows"]
    assert len(rows) == 3 * 3
    for row in rows:
        test = board.skills[row["skill"]].pairs[row["model_a"], row["model_b"]]
        assert (row["difference"], row["t"], row["wilcoxon_w"]) == (
            test.difference, test.t, test.wilcoxon_w,
        )  # fmt: skip
        few = row["skill"] == "counting"
        assert (row["p_corrected"] is None) is few
        assert few or row["p_corrected"] == test.t_p_holm


def test_a_table_names_its_benchmark_licence_and_seed(api: Asking, board: PeopleBoard) -> None:
    about = api.table(RATINGS)["about"]
    assert (about["benchmark"], about["licence"], about["seed"]) == (
        "rated", "CC BY 4.0", board.seed,
    )  # fmt: skip
    assert about["n_ratings"] == board.n_ratings
    assert about["page"] == f"./models?set={RATED}#people"


@pytest.mark.parametrize("address", [RATINGS, PAIRS])
def test_all_formats_have_the_same_rows(api: Asking, address: str) -> None:
    found = api.table(address)["rows"]
    lines = list(csv.DictReader(io.StringIO(api.client.get(f"{address}?format=csv").text)))
    parquet = pq.read_table(io.BytesIO(api.client.get(f"{address}?format=parquet").content))
    assert len(lines) == parquet.num_rows == len(found)
    assert list(lines[0]) == parquet.column_names == list(found[0])


@pytest.mark.parametrize("part", ["ratings", "ratings/pairs"])
@pytest.mark.parametrize(
    ("prompt_set", "why"), [("missing", "absent needs its ratings"), ("unrated", "People rated no")]
)
def test_where_there_are_no_ratings_there_are_no_rows_and_a_reason(
    api: Asking, prompt_set: str, why: str, part: str
) -> None:
    found = api.table(f"/v1/models/{prompt_set}/{part}")
    assert found["rows"] == [] and why in found["about"]["missing"]


@pytest.mark.parametrize("part", ["ratings", "ratings/pairs"])
def test_an_unknown_set_is_refused(api: Asking, part: str) -> None:
    assert api.refused(f"/v1/models/nothing/{part}", 404) == "unknown_prompt_set"
