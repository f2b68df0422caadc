"""A store that is deleted and made again under its name, while others use it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from leaderboard.publication.reader import Reader
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.interface import ConflictError, Store, transact
from tests.kit.governed import House
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, NOWHERE, created, parts_of
from tests.kit.refusals import refused
from tests.kit.store import contents, memory_store

RESULTS = f"{NAME}-results"


def filled(hub: HubServer, folder: Path, **options: float) -> HubParts:
    made = created(hub, folder, **options)
    files = {"queue.json": b"old", "results/m/a.json": b"old", "snapshot.parquet": b"old"}
    made.public.commit(files, parent=made.public.fresh_head(), message="m")
    made.private.commit({"uploads/m": b"old"}, parent=made.private.fresh_head(), message="m")
    return made


@pytest.mark.parametrize("fresh_for_s", [0.0, 1000.0])
def test_who_runs_goes_on_with_the_new(hub: HubServer, tmp_path: Path, fresh_for_s: float) -> None:
    running = filled(hub, tmp_path / "running", fresh_for_s=fresh_for_s)
    assert len(contents(running.public)) == 3
    assert running.private.list() == ("uploads/m",)
    old = running.public.head()
    hub.repositories.clear()
    list(create(parts_of(hub, NOWHERE)))
    for repository in (running.public, running.private):
        assert not repository.has("unknown")
    assert running.public.list("results/") == ()
    assert running.public.list() == running.private.list() == ()
    assert not running.public.has("snapshot.parquet")
    with pytest.raises(ConflictError):
        running.public.commit({"queue.json": b"late"}, parent=old, message="of the old one")
    new = {"queue.json": b"new", "results/n/a.json": b"new"}
    transact(running.public, lambda: new, "m")
    transact(running.private, lambda: {"uploads/n": b"new"}, "m")
    assert contents(running.public) == contents(parts_of(hub, NOWHERE).public) == new
    assert running.private.read("uploads/n") == b"new"


def test_who_runs_waits_and_who_comes_is_told_of_no_store(hub: HubServer, tmp_path: Path) -> None:
    running = filled(hub, tmp_path / "running")
    hub.repositories.clear()
    asks = (
        running.public.head,
        lambda: running.public.read("queue.json"),
        running.private.list,
        lambda: transact(running.private, lambda: {"a": b"1"}, "m"),
    )
    for ask in asks:
        with refused("store_gone", "lab/assay-", kind=TransientError):
            ask()
    with refused("no_store", f"hub:{NAME}", kind=PlatformError):
        parts_of(hub, NOWHERE).public.head()


def test_a_store_of_which_half_is_made_again_is_waited_for(hub: HubServer, tmp_path: Path) -> None:
    running = filled(hub, tmp_path / "running")
    hub.repositories.clear()
    hub.add(f"{NAME}-requests", {".gitattributes": b""})
    asks = (
        lambda parts: parts.public.read("queue.json"),
        lambda parts: parts.public.has("queue.json"),
        lambda parts: parts.public.list(),
    )
    for ask in asks:
        with refused("store_gone", kind=TransientError):
            ask(running)
        with refused("no_store", "yet", kind=PlatformError):
            ask(parts_of(hub, NOWHERE))
    list(create(parts_of(hub, NOWHERE)))
    assert running.public.list() == ()


def test_one_repository_made_anew_is_a_loss_until_it_is_mended(
    hub: HubServer, tmp_path: Path
) -> None:
    running = filled(hub, tmp_path / "running")
    del hub.repositories[RESULTS]
    hub.add(RESULTS, {".gitattributes": b""})
    fresh = parts_of(hub, NOWHERE)
    for ask in (
        lambda: fresh.public.read("snapshot.parquet"),
        lambda: fresh.public.list("results/"),
        lambda: transact(running.public, lambda: {"results/n/a.json": b"new"}, "m"),
    ):
        with refused("pins_lost", f"create hub:{NAME}", kind=TransientError):
            ask()
    assert fresh.public.read("queue.json") == b"old"
    said = list(create(parts_of(hub, NOWHERE)))
    assert [line for line in said if "made anew" in line and line.startswith(RESULTS)]
    assert list(create(parts_of(hub, NOWHERE))) == said[:3]
    assert running.public.list("results/") == ()
    transact(running.public, lambda: {"results/n/a.json": b"new"}, "m")
    assert fresh.public.read("results/n/a.json") == b"new"


def test_pages_say_since_when_they_are_old(hub: HubServer, tmp_path: Path) -> None:
    parts = created(hub, tmp_path / "pages")
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = Store(parts.public, parts.private, memory_store().live, lambda: now[0])
    House(store, clock=lambda: now[0]).done()
    steady = [0.0]
    reader = Reader(store, {}, clock=lambda: now[0], steady=lambda: steady[0])
    assert len(reader.statuses()) == 1
    confirmed = now[0]
    hub.repositories.clear()
    now[0] += timedelta(minutes=5)
    assert len(reader.statuses()) == 1
    assert (reader.as_of, "any more" in reader.trouble) == (confirmed, True)
    list(create(parts_of(hub, NOWHERE)))
    steady[0] += 3600.0
    assert reader.statuses() == ()
    assert (reader.as_of, reader.trouble) == (now[0], "")
