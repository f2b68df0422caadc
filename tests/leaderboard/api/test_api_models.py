"""The API of the model track answers what its pages show, and refuses what is not there."""

from __future__ import annotations

import io
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from leaderboard.api.problems import RefusedError
from leaderboard.api.routes import routes
from leaderboard.api.tools import Tools
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.pair import pair_report
from leaderboard.pages.models.models_page import answer
from leaderboard.pages.models.query import ModelsQuery
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.api.asking import Asking
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    SET,
    context_of,
    filled,
    source_of,
)
from tests.leaderboard.pages.skills.skills_fixture import fill

BOARD = f"/v1/models/{SET}"


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def api(store: Store) -> Asking:
    source = source_of(store)
    app = Starlette(routes=routes(source))
    return Asking(source, TestClient(app, "http://made.up", raise_server_exceptions=False))


def test_the_models_are_listed_with_what_is_declared_and_found(api: Asking) -> None:
    found = api.table("/v1/models")
    assert [row["submission_id"] for row in found["rows"]] == list(IDS)
    first, second, third, fourth, _ = found["rows"]
    assert (first["hub_model"], first["parameters"], first["seeds"]) == (
        "someone/model", 2_600_000_000, "40,41,42",
    )  # fmt: skip
    assert (second["selection"], second["best_of"]) == ("best_of", 4)
    assert third["n_withheld"] == 2 and fourth["shares_images_with"] == IDS[0]
    assert first["n_wanted"] == 3 * N_PROMPTS and first["n_judges"] == 3
    assert [one["name"] for one in found["about"]["prompt_sets"]] == [EMPTY, SET]
    assert api.table(f"/v1/models?prompt_set={EMPTY}")["rows"] == []
    assert found["about"]["as_of"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["", "skill=count", "seed=2", f"judge={JUDGES[2]}", "words=box&split=real",
              f"models={IDS[0]},{IDS[3]}"]
)  # fmt: skip
def test_a_board_has_the_figures_of_the_page_for_the_same_query(
    api: Asking, store: Store, query: str
) -> None:
    found = api.table(f"{BOARD}?{query}")
    params = dict(part.split("=", 1) for part in query.split("&") if part)
    page = answer(context_of(store), ModelsQuery.from_params({"set": SET, **params}))
    leading = [row for row in found["rows"] if row["lead"] and row["value"] is not None]
    assert leading
    for row in leading:
        assert f"<b>{row['value']:.3f}</b>" in page
    titles = {row["skill_title"] for row in found["rows"]}
    assert all(f"{title}<" in page for title in titles)
    assert found["about"]["page"].startswith(f"./models?set={SET}")


def test_a_row_has_ranks_tiers_and_who_is_better(api: Asking) -> None:
    assert api.source.models is not None
    found = model_board(api.source.models, api.source.reader.view(), BoardQuery(SET))
    rows = api.table(BOARD)["rows"]
    assert len(rows) == sum(
        len(s.means) for of in found.skills.values() for s in of.standings.values()
    )
    for row in rows:
        standing = found.skills[row["skill"]].standings[row["submission_id"]]
        mean = standing.means[row["metric"]]
        assert (row["rank_low"], row["rank_high"], row["tier"]) == (
            standing.rank_low, standing.rank_high, standing.tier,
        )  # fmt: skip
        assert row["better_than"] == ",".join(sorted(standing.better_than))
        assert (row["value"], row["ci_low"], row["metric_rank"]) == (
            mean.value,
            mean.ci_low,
            mean.rank,
        )


def test_a_board_says_by_what_it_judges_and_where_metrics_disagree(api: Asking) -> None:
    about = api.table(BOARD)["about"]
    assert "A metric judges a skill" in about["rule"]
    trusted = {(one["skill"], one["metric"]) for one in about["judges"] if one["trusted"]}
    assert ("count", JUDGES[1]) in trusted and (None, JUDGES[1]) not in trusted
    assert any(one["evidence"] and one["why"] for one in about["judges"])
    one = next(one for one in about["disagreements"] if one["skill"] == "count")
    assert {one["first"], one["second"]} == {IDS[0], IDS[1]}
    assert {*one["for_first"], *one["for_second"]} == {JUDGES[0], JUDGES[1]}
    assert [note["skill"] for note in about["notes"]] == ["lang"]


def test_two_models_have_the_tests_of_their_page(api: Asking) -> None:
    rows = api.table(f"{BOARD}/pairs?a={IDS[0]}&b={IDS[1]}")["rows"]
    assert api.source.models is not None
    report = pair_report(
        api.source.models, api.source.reader.view(), IDS[0], IDS[1], BoardQuery(SET)
    )
    assert len(rows) == len(report.tests)
    for row, test in zip(rows, report.tests, strict=True):
        assert (row["skill"], row["metric"], row["n_prompts"]) == (
            test.skill,
            test.judge,
            test.n_prompts,
        )
        assert row["difference"] == test.difference and row["p_corrected"] in {test.t_p_holm, None}
        assert (row["dominance_a"], row["dominance_b"]) == (test.dominance, test.dominance_back)


def test_without_two_models_each_two_are_tested_on_one_skill_by_all_that_judge(api: Asking) -> None:
    rows = api.table(f"{BOARD}/pairs?skill=count")["rows"]
    assert len(rows) == 10 * 2 and {row["metric"] for row in rows} == {JUDGES[0], JUDGES[1]}
    assert {row["skill"] for row in rows} == {"count"} and all(row["trusted"] for row in rows)
    alone = api.table(f"{BOARD}/pairs?judge={JUDGES[2]}")["rows"]
    assert len(alone) == 10 and {row["metric"] for row in alone} == {JUDGES[2]}
    curious = api.table(f"{BOARD}/pairs?skill=lang")["rows"]
    assert curious and not any(row["trusted"] for row in curious)


def test_a_prompt_has_every_image_with_its_score_and_address(api: Asking) -> None:
    found = api.table(f"{BOARD}/prompts/{quote(HOSTILE_ID, safe='')}?judge={JUDGES[1]}")
    assert len(found["rows"]) == 4 * 3 + 2 and found["about"]["skills"] == ["spatial", "lang"]
    images = [row["image"] for row in found["rows"]]
    assert images[0] == "v1/generations/drawn-00000/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D/40?w=320"
    assert images[-1] is None and {row["metric"] for row in found["rows"]} == {JUDGES[1]}
    assert [one["element_id"] for one in found["about"]["elements"]] == ["e0", "e1"]
    some = api.table(f"{BOARD}/prompts/p005?models={IDS[0]}&judge={JUDGES[1]}")["rows"]
    assert len(some) == 3 and some[0]["score"] is None


def test_all_formats_have_the_same_rows_and_no_formula(api: Asking) -> None:
    for address in ("/v1/models", BOARD, f"{BOARD}/pairs", f"{BOARD}/prompts/p001"):
        table = api.table(address)
        binary = api.client.get(f"{address}?format=parquet").content
        assert pq.read_table(io.BytesIO(binary)).num_rows == len(table["rows"])
        text = api.client.get(f"{address}?format=csv").text
        assert "\u202e" not in text and not any(
            line.startswith(("=", "+", "@")) for line in text.splitlines()
        )


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/v1/models/nothing", 404, "unknown_prompt_set"),
        ("/v1/models/nothing/pairs", 404, "unknown_prompt_set"),
        ("/v1/models/nothing/prompts/p001", 404, "unknown_prompt_set"),
        (f"{BOARD}/prompts/nothing", 404, "unknown_prompt"),
        ("/v1/models?prompt_set=nothing", 400, "bad_query"),
        (f"{BOARD}?skill=nothing", 400, "bad_query"),
        (f"{BOARD}?judge=nothing", 400, "bad_query"),
        (f"{BOARD}?seed=9", 400, "bad_query"),
        (f"{BOARD}?models=nothing", 400, "bad_query"),
        (f"{BOARD}?set={EMPTY}", 400, "unknown_parameter"),
        (f"{BOARD}/pairs?a={IDS[0]}", 400, "bad_query"),
        (f"{BOARD}/pairs?a={IDS[0]}&b={IDS[0]}", 400, "bad_query"),
        (f"{BOARD}/pairs?a={IDS[0]}&b=nothing", 400, "bad_query"),
        (f"{BOARD}/pairs?a={IDS[0]}&b={IDS[1]}&models={IDS[2]}", 400, "bad_query"),
    ],
)
def test_what_is_not_there_is_refused_in_one_shape(
    api: Asking, address: str, status: int, code: str
) -> None:
    assert api.refused(address, status) == code


def test_nothing_to_compare_is_an_empty_table(api: Asking) -> None:
    for address in (f"/v1/models/{EMPTY}", f"/v1/models/{EMPTY}/pairs", f"{BOARD}?words=nothing"):
        assert api.table(address)["rows"] == []
    assert api.table(f"/v1/models/{EMPTY}/prompts/p001")["rows"] == []


def test_an_installation_without_prompt_sets_lists_none() -> None:
    store = fill(memory_store())
    source = source_of(store)
    bare = type(source)(source.reader, store, source.cards, source.clock)
    client = TestClient(Starlette(routes=routes(bare)), "http://made.up")
    assert client.get("/v1/models").json()["rows"] == []
    assert client.get(BOARD).status_code == 404


def test_an_assistant_gets_the_trusted_rows_of_one_skill_and_the_disagreements(api: Asking) -> None:
    tools = Tools(api.source)
    listed = tools.models()
    assert [row["submission_id"] for row in listed["rows"]] == list(IDS)
    found = tools.models(SET, "count", limit=4)
    assert len(found["rows"]) == 4 and found["about"]["rows"] == 10
    assert all(row["skill"] == "count" and row["trusted"] for row in found["rows"])
    assert found["about"]["disagreements"] and "judges" not in found["about"]
    with pytest.raises(RefusedError):
        tools.models("nothing")
