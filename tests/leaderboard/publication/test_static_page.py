"""The static page of the boards: small, without scripts, always the same, there when the store is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from leaderboard.api.source import Source
from leaderboard.api.static_copy import static_address, static_route
from leaderboard.publication.index import index_base
from leaderboard.publication.publisher import build_snapshot
from leaderboard.publication.reader import View
from leaderboard.publication.snapshot import PATH, Board, Snapshot, snapshot_bytes
from leaderboard.publication.static_page import MOST_ROWS, STATIC_PATH, static_page
from leaderboard.rendering import render
from leaderboard.store.interface import Store
from tests.kit.boards import METRICS, NOW, cards, keep, snapshot, source_over
from tests.kit.html import harmless, read
from tests.kit.site import app_of, served
from tests.kit.store import memory_store
from tests.leaderboard.web.failing_store import Switch, failing
from tests.leaderboard.web.index_fixture import index_view_of


def test_it_shows_headlines_as_of_the_snapshot_and_nothing_in_it_runs_or_is_fetched() -> None:
    made = snapshot()
    html = static_page(made).decode()
    harmless(html.partition("<body")[2])
    page = read(html)
    assert page.one("time")["datetime"] == NOW.isoformat()
    board = made.boards["ratings"]
    shown = page.one("#ratings")
    for cell in board.slice(board.card.headline, None):
        assert cell.value is None or f"{cell.value:.3f}".replace("-", "−") in shown
    assert html.index('id="graphs"') < html.index('id="ratings"')  # Simulated ones come last.
    assert "simulated" in shown and "Unused" in page and not page.all("#unused")
    assert re.findall(r'(?:src|href)="(?!#)', html) == [] and not page.all("img")
    assert "<img src=x onerror=alert(1)>" in page.text


def test_equal_snapshots_make_equal_bytes_and_many_a_small_page() -> None:
    one = snapshot()
    assert static_page(one) == static_page(snapshot())
    assert static_page(replace(one, built_at=one.built_at + timedelta(hours=1))) != static_page(one)
    many = static_page(snapshot(120))
    assert len(many) < 120_000 and f"{MOST_ROWS} of 120" in many.decode()
    assert len(read(many.decode()).all("th[scope=row]")) <= 3 * MOST_ROWS + len(cards())
    page = read(static_page(build_snapshot([], cards(), NOW)).decode())
    assert "0 metrics" in page and not page.all("section")
    assert not any(name in page for name in METRICS[:5])


def snapshot_of(view: View) -> Snapshot:
    boards = {
        name: Board(one.card, () if one.empty else one.cells(one.card.headline, None))
        for name, one in view.boards.items()
    }
    return Snapshot(built_at=NOW, entries=view.entries, boards=boards)


def test_it_begins_with_the_index_and_says_what_it_could_not_read() -> None:
    view = index_view_of()
    base = index_base(view)
    plain, drawn = (static_page(snapshot_of(view), one).decode() for one in (None, base))
    assert ["Without intervals" in page for page in (plain, drawn)] == [True, False]
    best = base.index_ranks({n: b.weight for n, b in base.boards.items()})[0].standing
    for html in (plain, drawn):
        row = read(html).one("#index").one("tbody tr")
        assert "VQAScore" in row and f"{best.index.value:.3f}" in row
        assert html.index('id="index"') < html.index('id="graphs"')
    unscaled = snapshot_of(index_view_of({"a": ("unscaled",), "b": ("unscaled",)}))
    for one in (unscaled, replace(snapshot_of(view), boards={})):
        assert not read(static_page(one).decode()).all("#index")


# Served beside the pages.


def publish(store: Store, entries: int = 12) -> Store:
    built = snapshot(entries)
    keep(store, {PATH: snapshot_bytes(built), STATIC_PATH: static_page(built)})
    return store


def serving(store: Store) -> tuple[Source, TestClient]:
    source = source_over(store)
    app = Starlette(routes=[static_route(source.static_copy, source.in_thread)])
    return source, TestClient(app, "http://made.up")


def test_it_is_the_published_file_until_another_is_published() -> None:
    store = publish(memory_store(), 2)
    _, client = serving(store)
    answer = client.get("/as-of")
    assert answer.content == store.public.read(STATIC_PATH)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    tag = {"If-None-Match": answer.headers["ETag"]}
    assert client.get("/as-of", headers=tag).status_code == 304
    publish(store, 3)
    after = client.get("/as-of", headers=tag)
    assert "VQAScore" in after.text and "VQAScore" not in answer.text
    assert after.headers["ETag"] != answer.headers["ETag"]


def test_what_was_read_before_is_served_while_the_store_is_out() -> None:
    switch = Switch()
    source, client = serving(failing(publish(memory_store()), switch))
    source.static_copy.keep()  # As the last lines of any page do.
    switch.out = True
    assert "CLIPScore" in client.get("/as-of").text


def test_a_store_that_never_answered_is_out_and_an_empty_one_has_no_page() -> None:
    switch = Switch()
    switch.out = True
    source, client = serving(failing(publish(memory_store()), switch))
    source.static_copy.keep()
    answer = client.get("/as-of")
    assert answer.status_code == 503 and answer.headers["Retry-After"]
    switch.out = False
    assert client.get("/as-of").status_code == 200
    assert serving(memory_store())[1].get("/as-of").status_code == 404


def test_of_a_store_on_the_hub_the_file_there_is_linked() -> None:
    there = "https://huggingface.co/datasets/somebody/assay-results/resolve/main/index.html"
    assert (static_address(""), static_address("somebody/assay")) == ("./as-of", there)
    for still in (there, ""):
        page = read(render("shell/footer.html", as_of=NOW, now=NOW, still=still))
        assert page.links("https://huggingface.co/datasets") == ([still] if still else [])


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[Switch, str]]:
    switch = Switch()
    app, options = app_of(failing(publish(memory_store()), switch), cards())
    with served(app, options) as address:
        yield switch, address


@pytest.mark.slow
def test_the_site_serves_it_beside_its_pages_also_while_the_store_is_out(
    site: tuple[Switch, str],
) -> None:
    switch, address = site
    for out in (False, True):
        switch.out = out
        assert "CLIPScore" in httpx.get(f"{address}as-of").text
    assert httpx.get(address).status_code == 200
