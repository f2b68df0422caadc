"""The next snapshot from the last: what it costs, and that it is the one made from nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from benchmarks.parquet import parquet_table
from leaderboard.publication import publisher
from leaderboard.publication.pairs_file import SCHEMA, pairs_path
from leaderboard.publication.publisher import DrawsCache, Publisher, Update
from leaderboard.publication.rebuilding import differences, rebuilt
from leaderboard.publication.snapshot import OLD_PATH, PATH
from leaderboard.ranking.orders import Orders
from leaderboard.records import Status
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import transact
from tests.kit.governed import ADA, BOB, CARDS, OLGA, House, NoisyHouse
from tests.kit.store import counted, memory_store

ON_OPEN: dict[str, Any] = {"benchmarks": ("open",)}


@pytest.fixture
def house() -> House:
    return NoisyHouse()


def filled(house: House, n: int, **more: Any) -> list[str]:
    return [house.done(name=f"metric{place}", **more) for place in range(n)]


def but(house: House, *gone: str) -> list[Status]:
    return [s for s in house.ledger.statuses() if s.submission.submission_id not in gone]


def again(house: House, name: str) -> None:
    """Run what is published once more."""
    house.acts.rerun(name, OLGA, "The data were mended.")
    house.claim(name)
    house.finish(name)


def test_after_every_act_the_boards_are_those_made_from_events_alone(house: House) -> None:
    first, second = house.done(name="one"), house.done(BOB, "two")
    assert house.problems() == []
    third, private = house.done(name="three", **ON_OPEN), house.done(name="four", private=True)
    for act in (
        lambda: house.acts.hide(second, OLGA, "It looks odd to me."),
        lambda: house.acts.publish(private, ADA),
        lambda: house.acts.show(second, OLGA, "It was fine."),
        lambda: again(house, first),
        lambda: house.acts.withdraw(third, ADA),
        lambda: house.done(name="one", version="9"),
    ):
        act()
        assert house.problems() == []
    assert len(house.snapshot().boards["open"].cells) >= 3


def test_several_publishers_continue_each_others_work(house: House) -> None:
    other = NoisyHouse(house.store, house.clock, "w2")
    for place in range(6):
        (house, other)[place % 2].done(name=f"metric{place}")
        assert house.problems() == []
    assert len(house.snapshot().entries) == 6


def test_threads_that_publish_at_the_same_time_make_the_boards_of_all_of_them() -> None:
    plain = memory_store()
    store = replace(plain, public=Grouping(plain.public), private=Grouping(plain.private))
    house = NoisyHouse(store)
    ids = [house.send(name=f"metric{place}") for place in range(6)]
    for submission_id in ids:
        house.claim(submission_id)
    with ThreadPoolExecutor(len(ids)) as threads:
        list(threads.map(house.finish, ids))
    assert house.problems() == []
    assert house.shown() == set(ids)
    built_from = house.snapshot().built_from
    assert built_from
    assert int(built_from) < int(plain.public.head()), "a version there was"


# What it costs


@pytest.fixture
def ranked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Boards that are ranked."""
    names: list[str] = []
    rank = publisher.ranked_board

    def noted(card: Any, *words: Any) -> Any:
        names.append(card.name)
        return rank(card, *words)

    monkeypatch.setattr(publisher, "ranked_board", noted)
    return names


def test_only_boards_whose_runs_changed_are_ranked(house: House, ranked: list[str]) -> None:
    first = house.done(name="one")
    ranked.clear()
    house.done(BOB, "two", benchmarks=("closed",))
    assert ranked == ["closed"]
    ranked.clear()
    house.acts.rerun(first, OLGA, "To see whether it comes out the same.")
    house.done(BOB, "three", **ON_OPEN)
    assert ranked == ["open"], "what waits for another run is on the boards as it was"
    ranked.clear()
    told = {**CARDS, "open": CARDS["open"].model_copy(update={"summary": "Told better."})}
    Publisher(house.store, told).publish_cards(house.clock())
    assert ranked == [], "another word of a card needs no new ranks"
    board = house.snapshot().boards["open"]
    assert (board.card.summary, bool(board.cells)) == ("Told better.", True)


def test_only_the_draws_of_boards_that_changed_are_read_and_once(house: House) -> None:
    first, second, *_ = filled(house, 5, **ON_OPEN)
    house.done(name="elsewhere", benchmarks=("closed",))
    store, public, private = counted(house.store)
    publisher = Publisher(store, CARDS)
    publisher.snapshot_files(house.clock(), house.ledger.statuses())
    assert public.below("results/") == [], "nothing of what is shown already"
    publisher.snapshot_files(house.clock(), but(house, first))
    read = public.below("results/")
    assert len(read) == 2 * 4
    assert not [path for path in read if path.endswith(".json")]
    public.forget()
    publisher.snapshot_files(house.clock(), but(house, first, second))
    assert public.below("results/") == private.below("results/") == [], "what was read is kept"


def test_draws_on_this_machines_disk_are_not_read_again(house: House, tmp_path: Path) -> None:
    house.publisher = Publisher(replace(house.store, cache=tmp_path), CARDS)
    left = but(house, filled(house, 4)[0])[1:]
    store, public, private = counted(house.store)
    at = house.snapshot().built_at
    warm = Publisher(replace(store, cache=tmp_path), CARDS).snapshot_files(at, left)
    assert public.below("results/") == private.below("results/") == []

    for file in (tmp_path / "draws").iterdir():
        file.write_bytes(file.read_bytes()[:-50])
    mended = Publisher(replace(store, cache=tmp_path), CARDS).snapshot_files(at, left)
    assert len(public.below("results/")) == 2 * len(left)
    assert mended == Publisher(store, CARDS).snapshot_files(at, left)
    assert set(mended) == set(warm)


def test_a_cache_without_room_in_memory_gives_the_same_boards(house: House) -> None:
    shown = but(house, filled(house, 4)[1])
    made = [
        Update(house.store, CARDS, DrawsCache(house.store, in_memory=size), house.snapshot())
        for size in (0, 1 << 30)
    ]
    assert differences(*(one.snapshot(shown, house.clock(), "") for one in made)) == ()


def test_draws_that_are_not_there_yet_are_looked_for_again(house: House, tmp_path: Path) -> None:
    kept, gone = filled(house, 2, **ON_OPEN)
    public = house.store.public
    paths = [p for p in public.list(f"results/{kept}/open.") if p.endswith(".parquet")]
    files = {path: public.read(path) for path in paths}
    transact(public, lambda: dict.fromkeys(files), "lost")
    publisher = Publisher(replace(house.store, cache=tmp_path), CARDS)
    publisher.snapshot_files(house.clock(), but(house, gone))
    assert list((tmp_path / "draws").glob("*")) == []
    transact(public, lambda: files, "found again")
    house.acts.hide(gone, OLGA, "It looks odd to me.")
    assert house.problems() == []


# Tests of pairs


def test_the_tests_of_a_headline_are_published_and_are_those_made_from_nothing(
    house: House,
) -> None:
    filled(house, 4, **ON_OPEN)
    board = house.snapshot().boards["open"]
    made = Orders(house.store).ranked(board.card, [board.slice(board.card.headline, None)])
    assert made.ordering.tests is not None
    kept = parquet_table(house.store.public.read(pairs_path("open")))
    assert kept.schema.remove_metadata() == SCHEMA
    place = {cell.entry_id: i for i, cell in enumerate(made.cells)}
    rows = kept.to_pylist()
    assert len({frozenset((row["entry_a"], row["entry_b"])) for row in rows}) == len(rows) == 6
    for row in rows:
        at = place[row["entry_a"]], place[row["entry_b"]]
        assert row["p_corrected"] == made.ordering.tests.p_value[at]
        assert row["difference"] == pytest.approx(made.ordering.tests.difference[at])
        assert row["n_patterns"] == made.ordering.tests.n_patterns


@pytest.mark.parametrize("content", [b"", b"PAR1 no table"])
def test_a_broken_file_of_tests_is_made_again_till_none_is_needed(
    house: House, content: bytes
) -> None:
    ids, path = filled(house, 2, **ON_OPEN), pairs_path("open")
    transact(house.store.public, lambda: {path: content}, "spoilt")
    ids.append(house.done(name="three", **ON_OPEN))
    assert house.problems() == []
    assert house.store.public.read(path) != content
    for name in ids:
        house.acts.withdraw(name, ADA)
    assert not house.store.public.has(path)
    assert house.problems() == []


# What was there before


def test_a_result_published_again_for_one_benchmark_keeps_those_of_the_others(house: House) -> None:
    both = house.done(name="one")
    before = house.snapshot().boards["closed"].cells
    partly = house.ledger.whole(both).model_copy(update=ON_OPEN)
    house.acts.rerun(both, OLGA, "One of the two was changed.")
    house.claim(both)
    with mock.patch.object(house.ledger, "whole", return_value=partly):
        house.finish(both)
    after = house.snapshot()
    assert [c.value for c in after.boards["closed"].cells] == [c.value for c in before]
    assert set(after.entries[f"{both}/one"].isolation) == {"open", "closed"}
    assert house.problems() == []


@pytest.mark.parametrize("old", [True, False], ids=["the form before", "an older one put back"])
def test_a_snapshot_of_another_form_or_state_is_built_again(house: House, old: bool) -> None:
    house.done(name="one")
    stale = house.store.public.read(PATH)
    house.done(BOB, "two")
    right = house.snapshot()
    form = b'{"schema_version": 1, "built_at": "2026-01-01T00:00:00Z", "entries": {}, "boards": {}}'
    changes = {OLD_PATH: form, PATH: None} if old else {PATH: stale}
    transact(house.store.public, lambda: changes, "as another version left it")
    assert set(house.snapshot().boards) == (set() if old else set(CARDS))
    Publisher(house.store, CARDS).publish_cards(house.clock())
    assert house.store.public.list("snapshot") == (PATH,)
    assert differences(house.snapshot(), right) == ()
    assert house.problems() == []


def test_a_new_revision_empties_its_board_and_leaves_the_others(house: House) -> None:
    house.done(name="one")
    moved = {**CARDS, "open": CARDS["open"].model_copy(update={"revision": "next"})}
    Publisher(house.store, moved).publish_cards(house.clock())
    shown = house.snapshot()
    assert {name: len(board.cells) for name, board in shown.boards.items()} == {
        "open": 0,
        "closed": 1,
    }
    assert [set(entry.isolation) for entry in shown.entries.values()] == [{"closed"}]
    assert differences(shown, rebuilt(house.store, moved, house.clock())) == ()
