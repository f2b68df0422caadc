"""How the API speaks HTTP: tags, compression, other origins, load, and one shape of refusal."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread
import httpx
import pytest
from fastapi.openapi.models import OpenAPI
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from benchmarks.errors import TransientError
from leaderboard.api import picture_routes
from leaderboard.api.replies import Body, reply_bytes, takes_gzip
from leaderboard.api.routes import DOCUMENTS, application, routes
from leaderboard.api.schemas import LONGEST_QUERY
from leaderboard.api.serving import TableRouter, TableServer
from leaderboard.api.source import AT_ONCE, IN_LINE, THREADS, Source
from leaderboard.cache import Budget, MemoryCache
from leaderboard.publication.results import public_result
from leaderboard.publication.snapshot import PATH
from leaderboard.service.pictures import Pictures
from leaderboard.tables import Column, Table, Type
from tests.kit.boards import cards, fill, publish, runs_of
from tests.kit.store import memory_store
from tests.leaderboard.api.asking import OPERATIONS, Asking, asking
from tests.leaderboard.web.failing_store import Switch, failing

BOARD, ITEMS = "/v1/boards/ratings", "/v1/items?benchmark=ratings"
ENTRY = "made-up-0002/VQAScore"
PLAIN, PACKED = ({"Accept-Encoding": one} for one in ("identity", "gzip"))
MANY = 60


@pytest.fixture(scope="module")
def api() -> Asking:
    return asking()


def addresses(api: Asking) -> list[str]:
    entry = next(iter(api.source.reader.view().entries))
    # There are no earlier boards, and no prompt sets; `test_api_models` asks for those.
    of_models = ("{prompt_set}", "/exports/models/")
    known = [path for path in (*OPERATIONS, *DOCUMENTS)
             if path != "/moved" and not any(one in path for one in of_models)]  # fmt: skip
    paths = [path.replace("{benchmark}", "ratings") for path in known]
    return [f"/v1{path.replace('{entry_id}', entry)}" for path in paths]


def busy(answer: Any) -> bool:
    told = (answer.status_code, answer.headers.get("Retry-After"))
    return told == (503, "5") and answer.json()["error"]["code"] == "busy"


# Answers that still hold, and their forms


@pytest.mark.slow
def test_who_has_an_answer_is_told_that_it_still_holds_and_head_has_no_content(api: Asking) -> None:
    for address in addresses(api):
        for accepted in (PLAIN, PACKED):
            first = api.client.get(address, headers=accepted)
            tag = first.headers["ETag"]
            assert (first.status_code, tag[0]) == (200, '"'), address
            head = api.client.head(address, headers=accepted)
            assert (head.status_code, head.content, head.headers["ETag"]) == (200, b"", tag)
            again = api.client.get(address, headers={**accepted, "If-None-Match": f'"x", {tag}'})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
            assert again.headers["Cache-Control"] == "public, no-cache"


def test_other_queries_formats_and_encodings_have_other_tags(api: Asking) -> None:
    queries = ("", "?format=csv", "?format=parquet", "?skill=colour", "/pairs")
    asked = [(f"{BOARD}{query}", PLAIN) for query in queries] + [(BOARD, PACKED)]
    tags = [api.client.get(address, headers=form).headers["ETag"] for address, form in asked]
    assert len(set(tags)) == len(tags)


def test_a_publication_changes_the_tag_and_another_event_does_not() -> None:
    store = fill(memory_store())
    api = asking(store)
    before = api.client.get(BOARD).headers["ETag"]
    store.public.commit({"note.txt": b"x"}, parent=store.public.head(), message="an event")
    assert api.client.get(BOARD).headers["ETag"] == before
    smaller = fill(memory_store(), 5).public.read(PATH)
    store.public.commit({PATH: smaller}, parent=store.public.head(), message="publish")
    answer = api.client.get(BOARD, headers={"If-None-Match": before})
    assert (answer.status_code, len(answer.json()["rows"])) == (200, 5)


def test_the_same_answer_comes_compressed_to_those_who_take_it(api: Asking) -> None:
    plain = api.client.get(BOARD, headers=PLAIN)
    assert "Content-Encoding" not in plain.headers
    with api.client.stream("GET", BOARD, headers=PACKED) as packed:
        raw = b"".join(packed.iter_raw())
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert len(raw) < len(plain.content) / 3
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


# Who may ask for what


def test_any_page_may_read_and_none_may_write(api: Asking) -> None:
    asked = {"Origin": "https://else.example"}
    for address in (BOARD, "/v1/nothing"):
        headers = api.client.get(address, headers=asked).headers
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in headers
    asked["Access-Control-Request-Method"] = "GET"
    before = api.client.options(BOARD, headers=asked)
    allowed = before.headers["Access-Control-Allow-Methods"]
    assert (before.status_code, allowed) == (204, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"])
def test_nothing_can_be_written_at_any_address(api: Asking, method: str) -> None:
    # In the order of the site, where images come first.
    site = Starlette(routes=[*picture_routes.routes(Pictures({}, None)), *routes(api.source)])
    client = TestClient(site, "http://made.up")
    further = ["/v1", "/v1/", "/v1/nothing", "/v1/images", "/v1/images/ratings/a%2Fb"]
    for address in (*addresses(api), *further):
        answer = client.request(method, address)
        headers = answer.headers["Allow"], answer.headers["Access-Control-Allow-Origin"]
        assert (answer.status_code, *headers) == (405, "GET, HEAD, OPTIONS", "*"), address
        error = answer.json()["error"]
        assert set(error) == {"code", "message", "hint"}
        assert error["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/v1/nothing", 404, "no_such_route"),
        (f"{BOARD}/else", 404, "no_such_route"),
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
        (f"{BOARD}?columns=nothing", 400, "bad_query"),
        (f"{BOARD}?sort=-nothing", 400, "bad_query"),
        (f"{BOARD}?pin={ENTRY}", 400, "unknown_parameter"),
        ("/v1/items?benchmark=nothing", 400, "bad_query"),
        (f"{ITEMS}&a=nothing", 400, "bad_query"),
        (f"{ITEMS}&a={ENTRY}&b={ENTRY}", 400, "bad_query"),
        (f"{ITEMS}&skill=nothing", 400, "bad_query"),
        (f"{ITEMS}&split=nothing", 400, "bad_query"),
        (f"{ITEMS}&show=nothing", 400, "bad_query"),
        (f"{ITEMS}&show=disagreements", 400, "bad_query"),
        (f"{ITEMS}&case=nothing", 400, "bad_query"),
        ("/v1/items?benchmark=graphs", 404, "no_cases"),
        ("/v1/compare?benchmark=nothing", 400, "bad_query"),
        ("/v1/compare?a=nothing", 400, "bad_query"),
        ("/v1/compare?benchmark=ratings&c=nothing", 400, "bad_query"),
        ("/v1/index?w=nothing:1", 400, "bad_query"),
        ("/v1/index?ratings=nothing", 400, "bad_query"),
        ("/v1/queue?state=nothing", 400, "bad_query"),
        ("/v1/entries?benchmark=nothing", 400, "bad_query"),
        (f"{BOARD}?search={'x' * 9000}", 414, "query_too_long"),
    ],
)
def test_what_has_no_answer_is_refused(api: Asking, address: str, status: int, code: str) -> None:
    assert api.refused(address, status) == code


@pytest.mark.parametrize("number", ["0", "-1", "1001", "9" * 5000, "nine", "+5", "1_0", "1.0", "٣"])
def test_what_is_no_number_or_out_of_bounds_is_refused(api: Asking, number: str) -> None:
    assert api.refused(f"/v1/queue?per_page={quote(number)}", 400) == "bad_query"


def test_a_parameter_that_says_nothing_is_as_one_that_is_not_there(api: Asking) -> None:
    for address, empty in (("/v1/queue", "state=&page=&per_page="), (BOARD, "kind=&sort=&skill=")):
        assert api.table(f"{address}?{empty}") == api.table(address)


@pytest.mark.parametrize(
    ("query", "code", "names"),
    [
        ("mesure=srcc&format=xml&x=1", "unknown_parameter", ["mesure", "x"]),
        ("format=xml&page=0&state=nothing", "bad_query", ["format", "page", "state"]),
    ],
)
def test_all_that_is_wrong_with_a_query_is_told_at_once_and_no_more_than_can_be_read(
    api: Asking, query: str, code: str, names: list[str]
) -> None:
    error = api.client.get(f"/v1/queue?{query}").json()["error"]
    assert (error["code"], re.findall("“(.*?)”", error["message"])) == (code, names)
    many = "&".join(f"p{number}=" for number in range(1200))
    assert len(many) < LONGEST_QUERY
    assert len(api.client.get(f"{BOARD}?{many}").content) < 500


def test_a_defect_says_nothing_of_the_machine(api: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ValueError("/home/secret/path")

    monkeypatch.setattr(type(api.source.reader), "view", broken)
    assert api.refused(BOARD, 500) == "defect"
    assert "secret" not in api.client.get(BOARD).text


def test_of_a_parameter_that_comes_twice_the_last_counts_each_time(api: Asking) -> None:
    for first, last in (("srcc", "accuracy"), ("accuracy", "srcc")) * 2:
        found = api.table(f"{BOARD}?measure={first}&measure={last}")
        assert found["about"]["measure"] == f"{last}~paper"


@pytest.mark.parametrize("address", [f"{BOARD}/", "/v1/openapi.json/", "/v1/benchmarks/", "/v1//"])
def test_no_request_is_sent_to_the_host_that_it_names_itself(api: Asking, address: str) -> None:
    answer = api.client.get(address, headers={"Host": "evil.example"}, follow_redirects=False)
    assert answer.status_code == 404
    assert "Location" not in answer.headers
    assert answer.json()["error"]["code"] in {"no_such_route", "unknown_benchmark"}


def test_the_root_without_its_slash_leads_to_it(api: Asking) -> None:
    answer = api.client.get("/v1", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (308, "./v1/")
    assert api.client.get("/v1").json()["benchmarks"][0]["name"] in cards()


# A store that is away


def test_while_nothing_could_be_read_it_is_said_when_to_ask_again() -> None:
    switch = Switch()
    api = asking(failing(fill(memory_store()), switch))
    switch.out = True
    for address in ("/v1/", BOARD, "/v1/queue", "/v1/ledger", "/v1/entries"):
        assert api.refused(address, 503) == "hub_unavailable"
        headers = api.client.get(address).headers
        assert int(headers["Retry-After"]) > 0
        assert headers["Cache-Control"] == "no-store"
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
        for name in ("ETag", "Assay-As-Of"):
            assert now.headers[name] == before.headers[name]
    assert api.client.get(BOARD).headers["Assay-Stale"] == "true"
    assert "Assay-Stale" not in known[BOARD].headers


# Too much at once


def test_what_is_too_much_is_refused_or_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    api = asking()
    with api.source.turn(), api.source.turn():
        assert busy(api.client.get(f"{BOARD}?skill=style"))
    assert api.client.get(f"{BOARD}?skill=style").status_code == 200
    monkeypatch.setattr("leaderboard.api.source.MOST_WAITING", 0)
    assert busy(asking().client.get(BOARD))


def client_of(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://made.up")


def test_however_much_is_asked_for_the_rest_of_the_site_answers() -> None:
    """While all turns are taken, some wait in line and the others are told; the rest goes on."""
    source = replace(asking().source, wait_s=240.0)
    health = Route("/health", lambda _: Response("well"))  # In a thread, as the one of the site.
    answers: list[httpx.Response] = []

    async def go() -> None:
        refused = anyio.Event()
        async with client_of(Starlette(routes=[health, *routes(source)])) as client:

            async def ask(number: int) -> None:
                answers.append(await client.get(f"{BOARD}?skill=style&search=a,{number}"))
                refused.set()

            async with anyio.create_task_group() as group:
                with source.turn(), source.turn():
                    for number in range(MANY):
                        group.start_soon(ask, number)
                    with anyio.fail_after(120):
                        await refused.wait()
                        assert (await client.get("/health")).text == "well"
                        assert (await client.get("/v1/entries")).status_code == 200
                    assert all(busy(answer) for answer in answers)

    anyio.run(go)
    answered = [answer.status_code for answer in answers if not busy(answer)]
    assert len(answers) == MANY
    assert len(answered) >= IN_LINE  # The line was full when the first was refused.
    assert set(answered) == {200}


def light(source: Source) -> Table:
    return Table("light", ())


@dataclass
class Heavy:
    """A table that takes a turn, and until it is let go."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    times: int = 0
    fails: bool = False

    def heavy(self, source: Source) -> Table:
        with source.turn():
            self.times += 1
            self.begun.set()
            assert self.go.wait(60)
            if self.fails:
                raise TransientError("store_down", "The store does not answer.", "Wait.")
            return Table("heavy", (Column("a", Type.TEXT),), [{"a": "x"}])

    def asked(
        self,
        n: int,
        then: Callable[[httpx.AsyncClient, list[asyncio.Task[httpx.Response]]], Awaitable[Any]],
    ) -> Any:
        """Ask `n` times at once, and do something when the first is being computed."""
        app, router = application(), TableRouter()
        app.state.server = TableServer(replace(asking().source, wait_s=5.0))
        router.table("/heavy")(self.heavy)
        router.table("/light")(light)
        app.include_router(router)

        async def run() -> Any:
            async with client_of(Starlette(routes=[Mount("/v1", app)])) as client:
                asked = [asyncio.create_task(client.get("/v1/heavy")) for _ in range(n)]
                assert await anyio.to_thread.run_sync(self.begun.wait, 20)
                return await then(client, asked)

        return asyncio.run(run())


def test_what_many_ask_for_at_once_is_computed_once_and_others_are_answered_meanwhile() -> None:
    heavy = Heavy()

    async def then(client: httpx.AsyncClient, asked: list[Any]) -> list[httpx.Response]:
        with anyio.fail_after(20):
            assert (await client.get("/v1/light")).status_code == 200
        heavy.go.set()
        return list(await asyncio.gather(*asked))

    answers = heavy.asked(MANY, then)
    assert MANY > AT_ONCE + IN_LINE and MANY > THREADS
    assert heavy.times == 1
    assert {(a.status_code, a.content) for a in answers} == {(200, answers[0].content)}


def test_who_hangs_up_ends_nobody_elses_waiting() -> None:
    heavy = Heavy()

    async def then(_: httpx.AsyncClient, asked: list[Any]) -> list[int]:
        first, impatient, patient = asked
        await anyio.sleep(0.05)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        heavy.go.set()
        return [(await one).status_code for one in (first, patient)]

    assert (heavy.asked(3, then), heavy.times) == ([200, 200], 1)


def test_a_failure_is_nobodys_but_tried_again_by_those_who_waited() -> None:
    heavy = Heavy(fails=True)

    async def then(client: httpx.AsyncClient, asked: list[Any]) -> list[int]:
        heavy.go.set()
        failed = [(await one).status_code for one in asked]
        heavy.fails = False
        return [*failed, (await client.get("/v1/heavy")).status_code]

    assert heavy.asked(3, then) == [503, 503, 503, 200]


def test_of_very_many_entries_the_snapshot_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    every = asking().rows(BOARD)
    monkeypatch.setattr("leaderboard.views.benchmark_board.STORED_ABOVE", 5)
    for name in ("MOST_RANKED", "MOST_IN_SKILLS"):
        monkeypatch.setattr(f"leaderboard.api.tables.boards.{name}", 5)
    monkeypatch.setattr("leaderboard.api.tables.boards.bounded.__defaults__", (5,))
    api = asking()
    ranked = (
        f"{BOARD}?skill=colour",
        f"{BOARD}/pairs?skill=colour",
        f"{BOARD}/skills",
        "/v1/compare",
    )
    for address in ranked:
        assert api.refused(address, 422) == "too_many_entries"
    told = (
        "entry_id",
        "value",
        "rank_low",
        "rank",
        "rank_high",
        "best_share",
        "tier",
    )
    assert [[r[k] for k in told] for r in api.rows(BOARD)] == [[r[k] for k in told] for r in every]


def test_queries_of_many_parts_are_kept_in_bounds(api: Asking) -> None:
    kept: MemoryCache[Body] = MemoryCache(reply_bytes, 1 << 20, budget=Budget())
    app = application()
    app.state.server = TableServer(api.source, kept)
    client = TestClient(Starlette(routes=[Mount("/v1", app)]), "http://made.up")
    plain = client.get(f"{BOARD}?kind=metric&search=clip")
    for number in range(12):
        query = "&".join([f"search={number}"] * 700)
        answer = client.get(f"{BOARD}?{query}&search=clip&kind=metric")
        assert answer.content == plain.content
        assert len(plain.content) < kept.nbytes <= 1 << 20
    assert all(isinstance(key, bytes) and len(key) == 32 for key in kept._entries)


def test_figures_that_are_withheld_are_null_in_every_answer() -> None:
    runs = [replace(run, result=public_result(run.result)) for run in runs_of(3)]
    api = asking(publish(memory_store(), runs, cards()))
    files = {f"/v1{path}" for path in DOCUMENTS if "exports" not in path}
    for address in (one for one in addresses(api) if one not in files):
        answer = api.client.get(address)
        assert answer.status_code < 500, address
        json.loads(answer.text, parse_constant=pytest.fail)
    entry = api.source.reader.view().entries["made-up-0000/CLIPScore"]
    told = api.table(f"/v1/entries/{entry.entry_id}")["about"]["entry"]["trust"]["graphs"]
    assert {one["largest"] for one in (*told["checks"], {"largest": told["spread"]})} == {None}
    json.loads(json.dumps(runs[0].result.model_dump(mode="json")), parse_constant=pytest.fail)
    # What is stored keeps its form, and is read again.
    again = type(entry).model_validate_json(entry.model_dump_json())
    assert again.model_dump(mode="json") == entry.model_dump(mode="json")


# The document


def test_the_document_is_an_openapi_one_of_the_routes_that_are_served(api: Asking) -> None:
    import jsonschema  # which takes a second or two

    document = api.client.get("/v1/openapi.json").json()
    assert {path: methods["get"] for path, methods in document["paths"].items()} == OPERATIONS
    OpenAPI.model_validate(document)
    schemas: Mapping[str, Any] = document["components"]["schemas"]

    def told(name: str) -> dict[str, Any]:
        return {"$ref": f"#/components/schemas/{name}", "components": document["components"]}

    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    listed = {route["path"] for route in api.client.get("/v1/").json()["routes"]}
    assert {path.removeprefix("/") for path in (*document["paths"], *DOCUMENTS)} == listed
    assert all(one["summary"].endswith(".") for one in OPERATIONS.values())
    names = [path["get"]["operationId"] for path in document["paths"].values()]
    assert len(set(names)) == len(names)
    documents = {f"/v1{path}" for path in DOCUMENTS}
    for address in (one for one in addresses(api) if one not in documents and "exports" not in one):
        jsonschema.validate(api.table(address), told("Table"))
    jsonschema.validate(api.client.get("/v1/nothing").json(), told("Problem"))
