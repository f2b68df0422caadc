"""A store of release 0.1.0 becomes one of this release: read-only until then, whole at any time."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.ledger.ledger import Ledger
from leaderboard.store.hub import migration
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create, squash
from leaderboard.store.hub.migration import migrate
from leaderboard.store.hub.multi_repository import PINS
from leaderboard.store.interface import ConflictError, transact
from leaderboard.store.opening import StoreName
from tests.kit.hub.faults import Weather
from tests.kit.hub.repositories import StoredFile
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, NOWHERE, as_the_hub, parts_of
from tests.kit.old_hub_store import add_old_store
from tests.kit.refusals import refused
from tests.kit.store import contents, put
from tests.leaderboard.store.dying import DONE, KILLED, kill_points

SCORES = f"{NAME}-scores"


@pytest.fixture
def old(hub: HubServer) -> dict[str, bytes]:
    """The files of a store of 0.1.0."""
    return add_old_store(hub)


def migrated(hub: HubServer, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    return list(migrate(parts_of(hub, NOWHERE), folder))


def pins(hub: HubServer) -> dict[str, object]:
    requests = hub.repositories[f"{NAME}-requests"]
    found: dict[str, object] = json.loads(requests.files(requests.branches["main"])[PINS].content)
    return found


def fresh(hub: HubServer) -> HubParts:
    return parts_of(hub, NOWHERE)


# Before ------------------------------------------------------------------------------------------


def test_an_unmigrated_store_is_read_as_it_was(hub: HubServer, old: dict[str, bytes]) -> None:
    public = fresh(hub).public
    assert contents(public) == old
    assert public.list("results/two") == tuple(
        sorted(p for p in old if p.startswith("results/two"))
    )
    assert public.has("results/one-6f34f3c338/open.scores.parquet")
    assert not public.has("results/half/open.scores.parquet")


def test_every_writer_of_an_unmigrated_store_is_told_the_command(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_the_hub(hub, monkeypatch)
    monkeypatch.chdir(tmp_path)
    heads = {name: one.branches["main"] for name, one in hub.repositories.items()}
    parts, store = fresh(hub), StoreName.parse(f"hub:{NAME}").open()
    for write in (
        lambda: put(parts.public, {"queue.parquet": b"1"}),
        lambda: put(parts.public, {"results/a/b.json": b"1"}),
        lambda: put(parts.private, {"uploads/a": b"1"}),
        lambda: transact(store.public, lambda: {"policy.json": b"1"}, "m"),
        lambda: transact(store.private, lambda: {"uploads/a": b"1"}, "m"),
        lambda: list(squash(parts)),
        lambda: list(create(parts)),
    ):
        with refused("store_unmigrated", f"store migrate hub:{NAME}", kind=TransientError):
            write()
    assert heads == {name: one.branches["main"] for name, one in hub.repositories.items()}


# The migration -----------------------------------------------------------------------------------


def test_a_migrated_store_holds_what_it_held_and_takes_commits(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path
) -> None:
    before = fresh(hub)
    assert before.public.read("snapshot.parquet") == old["snapshot.parquet"]
    scores = dict(hub.repositories[SCORES].branches)
    said = migrated(hub, tmp_path / "scratch")
    assert any(SCORES in line and "may be deleted" in line for line in said)
    assert any("8 of 8" in line for line in said)
    assert hub.repositories[SCORES].branches == scores, "it is as it was"
    assert set(pins(hub)) == {"results", "nonce"}
    del hub.repositories[SCORES]
    for reader in (fresh(hub), before):
        assert contents(reader.public) == old
    put(before.public, {"results/new/open.scores.parquet": b"PAR1", "queue.parquet": b"q"})
    put(before.private, {"uploads/a": b"1"})
    assert contents(fresh(hub).public).keys() == {*old, "results/new/open.scores.parquet"}
    list(squash(fresh(hub)))


def test_the_ledger_of_a_migrated_store_goes_on(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_the_hub(hub, monkeypatch)
    monkeypatch.chdir(tmp_path)
    migrated(hub, tmp_path / "scratch")
    ledger = Ledger(StoreName.parse(f"hub:{NAME}").open())
    assert {one.submission.name for one in ledger.statuses()} == {"one", "two"}


def test_a_store_is_migrated_once(hub: HubServer, old: dict[str, bytes], tmp_path: Path) -> None:
    migrated(hub, tmp_path / "scratch")
    put(fresh(hub).public, {"queue.parquet": b"later"})
    heads = {name: one.branches["main"] for name, one in hub.repositories.items()}
    (line,) = migrated(hub, tmp_path / "scratch")
    assert "already" in line
    assert heads == {name: one.branches["main"] for name, one in hub.repositories.items()}


def test_what_was_copied_before_is_not_sent_again(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "_FILES", 3)
    going = migrate(fresh(hub), tmp_path)
    for _ in range(2):
        next(going)
    del going
    assert contents(fresh(hub).public) == old
    hub.tally.reset()
    (first, *_) = migrated(hub, tmp_path / "again")
    assert "8 files to copy, 3 of them" in first
    assert hub.tally.commits(f"{NAME}-results") == 2
    assert contents(fresh(hub).public) == old


def test_what_a_crash_of_the_old_release_left_is_not_migrated(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path
) -> None:
    migrated(hub, tmp_path / "scratch")
    results = hub.repositories[f"{NAME}-results"]
    files = results.files(results.branches["main"])
    assert files["snapshot.parquet"].content == old["snapshot.parquet"]
    assert "results/half/open.scores.parquet" not in files


def test_writers_of_the_old_release_are_kept_away_meanwhile(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path
) -> None:
    going = migrate(fresh(hub), tmp_path)
    next(going)
    told = pins(hub)
    assert set(told) == {"pins", "nonce", "frozen_until"}, "as 0.1.0 reads it"
    assert set(told["pins"]) == {"scores", "results"}  # type: ignore[call-overload]
    hub.clock.advance(45 * 60)
    next(going)
    list(going)
    assert contents(fresh(hub).public) == old


def test_one_that_commits_all_the_same_is_not_lost(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path
) -> None:
    going = migrate(fresh(hub), tmp_path)
    next(going)
    next(going)
    hub.repositories[f"{NAME}-requests"].change({"policy.json": StoredFile(b"late", lfs=False)})
    with refused("migration_overtaken", kind=TransientError):
        list(going)
    migrated(hub, tmp_path / "again")
    assert contents(fresh(hub).public) == {**old, "policy.json": b"late"}


def test_two_migrations_at_once_end_in_one_store(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "_FILES", 3)
    (tmp_path / "a").mkdir()
    slow = migrate(fresh(hub), tmp_path / "a")
    next(slow)
    migrated(hub, tmp_path / "b")
    with pytest.raises(TransientError):
        list(slow)
    assert contents(fresh(hub).public) == old


@pytest.mark.slow
def test_in_bad_weather_it_is_finished_by_running_it_again(
    hub: HubServer, old: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "_FILES", 1)
    hub.faults.weather(Weather(0.2, seed=5))
    for turn in count():
        assert turn < 50
        try:
            (tmp_path / str(turn)).mkdir()
            list(migrate(fresh(hub), tmp_path / str(turn)))
            break
        except (TransientError, ConflictError):
            pass
    hub.faults.weather(None)
    assert contents(fresh(hub).public) == old
    put(fresh(hub).public, {"queue.parquet": b"goes on"})


@pytest.mark.slow
def test_killed_at_any_request_it_goes_on_and_nobody_sees_half(
    hub: HubServer, old: dict[str, bytes], dies: Callable[[str, int], int]
) -> None:
    for last in kill_points(5):
        ended = dies("migrate", last)
        assert contents(fresh(hub).public) == old, f"after request {last}"
        if "pins" in pins(hub):
            with refused("store_unmigrated", kind=TransientError):
                put(fresh(hub).public, {"queue.parquet": b"1"})
        if ended != KILLED:
            break
    assert ended == DONE
    assert last > 12
    assert set(pins(hub)) == {"results", "nonce"}
