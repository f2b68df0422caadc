"""The static page of the boards: served, linked below every page, and kept for when the store is gone."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from leaderboard.api.source import Source
from leaderboard.pages.footer import footer
from leaderboard.pages.overview.still import STILL_PATH, still_page
from leaderboard.pages.reading import Reader
from leaderboard.pages.site import create_app, launch_options
from leaderboard.publication.snapshot import PATH, snapshot_bytes
from leaderboard.service.still_copy import still_address, still_route
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.failing_store import Switch, failing
from tests.leaderboard.pages.synthetic import NASTY, NOW, StubDesk, cards, snapshot


def publish(store: Store, entries: int = 12) -> Store:
    built = snapshot(entries)
    files = {PATH: snapshot_bytes(built), STILL_PATH: still_page(built)}
    store.public.commit(files, parent=store.public.head(), message="publish")
    return store


def serving(store: Store) -> tuple[Source, TestClient]:
    source = Source(Reader(store, cards(), clock=lambda: NOW), store, cards(), lambda: NOW)
    app = Starlette(routes=[still_route(source.still, source.in_thread)])
    return source, TestClient(app, "http://made.up")


def test_the_page_is_the_published_file_and_runs_nothing() -> None:
    store = publish(memory_store())
    _, client = serving(store)
    answer = client.get("/as-of")
    assert answer.content == store.public.read(STILL_PATH)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "CLIPScore" in answer.text and NASTY not in answer.text
    tag = {"If-None-Match": answer.headers["ETag"]}
    assert client.get("/as-of", headers=tag).status_code == 304


def test_another_snapshot_is_another_page() -> None:
    store = publish(memory_store(), 2)
    _, client = serving(store)
    before = client.get("/as-of")
    publish(store, 3)
    after = client.get("/as-of")
    assert "VQAScore" in after.text and "VQAScore" not in before.text
    assert after.headers["ETag"] != before.headers["ETag"]


def test_what_was_read_before_is_served_while_the_store_is_out() -> None:
    switch = Switch()
    source, client = serving(failing(publish(memory_store()), switch))
    source.still.keep()  # As the last lines of any page do.
    switch.out = True
    assert "CLIPScore" in client.get("/as-of").text


def test_a_store_that_never_answered_is_said_to_be_out_and_an_empty_one_to_be_empty() -> None:
    switch = Switch()
    switch.out = True
    source, client = serving(failing(publish(memory_store()), switch))
    source.still.keep()
    answer = client.get("/as-of")
    assert answer.status_code == 503 and answer.headers["Retry-After"]
    switch.out = False
    assert client.get("/as-of").status_code == 200
    assert serving(memory_store())[1].get("/as-of").status_code == 404


def test_of_a_store_on_the_hub_the_file_there_is_linked() -> None:
    assert still_address("") == "./as-of"
    there = still_address("somebody/assay")
    assert there == "https://huggingface.co/datasets/somebody/assay-results/resolve/main/index.html"
    assert f'href="{there}"' in footer(NOW, NOW, there)
    assert "Static copy" not in footer(NOW, NOW)


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[Switch, str]]:
    switch = Switch()
    store = failing(publish(memory_store()), switch)
    source = Source(Reader(store, cards(), clock=lambda: NOW), store, cards(), lambda: NOW)
    app = create_app(store, StubDesk(), cards(), clock=lambda: NOW, source=source)
    _, address, _ = app.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True,
        **launch_options(source=source),
    )  # fmt: skip
    yield switch, str(address)
    app.close()


@pytest.mark.slow
def test_the_site_serves_it_beside_its_pages_also_while_the_store_is_out(
    site: tuple[Switch, str],
) -> None:
    switch, address = site
    assert "CLIPScore" in httpx.get(f"{address}as-of").text
    switch.out = True
    try:
        assert "CLIPScore" in httpx.get(f"{address}as-of").text
        assert httpx.get(address).status_code == 200
    finally:
        switch.out = False
