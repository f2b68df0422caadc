"""What a link says where it is shared: there in the first answer, of the view, and only as text."""

from __future__ import annotations

import gzip
import io
import threading
from html import unescape
from urllib.parse import quote, urlencode

import httpx
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from benchmarks.errors import TransientError
from leaderboard.api.source import Source
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.publication.snapshot import Board
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.tables import Table, Value
from leaderboard.text import clean
from leaderboard.web.link_previews import (
    HEIGHT,
    LONGEST_QUERY,
    WIDTH,
    Described,
    drawable,
    picture,
    tags,
    with_tags,
)
from leaderboard.web.page import Page, all_pages
from leaderboard.web.page_metadata import (
    DESCRIPTIONS,
    OF_VIEW,
    Line,
    PageMetadata,
    document_title,
    metadata_of,
    own_metadata,
)
from tests.kit import boards
from tests.kit.html import harmless, read
from tests.kit.store import memory_store
from tests.leaderboard.web.conftest import Sites
from tests.leaderboard.web.failing_store import Switch, failing

PAGES = {page.path: page for page in all_pages()}
FIRST, SECOND = "made-up-0000/CLIPScore", "made-up-0001/BLIP2-ITM"
STRANGER = f"made-up-0010/{boards.NASTY}"


@pytest.fixture(scope="module")
def source() -> Source:
    return boards.source_over(boards.fill(memory_store()))


@pytest.fixture
def site(sites: Sites) -> str:
    return sites("boards")


def found_in(page: str) -> dict[str, list[str]]:
    """The title and the named contents of a page's head."""
    head = read(page.partition("<script")[0])
    found = {"title": head.texts("title")}
    for meta in head.all("meta"):
        if name := meta["property"] or meta["name"]:
            found.setdefault(name, []).append(meta["content"])
    return found


def asked(source: Source, path: str, **params: str) -> PageMetadata:
    return metadata_of(PAGES[path], params, source)


# What a view says ------------------------------------------------------------------------------


def test_every_page_says_something_of_its_own() -> None:
    assert set(DESCRIPTIONS) == set(PAGES) and set(OF_VIEW) < set(PAGES)
    said = [own_metadata(page).description for page in PAGES.values()]
    assert len(set(said)) == len(said)
    assert all(20 < len(one) <= 200 and one.endswith((".", "?")) for one in said)


def test_a_ranking_and_a_metric_say_values_with_intervals_ranks_and_who_ran_them(
    source: Source,
) -> None:
    head = asked(source, "", tab="benchmark:ratings")
    board = source.reader.view().boards["ratings"]
    cell = max(board.cells(board.card.headline, None), key=lambda c: c.value or -1.0)
    assert head.title == "Ratings: Spearman ρ · as in the paper, All skills"
    for words in (
        "12 metrics by Spearman ρ", "higher is better", "simulated", "2026-03-01 12:00 UTC",
        f"First: CLIPScore 1.0 {cell.value:.3f} [{cell.ci_low:.3f}, {cell.ci_high:.3f}]",
        f"rank {cell.rank_low}–{cell.rank_high};",
    ):  # fmt: skip
        assert words in head.description, words
    assert [line.name for line in head.lines[:2]] == ["CLIPScore 1.0", "BLIP2-ITM (as submitted)"]
    one = asked(source, "metric", id=FIRST)
    assert one.title == "CLIPScore 1.0"
    for words in ("By A group; run by Assay.", "Ratings (simulated ratings): Spearman ρ 0.720",
                  "Error graphs: Rank order", "Tiny: RMSE"):  # fmt: skip
        assert words in one.description
    assert "not re-run" in asked(source, "metric", id=SECOND).description


@pytest.mark.parametrize(
    ("template", "low", "said"), [("plain", None, "template"), ("", -0.1, "above chance")]
)
def test_a_head_names_nobody_first_who_is_a_template_or_at_chance(
    source: Source, monkeypatch: pytest.MonkeyPatch, template: str, low: float | None, said: str
) -> None:
    view = source.reader.view()
    board = view.boards["ratings"]
    cells = board.cells(board.card.headline, None)
    if low is not None:
        cells = tuple(one.model_copy(update={"ci_low": low}) for one in cells)
    entries = {
        name: one.model_copy(update={"template": template}) for name, one in view.entries.items()
    }
    flat = BoardIndex(Board(card=board.card, cells=cells))
    changed = View(entries, {"ratings": flat}, view.orders)
    monkeypatch.setattr(source.reader, "view", lambda: changed)
    head = asked(source, "", tab="benchmark:ratings")
    assert "First:" not in head.description and said in head.description
    assert head.lines  # The rows are those of the board all the same.


FIRST_OF_SKILL: dict[str, Value] = {
    "metric": "a", "version": "1", "kind": "metric", "mean": 0.3, "rank": 1, "ci_high": 0.5,
}  # fmt: skip
FIRST_OF_INDEX: dict[str, Value] = {
    "metric": "a", "version": "1", "kind": "metric", "benchmark": "index", "rescaled": 0.3, "rank": 1,
    "rescaled_high": 0.5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "row", "said"),
    [
        ("skills", {"recommended": True, "ci_low": 0.1}, "First: a 1 "),
        ("skills", {"recommended": False, "ci_low": -0.1}, "above chance"),
        ("skills", {"recommended": False, "ci_low": 0.1}, "template"),
        ("skills", {"recommended": False, "ci_low": 0.1, "rank": None}, ""),
        ("index", {"recommended": True, "rescaled_low": 0.1}, "First: a 1 0.300"),
        ("index", {"recommended": False, "rescaled_low": -0.1}, "above chance"),
    ],
)
def test_a_list_names_first_who_may_be_recommended(
    source: Source, monkeypatch: pytest.MonkeyPatch, table: str, row: dict[str, Value], said: str
) -> None:
    # A metric that lacks a benchmark of the index has neither a rank nor a column for one.
    lacks: dict[str, Value] = {
        "metric": "b",
        "version": "1",
        "kind": "metric",
        "benchmark": "index",
    }
    rows = [FIRST_OF_SKILL | row] if table == "skills" else [lacks, FIRST_OF_INDEX | row]
    made = Table(table, (), rows, {"weights": {"ratings": 1.0}})
    monkeypatch.setattr(f"leaderboard.api.tables.comparisons.{table}", lambda *_: made)
    asked_for = {"tab": "skill:counting", "ratings": "simulated"} if table == "skills" else {}
    head = asked(source, "", **asked_for)
    assert said in head.description
    assert ("First:" in head.description) is said.startswith("First")


def test_a_skill_another_measure_and_a_filter_are_told_apart(source: Source) -> None:
    skill = asked(source, "", tab="benchmark:ratings", skill="counting", measure="accuracy")
    assert "Pairwise accuracy" in skill.title and "Counting" in skill.title
    few = asked(source, "", tab="benchmark:ratings", kind="scores")
    assert few.description.startswith("3 of 12 metrics")
    # Ranks are the whole board's; those among some entries only are not made for this.
    whole = {line.name: line.ranks for line in asked(source, "", tab="benchmark:ratings").lines}
    assert few.lines[0].ranks == whole[few.lines[0].name] != ""
    within = asked(source, "", tab="benchmark:ratings", kind="scores", within="1")
    assert within.lines and not any(line.ranks for line in within.lines)
    mean = asked(source, "", tab="benchmark:ratings", skill="counting,colour")
    assert "mean of Counting and Colour" in mean.title and not mean.lines


def test_skills_and_examples_say_what_is_looked_for(source: Source) -> None:
    head = asked(source, "", tab="skill:counting", ratings="simulated")
    assert head.title == "Metrics for Counting" and "First: VQAScore 1.2" in head.description
    examples = {"benchmark": "ratings", "a": FIRST, "skill": "counting", "view": "examples"}
    fails = asked(source, "compare", **examples)
    assert fails.title == "Images where CLIPScore 1.0 fails: Ratings, Counting"
    differ = asked(source, "compare", **examples, b=SECOND)
    assert differ.title.startswith("Images where CLIPScore 1.0 and BLIP2-ITM")
    every = asked(source, "compare", **{**examples, "show": "all"})
    assert every.title == "Prompts and images: Ratings, Counting"
    for view in ("changes", "earlier"):
        assert asked(source, "", tab="benchmark:ratings", view=view).title == "Changes of Ratings"


@pytest.mark.parametrize(
    ("path", "params"),
    [("", {"tab": "benchmark:nothing"}), ("", {"tab": "benchmark:ratings", "skill": "nothing"}),
     ("", {"tab": "benchmark:unused"}),
     ("compare", {"benchmark": "ratings", "a": "nobody/knows"}),
     ("compare", {"benchmark": "ratings", "a": FIRST, "b": FIRST}), ("metric", {}),
     ("metric", {"id": "nobody/knows"}), ("", {"tab": "skill:nothing-like-it"}), ("", {"tab": "skill:"}),
     ("compare", {"benchmark": "ratings", "a": "nobody/knows", "view": "examples"}),
     ("compare", {"benchmark": "ratings", "skill": "nothing", "view": "examples"}), ("", {"w": "nothing:3"}),
     ("", {"tab": "benchmark:nothing", "view": "changes"}), ("submit", {"id": "made-up-0001"})],
)  # fmt: skip
def test_a_view_that_is_not_there_says_what_its_page_says(
    source: Source, path: str, params: dict[str, str]
) -> None:
    assert asked(source, path, **params) == own_metadata(PAGES[path])


def test_nothing_is_said_of_a_submission_that_stands_on_no_board(source: Source) -> None:
    on_boards = {entry.submission_id for entry in source.reader.view().entries.values()}
    waiting = boards.submission(50, boards.NASTY, ("ratings",))
    Ledger(source.store).receive(
        waiting, b"upload", [Event(at=boards.NOW, state=State.RECEIVED, by="desk")]
    )
    assert waiting.submission_id in {s.submission.submission_id for s in source.reader.statuses()}
    assert waiting.submission_id not in on_boards
    for ident in (waiting.submission_id, f"{waiting.submission_id}/{boards.NASTY}"):
        assert asked(source, "metric", id=ident) == own_metadata(PAGES["metric"])


# As tags ---------------------------------------------------------------------------------------


def test_a_hostile_name_stays_text_in_every_tag_and_a_long_one_is_cut(source: Source) -> None:
    for head in (
        asked(source, "metric", id=STRANGER),
        asked(source, "compare", benchmark="ratings", a=STRANGER, b=FIRST),
        PageMetadata(boards.NASTY, boards.NASTY, (Line(boards.NASTY),)),
    ):
        address = "https://else.example/"
        made = tags(head, f"{address}metric?id={boards.NASTY}", f"{address}{boards.NASTY}")
        harmless(made)
        assert {node.tag for node in read(made).nodes} == {"title", "meta"}
        found = found_in(made)
        for name in ("og:title", "twitter:title"):
            assert found[name] == [document_title(head.title)]
        assert clean(boards.NASTY)[:20] in found["og:title"][0]
    long = found_in(f"{tags(PageMetadata('x' * 900, 'y' * 900))}<script")
    assert long["title"][0].endswith("… · Assay") and len(long["title"][0]) < 130
    assert len(long["description"][0]) == 300


def test_gradios_own_tags_give_way_and_its_scripts_stay_as_they_are() -> None:
    script = b'<script>window.x = \'<meta property="og:title" content="kept">\';</script>'
    page = (
        b'<html><head>\n<meta charset="utf-8" />\n<base href="./" />\n<meta\n property="og:image"\n'
        b' content="https://else.example/x.jpg"\n/><meta name="twitter:creator" content="@x" />'
        b'<meta name="viewport" content="width=device-width" />' + script + b"</head></html>"
    )
    after = with_tags(page, tags(PageMetadata("Title", "Said")))
    assert b"else.example" not in after and b"twitter:creator" not in after
    assert script in after and b'name="viewport"' in after and b'<base href="./" />' in after
    assert after.index(b"charset") < after.index(b"<title>")
    assert with_tags(b"<p>no head</p>", "<title>x</title>") == b"<p>no head</p>"


# As served -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(PAGES))
def test_the_first_answer_of_every_page_has_each_tag_once(site: str, path: str) -> None:
    found = found_in(httpx.get(f"{site}{path}").text)
    for name in ("title", "description", "og:title", "og:description", "og:url", "og:image",
                 "og:type", "twitter:card", "twitter:title", "twitter:description"):  # fmt: skip
        assert len(found[name]) == 1 and found[name][0], name
    assert found["title"][0].endswith(" · Assay")
    assert "twitter:creator" not in found
    assert not any("Gradio" in one for values in found.values() for one in values)
    assert found["og:url"] == [f"{site}{path}"]


def test_an_answer_is_of_its_view_and_its_addresses_lead_back_to_it(
    site: str, source: Source
) -> None:
    query = urlencode({"benchmark": "ratings", "a": STRANGER, "b": FIRST})
    found = found_in(httpx.get(f"{site}compare?{query}").text)
    head = asked(source, "compare", benchmark="ratings", a=STRANGER, b=FIRST)
    assert found["og:title"] == [document_title(head.title)]
    again = found_in(httpx.get(unescape(found["og:url"][0])).text)
    assert again["title"] == found["title"]
    shown = httpx.get(found["og:image"][0])
    assert shown.headers["Content-Type"] == "image/png"
    assert Image.open(io.BytesIO(shown.content)).size == (WIDTH, HEIGHT)
    tag = {"If-None-Match": shown.headers["ETag"]}
    assert httpx.get(found["og:image"][0], headers=tag).status_code == 304
    assert httpx.get(f"{site}share.png?page=nothing").status_code == 404


def test_a_page_is_packed_for_those_who_take_it_and_has_its_own_length(site: str) -> None:
    plain = httpx.get(f"{site}metric", headers={"Accept-Encoding": "identity"})
    assert int(plain.headers["Content-Length"]) == len(plain.content)
    assert "Content-Encoding" not in plain.headers
    assert "Accept-Encoding" in plain.headers["Vary"]
    with httpx.stream("GET", f"{site}metric", headers={"Accept-Encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
        assert packed.headers["Content-Encoding"] == "gzip"
        assert int(packed.headers["Content-Length"]) == len(raw) < len(plain.content) / 3
    assert gzip.decompress(raw) == plain.content
    hostile = httpx.get(f"{site}metric", headers={"X-Forwarded-Host": 'x"><script>alert(1)'})
    # Gradio's own script has the address too, as JSON.
    head = hostile.text.partition("<style")[0]
    assert "alert(1)" not in head and "og:url" not in found_in(hostile.text)


def test_a_query_too_long_to_look_at_gets_the_page(site: str) -> None:
    found = found_in(httpx.get(f"{site}?tab=benchmark:ratings&search={'x' * LONGEST_QUERY}").text)
    assert found["description"] == [DESCRIPTIONS[""]]
    assert found["og:url"] == [site]


def _served(source: Source | None, patience_s: float = 2.0) -> TestClient:
    def page(_: object) -> HTMLResponse:
        return HTMLResponse("<html><head><meta charset='utf-8'/></head><body>page</body></html>")

    def other(_: object) -> Response:
        return Response("{}", 200, media_type="application/json")

    inner = Starlette(routes=[Route("/metric", page), Route("/queue", other)])
    pages = tuple(PAGES.values())
    return TestClient(Described(inner, pages, source, patience_s), "http://made.up")


def test_a_store_that_cannot_be_read_leaves_the_page_and_what_it_says_of_itself() -> None:
    switch = Switch()
    switch.out = True
    source = boards.source_over(failing(boards.fill(memory_store()), switch))
    with pytest.raises(TransientError):
        source.reader.view()
    answer = _served(source).get("/metric?id=made-up-0000/CLIPScore")
    assert answer.status_code == 200 and "page</body>" in answer.text
    assert DESCRIPTIONS["metric"] in answer.text


def test_a_store_that_hangs_does_not_keep_the_page_waiting(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = threading.Event()

    def hanging(page: Page, *_: object) -> PageMetadata:
        on.wait(120)
        return own_metadata(page)

    monkeypatch.setattr("leaderboard.web.link_previews.metadata_of", hanging)
    with _served(source, patience_s=0.1) as client:
        answer = client.get("/metric")
        assert not on.is_set()
        on.set()
    assert DESCRIPTIONS["metric"] in answer.text


def test_without_a_store_each_page_says_what_it_is_and_other_answers_pass_untouched() -> None:
    client = _served(None)
    assert DESCRIPTIONS["metric"] in client.get("/metric").text
    assert "og:image" not in client.get("/metric").text
    assert client.get("/queue").text == "{}"
    assert client.get("/elsewhere").status_code == 404


# As a picture ----------------------------------------------------------------------------------


def test_equal_heads_make_equal_pictures(source: Source) -> None:
    head = asked(source, "", tab="benchmark:ratings")
    made = picture(head)
    assert made == picture(head) and len(made) < 60_000
    assert made != picture(asked(source, "", tab="benchmark:graphs"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [
        PageMetadata("", ""),
        PageMetadata(
            boards.NASTY * 20,
            boards.NASTY * 40,
            (Line(boards.NASTY * 5, float("nan"), None, float("inf")),),
            "ρ",
        ),
        PageMetadata("One", "value", (Line("x", 0.5),), "axis"),
        PageMetadata("Wide", "values", (Line("x", -1e300, -1e300, 1e300),) * 9, "axis"),
        PageMetadata("字" * 300, "字" * 900),
    ],
)
def test_whatever_is_said_can_be_drawn(head: PageMetadata) -> None:
    assert Image.open(io.BytesIO(picture(head))).size == (WIDTH, HEIGHT)


def test_letters_the_font_lacks_are_spelt_or_marked() -> None:
    assert drawable("Spearman ρ 0.5–0.7 é 字 −1…") == "Spearman rho 0.5-0.7 e ? -1..."
    assert quote(drawable(boards.NASTY), safe="").isascii()
