"""The API of the model track answers what its pages show, and refuses what is not there."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from benchmarks.errors import SubmitterError
from leaderboard.api.mcp import Tools
from leaderboard.api.replies import RefusedError
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.pair import pair_report
from leaderboard.models.people import PeopleBoard, people_boards
from leaderboard.models.reading import ModelReader
from leaderboard.store.interface import Store
from leaderboard.votes.results import VoteResults
from leaderboard.votes.revisions import revision_folder
from tests.kit.boards import keep
from tests.kit.store import memory_store
from tests.leaderboard.api.asking import Asking, asking_of
from tests.leaderboard.golden.samples import VOTE_RESULTS
from tests.leaderboard.models.made_up_ratings import (
    RATED,
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)  # fmt: skip
from tests.leaderboard.views.model_track import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    OWN_JUDGE,
    SET,
    filled,
    source_of,
)  # fmt: skip
from tests.leaderboard.web.skills_fixture import fill

BOARD = f"/v1/models/{SET}"
PAIR = f"{BOARD}/pairs?a={IDS[0]}"


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def api(store: Store) -> Asking:
    return asking_of(source_of(store))


def assert_same_rows_in_all_formats(api: Asking, address: str) -> None:
    rows, text = api.rows(address), api.client.get(f"{address}?format=csv").text
    lines = list(csv.DictReader(io.StringIO(text)))
    parquet = pq.read_table(io.BytesIO(api.client.get(f"{address}?format=parquet").content))
    assert len(lines) == parquet.num_rows == len(rows)
    assert list(lines[0]) == parquet.column_names == list(rows[0])
    assert "\u202e" not in text
    assert not any(line.startswith(("=", "+", "@")) for line in text.splitlines())


# Judged by metrics


def test_the_models_are_listed_with_what_is_declared_and_found(api: Asking) -> None:
    found = api.table("/v1/models")
    assert [row["submission_id"] for row in found["rows"]] == list(IDS)
    first, second, third, fourth, _ = found["rows"]
    declared = [
        first[name] for name in ("hub_model", "parameters", "seeds", "n_wanted", "n_judges")
    ]
    assert declared == ["someone/model", 2_600_000_000, "40,41,42", 3 * N_PROMPTS, 3]
    assert (second["selection"], second["best_of"]) == ("best_of", 4)
    assert (third["n_withheld"], fourth["shares_images_with"]) == (2, IDS[0])
    assert [one["name"] for one in found["about"]["prompt_sets"]] == [EMPTY, SET]
    assert found["about"]["as_of"]
    assert api.rows(f"/v1/models?prompt_set={EMPTY}") == []


def test_a_row_has_ranks_tiers_and_who_is_better(api: Asking) -> None:
    assert api.source.models is not None
    skills = model_board(api.source.models, api.source.reader.view(), BoardQuery(SET)).skills
    rows = api.rows(BOARD)
    assert len(rows) == sum(len(s.means) for of in skills.values() for s in of.standings.values())
    for row in rows:
        standing = skills[row["skill"]].standings[row["submission_id"]]
        mean = standing.means[row["metric"]]
        for name in ("rank_low", "rank_high", "tier"):
            assert row[name] == getattr(standing, name)
        assert row["better_than"] == ",".join(sorted(standing.better_than))
        found = (row["value"], row["ci_low"], row["metric_rank"])
        assert found == (mean.value, mean.ci_low, mean.rank)


def test_models_that_are_listed_have_their_ranks_among_all_or_among_themselves(
    api: Asking,
) -> None:
    listed = IDS[1:3]
    only = f"{BOARD}?models={','.join(listed)}"
    of_all = [row for row in api.rows(BOARD) if row["submission_id"] in listed]
    table = api.table(f"{only}&among=all")
    assert table["rows"] == of_all != api.rows(only)
    assert "alone" not in table["about"]["page"]
    assert "alone=1" in api.table(only)["about"]["page"]


def test_a_board_says_by_what_it_judges_and_where_metrics_disagree(api: Asking) -> None:
    about = api.table(BOARD)["about"]
    assert about["rule"]
    trusted = {(one["skill"], one["metric"]) for one in about["judges"] if one["trusted"]}
    assert ("count", JUDGES[1]) in trusted and (None, JUDGES[1]) not in trusted
    assert any(one["evidence"] and one["why"] for one in about["judges"])
    one = next(one for one in about["disagreements"] if one["skill"] == "count")
    assert {one["first"], one["second"]} == {IDS[0], IDS[1]}
    assert {*one["for_first"], *one["for_second"]} == {JUDGES[0], JUDGES[1]}
    assert [note["skill"] for note in about["notes"]] == ["spatial", "named_entity", "lang"]
    assert about["own_judge"] == OWN_JUDGE.model_dump(mode="json")


def test_two_models_have_the_tests_of_their_page(api: Asking) -> None:
    rows = api.rows(f"{PAIR}&b={IDS[1]}")
    assert api.source.models is not None
    view = api.source.reader.view()
    report = pair_report(api.source.models, view, IDS[0], IDS[1], BoardQuery(SET))
    for row, test in zip(rows, report.tests, strict=True):
        found = [row[name] for name in ("skill", "metric", "n_prompts", "difference")]
        assert found == [test.skill, test.judge, test.n_prompts, test.difference]
        assert row["p_corrected"] in {test.t_p_holm, None}
        assert (row["dominance_a"], row["dominance_b"]) == (test.dominance, test.dominance_back)


@pytest.mark.parametrize(
    ("query", "n", "judges", "trusted"),
    [
        ("skill=count", 20, {JUDGES[0], JUDGES[1]}, {True}),
        (f"judge={JUDGES[2]}", 10, {JUDGES[2]}, None),
        ("skill=lang", None, None, {False}),
    ],
)
def test_without_two_models_each_two_are_tested_on_one_skill_by_all_that_judge(
    api: Asking, query: str, n: int | None, judges: set[str] | None, trusted: set[bool] | None
) -> None:
    rows = api.rows(f"{BOARD}/pairs?{query}")
    assert rows and len(rows) == (n or len(rows))
    assert len({row["skill"] for row in rows}) == 1
    assert judges is None or {row["metric"] for row in rows} == judges
    assert trusted is None or {row["trusted"] for row in rows} == trusted


def test_a_prompt_has_every_image_with_its_score_and_address(api: Asking) -> None:
    found = api.table(f"{BOARD}/prompts/{quote(HOSTILE_ID, safe='')}?judge={JUDGES[1]}")
    assert len(found["rows"]) == 4 * 3 + 2
    images = [row["image"] for row in found["rows"]]
    assert images[0] == "v1/generations/drawn-00000/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D/40?w=320"
    assert images[-1] is None
    assert {row["metric"] for row in found["rows"]} == {JUDGES[1]}
    assert found["about"]["skills"] == ["spatial", "lang"]
    assert [one["element_id"] for one in found["about"]["elements"]] == ["e0", "e1"]
    some = api.rows(f"{BOARD}/prompts/p005?models={IDS[0]}&judge={JUDGES[1]}")
    assert (len(some), some[0]["score"]) == (3, None)


@pytest.mark.parametrize(
    "address", ["/v1/models", BOARD, f"{BOARD}/pairs", f"{BOARD}/prompts/p001"]
)
def test_all_formats_have_the_same_rows_and_no_formula(api: Asking, address: str) -> None:
    assert_same_rows_in_all_formats(api, address)


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/v1/models/nothing", 404, "unknown_prompt_set"),
        ("/v1/models/nothing/pairs", 404, "unknown_prompt_set"),
        ("/v1/models/nothing/prompts/p001", 404, "unknown_prompt_set"),
        ("/v1/models/nothing/ratings", 404, "unknown_prompt_set"),
        ("/v1/models/nothing/ratings/pairs", 404, "unknown_prompt_set"),
        ("/v1/models/nothing/votes", 404, "unknown_prompt_set"),
        (f"{BOARD}/prompts/nothing", 404, "unknown_prompt"),
        ("/v1/models?prompt_set=nothing", 400, "bad_query"),
        (f"{BOARD}?skill=nothing", 400, "bad_query"),
        (f"{BOARD}?judge=nothing", 400, "bad_query"),
        (f"{BOARD}?seed=9", 400, "bad_query"),
        (f"{BOARD}?models=nothing", 400, "bad_query"),
        (f"{BOARD}?models={IDS[0]}&among=some", 400, "bad_query"),
        (f"{BOARD}?set={EMPTY}", 400, "unknown_parameter"),
        (PAIR, 400, "bad_query"),
        (f"{PAIR}&b={IDS[0]}", 400, "bad_query"),
        (f"{PAIR}&b=nothing", 400, "bad_query"),
        (f"{PAIR}&b={IDS[1]}&models={IDS[2]}", 400, "bad_query"),
    ],
)
def test_what_is_not_there_is_refused(api: Asking, address: str, status: int, code: str) -> None:
    assert api.refused(address, status) == code


def test_nothing_to_compare_is_an_empty_table(api: Asking) -> None:
    none = f"/v1/models/{EMPTY}"
    for address in (none, f"{none}/pairs", f"{none}/prompts/p001", f"{BOARD}?words=nothing"):
        assert api.rows(address) == []


def test_an_installation_without_prompt_sets_lists_none() -> None:
    bare = asking_of(replace(source_of(fill(memory_store())), models=None))
    assert bare.rows("/v1/models") == []
    assert bare.client.get(BOARD).status_code == 404


def test_an_assistant_gets_the_trusted_rows_of_one_skill_and_the_disagreements(api: Asking) -> None:
    tools = Tools(api.source)
    assert [row["submission_id"] for row in tools.models()["rows"]] == list(IDS)
    found = tools.models(SET, "count", limit=4)
    assert (len(found["rows"]), found["about"]["rows"]) == (4, 10)
    assert all(row["skill"] == "count" and row["trusted"] for row in found["rows"])
    assert found["about"]["disagreements"] and "judges" not in found["about"]
    with pytest.raises(RefusedError):
        tools.models("nothing")


# Rated by people

RATINGS = f"/v1/models/{RATED}/ratings"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> PeopleBoard:
    missing = SubmitterError("data_missing", "absent needs its ratings.", "Fetch them.")
    answers = rated_answers({"low": 2.0, "middle": 3.0, "high": 4.0}, counting=5)
    rating(monkeypatch, RatedBenchmark(answers), RatedBenchmark(missing, "absent"))
    [found] = people_boards(rated_set(), None)
    return found


@pytest.fixture
def rated(board: PeopleBoard) -> Asking:
    store = memory_store()
    absent = {name: rated_set(of, name) for name, of in (("missing", "absent"), ("unrated", ""))}
    sets = {RATED: rated_set(), **absent}
    return asking_of(replace(source_of(store), models=ModelReader(store, sets, None)))


def test_ratings_and_pairs_have_the_figures_of_the_board(rated: Asking, board: PeopleBoard) -> None:
    few = "counting"  # five prompts
    found = rated.table(RATINGS)
    assert len(found["rows"]) == 3 * 3
    for row in found["rows"]:
        mean = board.skills[row["skill"]].means[row["model"]]
        for key in ("ci_low", "ci_high", "n_prompts", "rank", "rank_low", "rank_high", "tier"):
            assert row[key] == getattr(mean, key), key
        assert (row["mean"], row["facet"]) == (mean.value, "")
        assert row["skill"] != few or row["tier"] is None
    pairs = rated.rows(f"{RATINGS}/pairs")
    assert len(pairs) == 3 * 3
    for row in pairs:
        test = board.skills[row["skill"]].pairs[row["model_a"], row["model_b"]]
        told = (row["difference"], row["t"], row["wilcoxon_w"])
        assert told == (test.difference, test.t, test.wilcoxon_w)
        assert row["p_corrected"] == (None if row["skill"] == few else test.t_p_holm)
    about = [found["about"][k] for k in ("benchmark", "licence", "seed", "n_ratings", "page")]
    page = f"./models?set={RATED}#people"
    assert about == ["rated", "CC BY 4.0", board.seed, board.n_ratings, page]


@pytest.mark.parametrize("part", ["ratings", "ratings/pairs"])
def test_tables_of_ratings_say_why_there_are_none(rated: Asking, part: str) -> None:
    assert_same_rows_in_all_formats(rated, f"/v1/models/{RATED}/{part}")
    for prompt_set, why in (("missing", "absent needs"), ("unrated", "People rated")):
        found = rated.table(f"/v1/models/{prompt_set}/{part}")
        assert found["rows"] == []
        assert why in found["about"]["missing"]


# People's votes


def test_the_latest_revision_of_votes_has_the_figures_of_its_board() -> None:
    store, address = filled(), f"{BOARD}/votes"
    api = asking_of(source_of(store))
    found = api.table(address)
    assert found["rows"] == [] and found["about"]["missing"]
    for number in (1, 2):
        made = {**VOTE_RESULTS, "prompt_set": SET, "number": number}
        board = VoteResults.model_validate(made)
        keep(store, {f"{revision_folder(SET, number)}board.json": board.model_dump_json().encode()})
    found, model = api.table(address), board.models[0].model_dump()
    (row,) = found["rows"]
    assert {name: row[name] for name in model if name in row and name != "both_bad"} == {
        name: model[name] for name in model if name not in {"title", "both_bad"}
    }
    assert row["model"] == model["title"]
    assert [row["both_bad"], row["both_bad_low"], row["both_bad_high"]] == [0.125, 0.0625, 0.25]
    about = found["about"]
    assert (about["number"], about["n_banned"], about["equal"]["high"]) == (2, 1, 0.25)
    assert about["file"] == f"{revision_folder(SET, 2)}votes.parquet"
    assert about["page"] == f"./models?set={SET}&view=votes"
    assert_same_rows_in_all_formats(api, address)


# What choosing by a metric gains


def test_a_metric_has_its_gains_under_itself_and_the_other_qualified_ones(
    api: Asking, store: Store
) -> None:
    address = f"/v1/best-of-n/{JUDGES[1]}"
    found = api.table(address)
    assert_same_rows_in_all_formats(api, address)
    assert found["about"]["entry_id"] == JUDGES[1]
    assert [one["source"] for one in found["about"]["sentences"]] == [SET]
    rows = found["rows"]
    assert {row["under"] for row in rows} == {"itself", "others", "other"}
    own = [row for row in rows if row["under"] == "itself"]
    assert [row["size"] for row in own] == [1, 2, 3] and own[0]["gain"] == 0
    # One image of a prompt has no score in each of five models, one of which drew two seeds.
    assert (own[0]["n_choices"], own[0]["n_missing"]) == (4 * (N_PROMPTS - 1), 4)
    assert own[0]["n_few"] == 1
    judges = {row["valued_by"] for row in rows if row["under"] == "other"}
    assert judges and judges < set(JUDGES) - {JUDGES[1]}
    assert api.refused("/v1/best-of-n/nobody/none", 404) == "unknown_entry"
