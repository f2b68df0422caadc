"""The next snapshot from the last: what it costs, and that it is the one made from nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from benchmarks.statistics import sign_flips
from leaderboard.publication import ranked_boards, updating
from leaderboard.publication.boards import Snapshot
from leaderboard.publication.draws_shelf import DrawsShelf
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.rebuilding import differences, queue_differences, rebuilt
from leaderboard.publication.snapshot_file import OLD_PATH, PATH, read_snapshot
from leaderboard.publication.updating import Update
from leaderboard.ranking import pairs
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import transact
from leaderboard.store.memory import memory_store
from tests.leaderboard.house import ADA, BOB, CARDS, OLGA, House
from tests.leaderboard.publication.counting import counted, noisy_house


@pytest.fixture
def house() -> Iterator[House]:
    with noisy_house() as one:
        yield one


def snapshot_of(house: House) -> Snapshot:
    found = read_snapshot(house.store.public)
    assert found is not None
    return found


def assert_right(house: House) -> None:
    """Queue and snapshot are what events and results make, and nothing else."""
    assert differences(snapshot_of(house), rebuilt(house.store, CARDS, house.clock())) == ()
    assert queue_differences(house.store) == ()


def test_after_every_act_the_boards_are_those_made_from_events_alone(house: House) -> None:
    first = house.done(name="one")
    second = house.done(BOB, "two")
    assert_right(house)
    third = house.done(name="three", benchmarks=("open",))
    assert_right(house)
    house.acts.hide(second, OLGA, "It looks odd to me.")
    assert_right(house)
    private = house.done(name="four", private=True)
    assert_right(house)
    house.acts.publish(private, ADA)
    assert_right(house)
    house.acts.show(second, OLGA, "It was fine.")
    assert_right(house)
    house.acts.rerun(first, OLGA, "The data were mended.")
    assert_right(house)
    house.claim(first)
    house.finish(first)
    assert_right(house)
    house.acts.withdraw(third, ADA)
    house.done(name="one", version="9")
    assert_right(house)
    assert len(snapshot_of(house).boards["open"].cells) >= 3


def test_several_publishers_continue_each_others_work(house: House) -> None:
    with noisy_house(store=house.store, clock=house.clock, worker="w2") as other:
        for place in range(6):
            (house, other)[place % 2].done(name=f"metric{place}")
            assert_right(house)
    assert len(snapshot_of(house).entries) == 6


def ranked_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Boards that are ranked from here on."""
    names: list[str] = []
    rank = ranked_boards.ranked_board

    def noted(card: Any, *words: Any) -> Any:
        names.append(card.name)
        return rank(card, *words)

    monkeypatch.setattr(updating, "ranked_board", noted)
    return names


def test_only_boards_whose_runs_changed_are_ranked(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = house.done(name="one")
    names = ranked_by(monkeypatch)
    house.done(BOB, "two", benchmarks=("closed",))
    assert names == ["closed"]
    names.clear()
    house.acts.rerun(first, OLGA, "To see whether it comes out the same.")
    house.done(BOB, "three", benchmarks=("open",))
    assert names == ["open"], "what waits for another run is on the boards as it was"


def test_a_publication_reads_nothing_of_runs_that_were_published_before(house: House) -> None:
    for place in range(5):
        house.done(name=f"metric{place}")
    house.store, public, private = counted(house.store)
    publisher = Publisher(house.store, CARDS)
    publisher.snapshot_files(house.clock(), house.ledger.statuses())
    assert public.below("results/") == []
    assert private.below("results/") == []


def test_a_cold_publisher_reads_the_draws_of_the_boards_that_changed(house: House) -> None:
    for place in range(5):
        house.done(name=f"metric{place}", benchmarks=("open",))
    house.done(name="elsewhere", benchmarks=("closed",))
    gone = house.ledger.statuses()[0].submission.submission_id
    left = [s for s in house.ledger.statuses() if s.submission.submission_id != gone]
    store, public, private = counted(house.store)
    publisher = Publisher(store, CARDS)
    publisher.snapshot_files(house.clock(), left)
    read = public.below("results/")
    assert len(read) == 2 * 4
    assert not [path for path in read if path.endswith(".json")]
    assert private.below("results/") == []
    public.forget()
    publisher.snapshot_files(house.clock(), left[1:])
    assert public.below("results/") == [], "what was read is kept"


def test_draws_on_this_machines_disk_are_not_read_again(house: House, tmp_path: Path) -> None:
    house.publisher = Publisher(replace(house.store, cache=tmp_path), CARDS)
    ids = [house.done(name=f"metric{place}") for place in range(4)]
    store, public, private = counted(house.store)
    left = [s for s in house.ledger.statuses() if s.submission.submission_id != ids[0]]
    warm = Publisher(replace(store, cache=tmp_path), CARDS).snapshot_files(house.clock(), left)
    assert (public.below("results/"), private.below("results/")) == ([], [])

    for file in (tmp_path / "draws").iterdir():
        file.write_bytes(file.read_bytes()[:-50])
    at = snapshot_of(house).built_at
    again = Publisher(replace(store, cache=tmp_path), CARDS).snapshot_files(at, left)
    assert len(public.below("results/")) == 2 * 3
    plain = Publisher(store, CARDS).snapshot_files(at, left)
    assert again == plain
    assert set(plain) == set(warm)


def test_the_shelf_keeps_what_was_used_last(house: House, tmp_path: Path) -> None:
    house.publisher = Publisher(replace(house.store, cache=tmp_path), CARDS)
    shelf = tmp_path / "draws"
    for place in range(4):
        house.done(name=f"metric{place}", benchmarks=("open",))
    sizes = [file.stat().st_size for file in shelf.iterdir()]
    assert len(sizes) == 4
    DrawsShelf(house.store, shelf, on_disk=2 * max(sizes)).tidy()
    assert len(list(shelf.iterdir())) == 2


def test_a_shelf_without_room_in_memory_gives_the_same_boards(house: House) -> None:
    ids = [house.done(name=f"metric{place}") for place in range(4)]
    shown = [s for s in house.ledger.statuses() if s.submission.submission_id != ids[1]]
    made = [
        Update(
            house.store, CARDS, DrawsShelf(house.store, in_memory=size), snapshot_of(house)
        ).snapshot(shown, house.clock(), "")
        for size in (0, 1 << 30)
    ]
    assert differences(*made) == ()


def test_draws_that_are_not_there_yet_are_looked_for_again(house: House, tmp_path: Path) -> None:
    kept = house.done(name="one", benchmarks=("open",))
    gone = house.done(name="two", benchmarks=("open",))
    paths = house.store.public.list(f"results/{kept}/open.")
    files = {path: house.store.public.read(path) for path in paths if path.endswith(".parquet")}
    lost = dict.fromkeys(files)
    transact(house.store.public, lambda: lost, "lost")
    left = [s for s in house.ledger.statuses() if s.submission.submission_id != gone]
    publisher = Publisher(replace(house.store, cache=tmp_path), CARDS)
    publisher.snapshot_files(house.clock(), left)
    assert list((tmp_path / "draws").glob("*")) == []
    transact(house.store.public, lambda: files, "found again")
    house.acts.hide(gone, OLGA, "It looks odd to me.")
    assert_right(house)


def test_a_new_entry_is_tested_against_the_others_and_they_are_not_tested_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(5):
        house.done(name=f"metric{place}", benchmarks=("open",))
    made: list[int] = []
    test = sign_flips.pair_tests

    def noted(shares: Any, first: Any, *words: Any, **more: Any) -> Any:
        made.append(len(first))
        return test(shares, first, *words, **more)

    monkeypatch.setattr(pairs, "pair_tests", noted)
    house.done(name="newcomer", benchmarks=("open",))
    assert made == [5]
    monkeypatch.undo()
    assert_right(house)


def test_the_tests_of_pairs_are_published_and_are_those_made_from_nothing(house: House) -> None:
    for place in range(4):
        house.done(name=f"metric{place}", benchmarks=("open",))
    card, ids = CARDS["open"], [*snapshot_of(house).entries]
    kept = pairs.read_pairs(house.store.public, "open", card.revision, ids)
    fresh = Update(house.store, CARDS, DrawsShelf(house.store))
    shown = [status for status in house.ledger.statuses() if status.on_boards]
    fresh.snapshot(shown, house.clock(), "")
    made = fresh.ranked["open"]
    assert kept is not None
    assert made is not None
    assert set(kept.entry_ids) == set(made.entry_ids)
    order = [kept.entry_ids.index(entry_id) for entry_id in made.entry_ids]
    np.fill_diagonal(kept.tests.p_value, 1.0)
    np.testing.assert_allclose(kept.tests.of(np.array(order)).p_value, made.tests.p_value)


def test_tests_of_another_result_of_the_same_entry_are_not_taken_over(house: House) -> None:
    first = house.done(name="one", benchmarks=("open",))
    house.done(BOB, name="two", benchmarks=("open",))
    house.acts.rerun(first, OLGA, "The data were mended.")
    house.claim(first)
    house.finish(first)
    assert_right(house)
    kept = pairs.read_pairs(house.store.public, "open", CARDS["open"].revision, [])
    assert kept is not None
    assert kept.entry_ids == ()


@pytest.mark.parametrize("content", [b"", b"PAR1 no table"])
def test_a_file_of_tests_that_cannot_be_read_is_made_again(house: House, content: bytes) -> None:
    house.done(name="one", benchmarks=("open",))
    house.done(BOB, name="two", benchmarks=("open",))
    path = pairs.pairs_path("open")
    transact(house.store.public, lambda: {path: content}, "spoilt")
    house.done(name="three", benchmarks=("open",))
    assert_right(house)
    assert house.store.public.read(path) != content


def test_a_board_that_loses_its_last_entry_loses_its_tests(house: House) -> None:
    only = house.done(name="one", benchmarks=("open",))
    assert house.store.public.has(pairs.pairs_path("open"))
    house.acts.withdraw(only, ADA)
    assert not house.store.public.has(pairs.pairs_path("open"))
    assert_right(house)


def test_a_result_published_again_for_one_benchmark_keeps_those_of_the_others(house: House) -> None:
    both = house.done(name="one")
    before = snapshot_of(house)
    house.acts.rerun(both, OLGA, "One of the two was changed.")
    house.claim(both)
    whole = house.ledger.whole(both)
    partly = whole.model_copy(update={"benchmarks": ("open",)})
    with mock.patch.object(house.ledger, "whole", return_value=partly):
        house.finish(both)
    after = snapshot_of(house)
    assert [c.value for c in after.boards["closed"].cells] == [
        c.value for c in before.boards["closed"].cells
    ]
    assert set(after.entries[f"{both}/one"].isolation) == {"open", "closed"}
    assert_right(house)


def test_a_snapshot_of_the_form_before_is_replaced_when_a_worker_starts(house: House) -> None:
    house.done(name="one")
    right = snapshot_of(house)
    old = b'{"schema_version": 1, "built_at": "2026-01-01T00:00:00Z", "entries": {}, "boards": {}}'
    changes = {OLD_PATH: old, PATH: None}
    transact(house.store.public, lambda: changes, "as an older version left it")
    assert snapshot_of(house).boards == {}
    Publisher(house.store, CARDS).publish_cards(house.clock())
    assert house.store.public.list("snapshot") == (PATH,)
    assert differences(snapshot_of(house), right) == ()
    assert_right(house)


def test_a_snapshot_that_shows_other_submissions_is_built_again_when_a_worker_starts() -> None:
    with noisy_house(store=memory_store()) as house:
        house.done(name="one")
        stale = house.store.public.read(PATH)
        house.done(BOB, name="two")
        transact(house.store.public, lambda: {PATH: stale}, "an older one put back")
        Publisher(house.store, CARDS).publish_cards(house.clock())
        assert_right(house)


def test_a_card_with_other_words_needs_no_new_ranks(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.done(name="one")
    told = {**CARDS, "open": CARDS["open"].model_copy(update={"summary": "Told better."})}
    names = ranked_by(monkeypatch)
    Publisher(house.store, told).publish_cards(house.clock())
    assert names == []
    assert snapshot_of(house).boards["open"].card.summary == "Told better."
    assert snapshot_of(house).boards["open"].cells


def test_a_new_revision_empties_its_board_and_leaves_the_others(house: House) -> None:
    house.done(name="one")
    moved = {**CARDS, "open": CARDS["open"].model_copy(update={"revision": "next"})}
    Publisher(house.store, moved).publish_cards(house.clock())
    shown = snapshot_of(house)
    assert shown.boards["open"].cells == ()
    assert len(shown.boards["closed"].cells) == 1
    assert set(next(iter(shown.entries.values())).isolation) == {"closed"}
    assert differences(shown, rebuilt(house.store, moved, house.clock())) == ()


def test_threads_that_publish_at_the_same_time_make_the_boards_of_all_of_them() -> None:
    plain = memory_store()
    store = replace(plain, public=Grouping(plain.public), private=Grouping(plain.private))
    with noisy_house(store=store) as house:
        ids = [house.send(name=f"metric{place}") for place in range(6)]
        for submission_id in ids:
            house.claim(submission_id)
        with ThreadPoolExecutor(len(ids)) as threads:
            list(threads.map(house.finish, ids))
        assert_right(house)
        shown = snapshot_of(house)
    assert {entry.submission_id for entry in shown.entries.values()} == set(ids)
    assert shown.built_from
    assert int(shown.built_from) < int(plain.public.head()), "a version there was"
