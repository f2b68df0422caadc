"""The frame around pages: places, search, footer, unknown and former addresses, files browsers keep."""

from __future__ import annotations

import gzip
import re

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from leaderboard.rendering import render
from leaderboard.web.assets import asset_routes, assets, names, names_route
from leaderboard.web.middleware import (
    REDIRECTS,
    Redirect,
    Redirects,
    UnknownAddresses,
    framed,
    redirected,
    unknown_address,
)
from leaderboard.web.page import PLACES, all_pages, navigation, place_of
from tests.conftest import REPOSITORY
from tests.kit import boards
from tests.kit.html import Node, harmless, read
from tests.kit.store import memory_store
from tests.leaderboard.views import model_track
from tests.leaderboard.web import failing_store
from tests.leaderboard.web.conftest import Sites
from tests.leaderboard.web.test_rendering import HOSTILE

PAGES = all_pages()
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def site(sites: Sites) -> str:
    return sites("boards")


# Places.


def test_there_are_five_places_and_every_page_belongs_to_one_of_them() -> None:
    assert [(place.title, place.path) for place in PLACES] == [
        ("Metrics", ""), ("Models", "models"), ("Compare", "compare"), ("Submit", "submit"),
        ("Docs", "docs"),
    ]  # fmt: skip
    found = [path for place in PLACES for path in (*place.pages, *place.details)]
    assert sorted(found) == sorted(page.path for page in PAGES)  # Each once.
    assert all(place.path == place.pages[0] for place in PLACES)


@pytest.mark.parametrize(
    ("path", "place", "within"),
    [
        ("", ("Metrics", "page"), {}),
        ("compare", ("Compare", "page"), {}),
        ("metric", ("Metrics", "true"), {}),
        ("submit", ("Submit", "page"), {}), ("operators", ("Submit", "true"), {}),
        ("ledger", ("Docs", "true"), {"Docs": "", "Methods": "", "Errata": ""}),
    ],
)  # fmt: skip
def test_a_page_marks_its_place_and_itself(
    path: str, place: tuple[str, str], within: dict[str, str]
) -> None:
    assert place_of("counts") is None  # No place lists it.
    here = navigation(PAGES, path)
    assert [(one.title, one.current) for one in here.places if one.current] == [place]
    assert {one.title: one.current for one in here.within} == within


def test_the_frame_comes_before_gradio_with_the_title_of_the_view() -> None:
    document = (
        b'<html><head></head><body style="margin: 0"><gradio-app control_page_title="true">'
        b"</gradio-app></body></html>"
    )
    page = read(framed(document, PAGES, "metric").decode())
    body = page.one("body")
    assert body["class"] == "as-loading" and body["style"] == "margin: 0"
    tags = [node.tag for node in body.children if isinstance(node, Node)]
    assert tags == ["script", "link", "script", "header", "noscript", "div", "gradio-app"]
    (gradio,) = (node for node in page.nodes if node.tag == "gradio-app")
    assert gradio["control_page_title"] == "false"
    assert page.one("header .as-places [aria-current]").text == "Metrics"
    assert page.one("[role=combobox]")["aria-controls"] == page.one("[role=listbox]")["id"]
    assert page.one("a.as-skip") and page.one("button.as-theme")["aria-pressed"] == "false"
    assert {"./as-of", "./v1/"} <= set(page.one("noscript").links())
    assert framed(b"{}", PAGES, "metric") == b"{}"


# The footer.


def test_the_footer_says_how_recent_the_page_is_and_links_what_no_place_shows() -> None:
    links = {"./about", "./errata", "./v1/", "./status", "./ledger"}
    for as_of, still, words in (
        (boards.NOW, "./as-of", "2026-03-01 12:00 UTC"),
        (None, "", "Not read"),
    ):
        page = read(render("shell/footer.html", as_of=as_of, now=boards.NOW, still=still))
        assert words in page and set(page.links()) == links | ({still} if still else set())


# Names for the search field.


def test_metrics_models_and_benchmarks_are_found_by_name() -> None:
    models = [one.name for one in names(model_track.source_of(model_track.filled()))
              if one.kind == "model"]  # fmt: skip
    assert len(models) == len(model_track.NAMES)
    found = names(boards.source_over(boards.fill(memory_store())))
    assert {one.kind for one in found} == {"metric", "benchmark"}
    assert {"Ratings", "CLIPScore 1.0"} <= {one.name for one in found}
    assert [one.href for one in found if one.name == "Ratings"] == ["./?tab=benchmark:ratings"]
    nasty = next(one for one in found if "img src" in one.name)
    assert "\u202e" not in nasty.name and not set("<>\"' ") & set(nasty.href)
    assert len({(one.name, one.href) for one in found}) == len(found)


def test_names_are_sent_as_json_with_a_tag_and_an_outage_is_told() -> None:
    switch, store = failing_store.Switch(), boards.fill(memory_store())
    client, away = (
        TestClient(
            Starlette(
                routes=[names_route(boards.source_over(failing_store.failing(store, switch)))]
            )
        )
        for _ in range(2)
    )
    answer = client.get("/names.json")
    assert {tuple(sorted(one)) for one in answer.json()} == {("href", "kind", "name")}
    tag = {"If-None-Match": answer.headers["ETag"]}
    assert client.get("/names.json", headers=tag).status_code == 304
    assert boards.NASTY not in answer.text  # Its direction characters are gone.
    switch.out = True
    told = away.get("/names.json")
    assert told.status_code == 503 and told.headers["Retry-After"]


# Unknown addresses.


def test_a_browser_gets_a_page_for_an_unknown_address_and_a_program_its_json(site: str) -> None:
    for path in ("nothing", "nothing/at/all", "boards/none"):
        answer = httpx.get(f"{site}{path}", headers=HTML)
        assert answer.status_code == 404 and answer.headers["Content-Type"].startswith("text/html")
        page = read(answer.text)
        assert len(page.all("h1")) == 1 and page.all("header .as-places a") and page.one("main")
        assert page.one("base")["href"] == ("../" * path.count("/") or "./")
        for headers in ({"Accept": "application/json"}, {}):
            plain = httpx.get(f"{site}{path}", headers=headers)
            assert plain.status_code == 404 and plain.json() == {"detail": "Not Found"}
    api = httpx.get(f"{site}v1/nothing", headers=HTML)
    assert api.status_code == 404 and api.headers["Content-Type"].startswith("application/json")


def test_what_was_asked_for_is_text_on_the_page_of_unknown_addresses() -> None:
    made = unknown_address(PAGES, f"/{HOSTILE}")
    main = made.partition("<main")[2]
    harmless(f"<main{main}")
    assert "<script>alert(1)</script>" in read(f"<main{main}").one("code").text


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (JSONResponse({"detail": "Not Found"}, 404), 404, "<!doctype html>"),
        (PlainTextResponse("Nothing is published yet.", 404), 404, "Nothing is published yet."),
        (JSONResponse({"a": 1}), 200, '{"a":1}'),
        (Response(status_code=304), 304, ""),
    ],
)
def test_only_what_was_not_found_is_answered_anew(answer: Response, status: int, text: str) -> None:
    app = UnknownAddresses(Starlette(routes=[Route("/x", lambda _: answer)]), PAGES)
    client = TestClient(app)
    found = client.get("/x", headers=HTML)
    assert found.status_code == status and found.text.startswith(text)
    assert client.post("/y", headers=HTML).text == "Not Found"
    assert client.head("/x", headers=HTML).text == ""


# Former addresses.

TABLE = {
    "old": Redirect("boards", rename={"b": "benchmark", "gone": ""}, add={"skill": "count"}),
    "now": Redirect("about", permanent=False),
    "": Redirect("", rename={"page": "rows"}),
    "tabs": Redirect("", {"b": "tab"}, {"tab": "of:"}, {"tab": "of:", "view": "all"}),
}


@pytest.mark.parametrize(
    ("path", "query", "to"),
    [
        ("/old", "", "./boards?skill=count"), ("/nothing", "", None), ("/", "", None),
        ("/old", "b=ratings&gone=1&x=1", "./boards?benchmark=ratings&x=1&skill=count"),
        ("/old", "skill=colour&b=", "./boards?skill=colour&benchmark="),
        ("/old", "b=a%26b%3Cc", "./boards?benchmark=a%26b%3Cc&skill=count"),
        ("/tabs", "", "./?tab=of:&view=all"), ("/tabs", "x=1&b=c", "./?x=1&tab=of:c&view=all"),
        ("/", "tab=a&page=2", "./?tab=a&rows=2"), ("/", "tab=a&rows=2", None),
        ("/now", "a=1&a=2", "./about?a=1&a=2"), ("/now/", "", "../about"),
    ],
)  # fmt: skip
def test_a_former_address_leads_to_where_the_page_is_with_its_query(
    path: str, query: str, to: str | None
) -> None:
    assert redirected(path, query, TABLE) == to


def test_a_move_for_good_is_told_from_one_for_now_and_others_pass() -> None:
    client = TestClient(
        Redirects(Starlette(routes=[Route("/boards", lambda _: PlainTextResponse("b"))]), TABLE),
        follow_redirects=False,
    )
    found = client.get("/old?b=ratings")
    assert (found.status_code, found.headers["Location"]) == (
        308, "./boards?benchmark=ratings&skill=count",
    )  # fmt: skip
    assert client.get("/now").status_code == 302 and client.get("/boards").text == "b"
    assert client.post("/old").status_code == 404


def test_every_redirect_leads_to_a_page_and_hides_none(site: str) -> None:
    paths = {page.path for page in PAGES}
    assert {one.to for one in REDIRECTS.values()} <= paths
    assert set(REDIRECTS) & paths == {""}  # which only renames what Gradio takes for itself
    for path, query in (("model-pair", "view=two"), ("seeds", "view=seeds"),
                        ("prompt", "prompt=p/1&view=prompt")):  # fmt: skip
        address = redirected(f"/{path}", "set=s&id=p%2F1")
        assert address is not None and address.startswith("./models?set=s&")
        assert address.endswith(f"&{query}")
    found = httpx.get(f"{site}boards?benchmark=graphs", follow_redirects=True)
    assert found.url == f"{site}?tab=benchmark:graphs"


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("page=2", "rows_page=2"), ("chart=ranks&page=2", "chart=ranks&rows_page=2"),
        ("tab=benchmark:graphs&page=2", "tab=benchmark:graphs&rows_page=2"),
        ("page=submit", "rows_page=submit"), ("rows_page=2", "rows_page=2"),
    ],
)  # fmt: skip
def test_every_page_of_a_ranking_can_be_opened_by_its_address(
    site: str, asked: str, shown: str
) -> None:
    found = httpx.get(f"{site}?{asked}", follow_redirects=True)
    assert (found.status_code, str(found.url)) == (200, f"{site}?{shown}")
    assert '"current_page":""' in found.text.replace(": ", ":")


# Files that browsers keep.


def test_style_and_script_are_kept_under_an_address_that_changes_with_them() -> None:
    client = TestClient(Starlette(routes=[*asset_routes()]))
    for one in assets():
        answer = client.get(one.address)
        assert answer.content == one.content == gzip.decompress(one.packed)
        assert "immutable" in answer.headers["Cache-Control"]
        assert "immutable" not in client.get(f"/{one.name}?v=0").headers["Cache-Control"]
        tag = {"If-None-Match": answer.headers["ETag"]}
        assert client.get(one.address, headers=tag).status_code == 304
        plain = client.get(one.address, headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers and plain.content == one.content


# The style sheet.

STYLE = assets()[0].content.decode()
_TOKEN = re.compile(r"(--as-[\w-]+):\s*([^;]+);")


def tokens(selector: str) -> dict[str, str]:
    found = re.search(rf"^{re.escape(selector)} \{{(.*?)^\}}", STYLE, re.M | re.S)
    assert found is not None
    return dict(_TOKEN.findall(found[1]))


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_colour_comes_from_a_token_and_every_token_is_known_in_both_schemes() -> None:
    rules = re.sub(r"/\*.*?\*/", "", STYLE, flags=re.S)
    light, dark = tokens(":root"), tokens(".dark")
    colours = {name for name, value in light.items() if value.startswith(("#", "rgb"))}
    same = {"--as-fill", "--as-fill-hover", "--as-on-fill", "--as-danger"}
    assert colours - same == set(dark)
    body = re.sub(r"^(:root|\.dark) \{.*?^\}", "", rules, flags=re.M | re.S)
    assert ".dark" not in body  # So that a scheme changes nothing but these.
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{}]*\{)|\brgba?\(|\bhsla?\(", body) == []
    assert set(re.findall(r"var\((--as-[\w-]+)", rules)) <= {*light}


@pytest.mark.parametrize("scheme", [":root", ".dark"])
def test_text_can_be_read_on_every_ground(scheme: str) -> None:
    known = {**tokens(":root"), **tokens(scheme)}
    for text in ("ink", "muted", "faint", "accent"):
        for ground in ("ground", "panel", "sunk"):
            assert contrast(known[f"--as-{text}"], known[f"--as-{ground}"]) >= 4.5, (text, ground)
    for tone in ("warn", "bad", "info", "accent", "front"):
        assert contrast(known[f"--as-{tone}"], known[f"--as-{tone}-soft"]) >= 4.5, tone
        assert contrast(known["--as-ink"], known[f"--as-{tone}-soft"]) >= 4.5, tone
    for heat in ("low", "high", "behind"):
        assert contrast(known["--as-ink"], known[f"--as-heat-{heat}"]) >= 4.5, heat
    for ground in ("fill", "fill-hover", "danger"):
        assert contrast(known["--as-on-fill"], known[f"--as-{ground}"]) >= 4.5, ground


def test_no_rule_is_for_a_class_that_nothing_writes() -> None:
    written = "".join(
        path.read_text(encoding="utf-8")
        for path in (REPOSITORY / "leaderboard").rglob("*")
        if path.suffix in {".py", ".html", ".js"}
    )
    words = set(re.findall(r"[\w-]+", written))
    made = {  # Put together of a prefix and a word of a list.
        *(f"as-{word}" for word in ("good", "bad", "warn", "info", "trained", "sim", "a", "b", "c", "d", "tie")),
        *(f"as-{word}" for word in ("right", "wrong", "mixed", "tied")),
        *(f"as-{of}-{word}" for of in ("around", "key", "for") for word in ("a", "b")),
        *(f"as-chart-{word}" for word in ("bump", "curves", "parallel", "pareto", "scatter", "trend")),
        *(f"as-tally-{word}" for word in ("a", "b", "tie")),
    }  # fmt: skip
    # The forms of the places that are built next use these.
    kept = {"as-input", "as-select", "as-primary", "as-num"}
    rules = re.sub(r"/\*.*?\*/", "", STYLE, flags=re.S)
    named = set(re.findall(r"[.#]((?:as|is)-[\w-]+)", rules))
    assert named - words - made - kept == set()
