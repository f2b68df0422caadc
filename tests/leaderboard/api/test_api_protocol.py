"""How the API speaks HTTP: tags, compression, other origins, and one shape for what is refused."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import anyio
import httpx
import pytest
from fastapi.openapi.models import OpenAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.testclient import TestClient

from leaderboard.api.openapi import openapi
from leaderboard.api.replies import Body, Kept, matches, takes_gzip
from leaderboard.api.routes import DOCUMENTS, OPERATIONS, routes
from leaderboard.api.serving import Api, application
from leaderboard.api.source import IN_LINE
from leaderboard.publication.snapshot import PATH
from leaderboard.service import picture_routes
from leaderboard.service.pictures import Pictures
from leaderboard.store.memory import memory_store
from tests.leaderboard.api.asking import Asking, asking
from tests.leaderboard.pages.failing_store import Switch, failing
from tests.leaderboard.pages.synthetic import cards, fill

BOARD = "/v1/boards/ratings"


@pytest.fixture(scope="module")
def api() -> Asking:
    return asking()


def addresses(api: Asking) -> list[str]:
    entry = next(iter(api.source.reader.view().entries))
    # There are no earlier boards, and no prompt sets; `test_api_models` asks for those.
    known = [o.path for o in OPERATIONS if o.name != "moved" and "{prompt_set}" not in o.path]
    paths = [*known, *DOCUMENTS]
    return [
        f"/v1{path.replace('{benchmark}', 'ratings').replace('{entry_id}', entry)}"
        for path in paths
    ]


def test_who_has_an_answer_is_told_that_it_still_holds(api: Asking) -> None:
    for address in addresses(api):
        for accepted in ("identity", "gzip"):
            first = api.client.get(address, headers={"Accept-Encoding": accepted})
            tag = first.headers["ETag"]
            assert first.status_code == 200 and tag.startswith('"'), address
            again = api.client.get(
                address, headers={"Accept-Encoding": accepted, "If-None-Match": f'"x", {tag}'}
            )
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["ETag"] == tag
            assert again.headers["Cache-Control"] == "public, no-cache"


def test_other_queries_formats_and_encodings_have_other_tags(api: Asking) -> None:
    def tag(address: str, accepted: str = "identity") -> str:
        return api.client.get(address, headers={"Accept-Encoding": accepted}).headers["ETag"]

    every = [
        tag(BOARD), tag(BOARD, "gzip"), tag(f"{BOARD}?format=csv"), tag(f"{BOARD}?format=parquet"),
        tag(f"{BOARD}?skill=colour"), tag(f"{BOARD}/pairs"), tag("/v1/boards/graphs"),
    ]  # fmt: skip
    assert len(set(every)) == len(every)
    assert tag(BOARD) == every[0]


def test_a_publication_changes_the_tag_and_another_event_does_not() -> None:
    store = fill(memory_store())
    api = asking(store)
    before = api.client.get(BOARD).headers["ETag"]
    store.public.commit({"note.txt": b"x"}, parent=store.public.head(), message="an event")
    assert api.client.get(BOARD).headers["ETag"] == before
    smaller = fill(memory_store(), 5).public.read(PATH)
    store.public.commit({PATH: smaller}, parent=store.public.head(), message="publish")
    answer = api.client.get(BOARD, headers={"If-None-Match": before})
    assert answer.status_code == 200 and len(answer.json()["rows"]) == 5


def test_the_same_answer_comes_compressed_to_those_who_take_it(api: Asking) -> None:
    plain = api.client.get(BOARD, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    with api.client.stream("GET", BOARD, headers={"Accept-Encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content and len(raw) < len(plain.content) / 3
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("", False), ("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("*", True),
        ("gzip;q=0, *", False), ("identity", False), ("GZIP", True), ("*;q=0", False),
    ],
)  # fmt: skip
def test_an_encoding_is_used_where_it_is_accepted(accepted: str, *, takes: bool) -> None:
    assert takes_gzip(accepted) is takes


def test_a_tag_is_known_in_any_list() -> None:
    assert matches('"a", W/"b"', '"b"') and matches("*", '"b"')
    assert not matches('"ab"', '"b"') and not matches("", '"b"')


def test_head_has_the_headers_and_no_content(api: Asking) -> None:
    for address in addresses(api):
        whole, head = api.client.get(address), api.client.head(address)
        assert head.content == b"" and head.status_code == 200
        assert head.headers["ETag"] == whole.headers["ETag"]


def test_any_page_may_read_and_none_may_write(api: Asking) -> None:
    for address in (BOARD, "/v1/nothing"):
        answer = api.client.get(address, headers={"Origin": "https://else.example"})
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
    asked = {"Origin": "https://else.example", "Access-Control-Request-Method": "GET"}
    before = api.client.options(BOARD, headers=asked)
    assert before.status_code == 204
    assert before.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"])
def test_nothing_can_be_written_at_any_address(api: Asking, method: str) -> None:
    # In the order of the site, where images come first.
    site = Starlette(routes=[*picture_routes.routes(Pictures({}, None)), *routes(api.source)])
    client = TestClient(site, "http://made.up")
    further = ["/v1", "/v1/", "/v1/nothing", "/v1/images", "/v1/images/ratings/a%2Fb"]
    for address in (*addresses(api), *further):
        answer = client.request(method, address)
        assert answer.status_code == 405, address
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        error = answer.json()["error"]
        assert set(error) == {"code", "message", "hint"} and error["code"] == "method_not_allowed"


def test_an_image_that_is_not_there_is_told_to_pages_of_any_origin(api: Asking) -> None:
    client = TestClient(Starlette(routes=picture_routes.routes(Pictures({}, None))))
    answer = client.get("/v1/images/ratings/a")
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "no_image"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/v1/nothing", 404, "no_such_route"),
        ("/v1/boards/ratings/else", 404, "no_such_route"),
        ("/v1/boards/nothing", 404, "unknown_benchmark"),
        ("/v1/boards/nothing/pairs", 404, "unknown_benchmark"),
        ("/v1/benchmarks/nothing", 404, "unknown_benchmark"),
        ("/v1/entries/nothing/at-all", 404, "unknown_entry"),
        ("/v1/moved", 404, "no_earlier_board"),
        (f"{BOARD}?mesure=srcc", 400, "unknown_parameter"),
        (f"{BOARD}?measure=nothing", 400, "bad_query"),
        (f"{BOARD}?skill=nothing", 400, "bad_query"),
        (f"{BOARD}?kind=nothing", 400, "bad_query"),
        (f"{BOARD}?benchmark=graphs", 400, "bad_query"),
        (f"{BOARD}?format=xml", 400, "bad_query"),
        ("/v1/compare?benchmark=nothing", 400, "bad_query"),
        ("/v1/compare?a=nothing", 400, "bad_query"),
        ("/v1/compare?benchmark=ratings&c=nothing", 400, "bad_query"),
        ("/v1/index?w=nothing:1", 400, "bad_query"),
        ("/v1/queue?state=nothing", 400, "bad_query"),
        ("/v1/queue?page=0", 400, "bad_query"),
        ("/v1/queue?per_page=1001", 400, "bad_query"),
        ("/v1/ledger?page=nine", 400, "bad_query"),
        ("/v1/entries?benchmark=nothing", 400, "bad_query"),
        (f"{BOARD}?search={'x' * 9000}", 414, "query_too_long"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_shape(
    api: Asking, address: str, status: int, code: str
) -> None:
    assert api.refused(address, status) == code


def test_a_defect_is_told_without_saying_more_than_that(
    api: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ValueError("/home/secret/path")

    monkeypatch.setattr(type(api.source.reader), "view", broken)
    answer = api.client.get(BOARD)
    assert answer.status_code == 500 and "secret" not in answer.text
    assert answer.json()["error"]["code"] == "defect"


def test_while_nothing_could_be_read_it_is_said_when_to_ask_again() -> None:
    switch = Switch()
    api = asking(failing(fill(memory_store()), switch))
    switch.out = True
    for address in ("/v1/", BOARD, "/v1/queue", "/v1/ledger", "/v1/entries"):
        answer = api.client.get(address)
        assert answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0
        assert answer.json()["error"]["code"] == "hub_unavailable"
        assert answer.headers["Cache-Control"] == "no-store"
    switch.out = False
    assert api.client.get(BOARD).status_code == 200


def test_what_was_read_before_is_answered_as_of_then_while_the_store_is_away() -> None:
    switch = Switch()
    api = asking(failing(fill(memory_store()), switch))
    known = {a: api.client.get(a) for a in (BOARD, "/v1/queue", "/v1/ledger", "/v1/")}
    switch.out = True
    for address, before in known.items():
        now = api.client.get(address)
        assert (now.status_code, now.content) == (200, before.content)
        assert now.headers["ETag"] == before.headers["ETag"]
        assert now.headers["Assay-As-Of"] == before.headers["Assay-As-Of"]
    assert api.client.get(BOARD).headers["Assay-Stale"] == "true"
    assert "Assay-Stale" not in known[BOARD].headers


def test_what_is_too_much_work_is_refused_or_waits_for_its_turn() -> None:
    api = asking()
    with api.source.turn(), api.source.turn():
        answer = api.client.get(f"{BOARD}?skill=style")
        assert answer.status_code == 503 and answer.headers["Retry-After"] == "5"
        assert answer.json()["error"]["code"] == "busy"
    assert api.client.get(f"{BOARD}?skill=style").status_code == 200


def test_however_much_is_asked_for_the_rest_of_the_site_answers() -> None:
    source = replace(asking().source, wait_s=240.0)
    health = Route("/health", lambda _: Response("well"))  # In a thread, as the one of the site.
    app = Starlette(routes=[health, *routes(source)])

    async def go() -> list[int]:
        found: list[int] = []
        refused = anyio.Event()
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://made.up") as client:

            async def ask(number: int) -> None:
                answer = await client.get(f"{BOARD}?skill=style&search=a,{number}")
                found.append(answer.status_code)
                if len(found) == 60 - IN_LINE:
                    refused.set()

            async with anyio.create_task_group() as group:
                with source.turn(), source.turn():
                    for number in range(60):
                        group.start_soon(ask, number)
                    # Those who find the line full are told so; the line waits for its turn.
                    with anyio.fail_after(120):
                        assert (await client.get("/health")).text == "well"
                        assert (await client.get("/v1/entries")).status_code == 200
                        await refused.wait()
        return found

    answered = anyio.run(go)
    assert sorted(answered) == [200] * IN_LINE + [503] * (60 - IN_LINE)


def test_who_would_wait_behind_too_many_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.api.source.MOST_WAITING", 0)
    answer = asking().client.get(BOARD)
    assert answer.status_code == 503 and answer.headers["Retry-After"] == "5"
    assert answer.json()["error"]["code"] == "busy"


def test_of_very_many_entries_only_what_the_snapshot_holds_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = asking()
    every = api.table(BOARD)["rows"]
    for name, most in (("MOST_RANKED", 5), ("STORED_ABOVE", 5), ("MOST_IN_SKILLS", 5)):
        monkeypatch.setattr(f"leaderboard.api.tables.boards.{name}", most)
    monkeypatch.setattr("leaderboard.api.tables.boards.bounded.__defaults__", (5,))
    api = asking()
    assert api.refused(f"{BOARD}?skill=colour", 422) == "too_many_entries"
    assert api.refused(f"{BOARD}/pairs", 422) == "too_many_entries"
    assert api.refused(f"{BOARD}/skills", 422) == "too_many_entries"
    assert api.refused("/v1/compare?benchmark=ratings", 422) == "too_many_entries"
    stored = api.table(BOARD)["rows"]
    told = ("entry_id", "value", "rank_low", "rank", "rank_high", "p_best", "tier_holm_5_percent")
    assert [[r[k] for k in told] for r in stored] == [[r[k] for k in told] for r in every]


def test_of_a_parameter_that_comes_twice_the_same_one_counts_however_often_it_is_asked() -> None:
    api = asking()
    for _ in range(2):
        for first, last in (("srcc", "accuracy"), ("accuracy", "srcc")):
            found = api.table(f"{BOARD}?measure={first}&measure={last}")
            assert found["about"]["measure"] == f"{last}~paper"


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_no_more_is_kept_than_may_be(contents: list[bytes]) -> None:
    most = 3 * 2100
    kept = Kept(most)
    for place, content in enumerate(contents):
        kept.put(place % 7, Body(content))
        held = [body for key in range(7) if (body := kept.get(key))]
        assert sum(len(body.content) for body in held) < kept.nbytes <= most
        assert kept.get(place % 7) == Body(content)


def test_long_queries_with_small_answers_are_bounded_too() -> None:
    kept, long = Kept(100_000), "ä" * 8000
    for number in range(100):
        kept.put((number, long), Body(b"{}"))
    assert kept.nbytes <= 100_000
    assert sum(kept.get((number, long)) is not None for number in range(100)) == 2


def test_queries_of_very_many_parts_are_kept_within_the_same_bound(api: Asking) -> None:
    kept = Kept(1 << 20)
    client = TestClient(Starlette(routes=routes_with(api, kept)), "http://made.up")
    plain = client.get(f"{BOARD}?kind=metric&search=clip")
    for number in range(12):
        query = "&".join([f"search={number}"] * 700)
        answer = client.get(f"{BOARD}?{query}&search=clip&kind=metric")
        assert answer.content == plain.content
        assert len(plain.content) < kept.nbytes <= 1 << 20
    assert all(isinstance(key, bytes) and len(key) == 32 for key in kept._found)


def routes_with(api: Asking, kept: Kept) -> list[BaseRoute]:
    one = next(operation for operation in OPERATIONS if operation.name == "board")
    return [Mount("/v1", application([Api(api.source, kept).route(one)]))]


@pytest.mark.parametrize("address", [f"{BOARD}/", "/v1/openapi.json/", "/v1/benchmarks/", "/v1//"])
def test_no_request_is_sent_to_the_host_that_it_names_itself(api: Asking, address: str) -> None:
    answer = api.client.get(address, headers={"Host": "evil.example"}, follow_redirects=False)
    assert answer.status_code == 404 and "Location" not in answer.headers
    assert answer.json()["error"]["code"] in {"no_such_route", "unknown_benchmark"}


# The document.


def test_the_document_is_an_openapi_one_of_the_routes_that_are_served(api: Asking) -> None:
    import jsonschema  # which takes a second or two

    document = api.client.get("/v1/openapi.json").json()
    assert document == openapi(OPERATIONS)
    OpenAPI.model_validate(document)
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    listed = {route["path"] for route in api.client.get("/v1/").json()["routes"]}
    assert {path.removeprefix("/") for path in document["paths"]} | {
        path.removeprefix("/") for path in DOCUMENTS
    } == listed
    names = [path["get"]["operationId"] for path in document["paths"].values()]
    assert len(set(names)) == len(names)


def test_answers_and_refusals_are_what_the_document_says(api: Asking) -> None:
    import jsonschema

    schemas: dict[str, Any] = api.client.get("/v1/openapi.json").json()["components"]["schemas"]
    for address in addresses(api):
        if not any(address == f"/v1{path}" for path in DOCUMENTS):
            jsonschema.validate(api.table(address), schemas["Table"])
    jsonschema.validate(api.client.get("/v1/nothing").json(), schemas["Problem"])


def test_the_root_without_its_slash_leads_to_it(api: Asking) -> None:
    answer = api.client.get("/v1", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (308, "./v1/")
    assert api.client.get("/v1").json()["benchmarks"][0]["name"] in cards()
