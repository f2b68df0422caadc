"""What authors and operators do with submissions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.governance.acts import Acts
from leaderboard.ledger.chronicle import read_lines, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.tidying import tidy_all
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.results import read_results, with_draws
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.states import State
from leaderboard.store.interface import Changes, Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.house import ADA, BOB, CARDS, OLGA, OPEN, House


@pytest.fixture
def house() -> House:
    return House()


class Breaking:
    """A repository that fails at one commit, before or after it is made."""

    def __init__(self, under: object, message: str, *, after: bool = False) -> None:
        self._under = under
        self._message = message
        self._after = after
        self.broken = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        if message.startswith(self._message) and not self.broken:
            self.broken = True
            if self._after:
                self._under.commit(changes, parent=parent, message=message)  # type: ignore[attr-defined]
            raise PlatformError("crash", "The process died here.")
        return self._under.commit(changes, parent=parent, message=message)  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(("act", "state"), [("withdraw", State.WITHDRAWN), ("hide", State.HIDDEN)])
def test_what_is_taken_off_leaves_the_boards_in_the_same_commit(
    house: House, act: str, state: State
) -> None:
    kept, gone = house.done(BOB, "blue"), house.done()
    before = int(house.store.public.head())
    status = getattr(house.acts, act)(gone, OLGA, "It reads\x1b[31m\nfile\u202enames.")
    assert int(house.store.public.head()) == before + 1
    assert (status.state, status.reason) == (state, "It reads[31m filenames.")
    assert house.shown() == {kept}
    line = read_lines(house.store.public, gone)[-1]
    assert (line.action, line.by, line.reason) == (str(state), OLGA.key, status.reason)


def test_an_author_takes_back_their_own_and_nobody_elses(house: House) -> None:
    own, other = house.done(), house.done(BOB, "blue")
    assert house.acts.withdraw(own, ADA).reason == "Withdrawn by its author."
    with pytest.raises(SubmitterError) as caught:
        house.acts.withdraw(other, ADA)
    assert caught.value.code == "not_yours"
    assert house.shown() == {other}


def test_a_withdrawal_ends_what_waits_and_what_is_being_worked_on(house: House) -> None:
    waiting, working = house.send(), house.send(name="blue")
    house.claim(working)
    house.acts.withdraw(waiting, ADA)
    house.acts.withdraw(working, ADA)
    with pytest.raises(PlatformError, match="cannot go from withdrawn"):
        house.finish(working)
    assert house.shown() == set()


def test_a_claim_that_comes_after_a_withdrawal_loses(house: House) -> None:
    waiting = house.send()
    house.acts.withdraw(waiting, ADA)
    with pytest.raises(TransientError, match="was moved to withdrawn"):
        house.claim(waiting)


@pytest.mark.parametrize("private", [False, True])
def test_what_is_shown_again_is_what_it_was(house: House, *, private: bool) -> None:
    name = house.done(private=private)
    before = house.ledger.whole_status(name).state
    house.acts.hide(name, OLGA, "To be looked at.")
    assert house.shown() == set()
    assert house.acts.show(name, OLGA).state is before
    assert house.shown() == (set() if private else {name})


def test_a_rerun_leaves_the_results_where_they_are_until_there_are_others(house: House) -> None:
    name = house.done()
    assert house.acts.rerun(name, OLGA, "A new driver.").state is State.QUEUED
    assert house.shown() == {name}
    house.claim(name)
    house.fail(name)
    assert house.shown() == {name}
    house.acts.hide(name, OLGA, "Its rerun failed.")
    assert house.shown() == set()
    assert house.acts.show(name, OLGA).state is State.PUBLISHED
    assert house.shown() == {name}


@pytest.mark.parametrize("act", ["hide", "rerun"])
def test_operators_must_say_why(house: House, act: str) -> None:
    name = house.done()
    for reason, code in ((" \x00\u200b ", "reason_missing"), ("x" * 501, "reason_too_long")):
        with pytest.raises(SubmitterError) as caught:
            getattr(house.acts, act)(name, OLGA, reason)
        assert caught.value.code == code
    assert house.state(name) is State.PUBLISHED


def test_an_act_that_loses_its_race_is_checked_against_what_the_other_left(house: House) -> None:
    name = house.done()

    class Interrupted:
        """Another operator's act comes between reading and committing."""

        done = False

        def __getattr__(self, attribute: str) -> object:
            return getattr(house.store.public, attribute)

        def commit(self, changes: Changes, *, parent: str, message: str) -> str:
            if not self.done:
                self.done = True
                house.acts.withdraw(name, ADA)
            return house.store.public.commit(changes, parent=parent, message=message)

    store = replace(house.store, public=Interrupted())  # type: ignore[arg-type]
    with pytest.raises(SubmitterError) as caught:
        Acts(store, CARDS, house.clock).hide(name, OLGA, "It is wrong.")
    assert caught.value.code == "not_now"
    assert house.state(name) is State.WITHDRAWN
    assert verify(house.store.public) == ()


# Publishing what is private.


def test_an_author_publishes_results_record_and_boards_in_one_commit(house: House) -> None:
    name = house.done(private=True, description="How it works.")
    before = int(house.store.public.head())
    status = house.acts.publish(name, ADA)
    assert int(house.store.public.head()) == before + 1
    assert (status.submission.submission_id, status.submission.private) == (name, False)
    assert Ledger(house.store).status(name).submission.description == "How it works."
    snapshot = read_snapshot(house.store.public)
    assert snapshot is not None
    entry = snapshot.entries[f"{name}/grey"]
    assert (entry.submitter, entry.description) == ("ada", "How it works.")
    assert {cell.value for board in snapshot.boards.values() for cell in board.cells} == {0.5}


def test_published_boards_are_those_of_a_submission_that_was_never_private() -> None:
    houses = House(), House()
    public = houses[0].done()
    private = houses[1].done(private=True)
    houses[1].acts.publish(private, ADA)
    boards = [
        snapshot.boards
        for house in houses
        if (snapshot := read_snapshot(house.store.public)) is not None
    ]
    told = [
        [cell.model_dump_json().replace(n, "ID") for cell in b["open"].cells]
        for b, n in zip(boards, (public, private), strict=True)
    ]
    assert told[0] == told[1]


def test_private_answers_stay_private_when_results_are_published(house: House) -> None:
    name = house.done(private=True)
    house.acts.publish(name, ADA)
    public = set(house.store.public.list(f"results/{name}/"))
    assert {p for p in public if "/closed." in p} == {f"results/{name}/closed.json"}
    assert len({p for p in public if "/open." in p}) == 3
    own = house.ledger.whole(name)
    runs = [with_draws(house.store, own, r, CARDS) for r in read_results(house.store, own)]
    assert len(runs) == 2
    assert all(run.draws is not None and run.draws.resamples[0][0] == 0.5 for run in runs)
    assert not [p for p in house.store.private.list("held/") if "/results/" in p]


def test_nobody_but_the_author_publishes(house: House) -> None:
    name = house.done(private=True)
    for account in (BOB, OLGA):
        with pytest.raises(SubmitterError) as caught:
            house.acts.publish(name, account)
        assert caught.value.code == "not_yours"
    assert house.state(name) is State.HELD


def test_results_on_a_benchmark_not_known_here_are_not_published_by_halves(house: House) -> None:
    name = house.done(private=True)
    with pytest.raises(PlatformError, match="that benchmark is not known"):
        Acts(house.store, {"open": OPEN}, house.clock).publish(name, ADA)
    assert house.state(name) is State.HELD
    assert house.store.public.list("results/") == ()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["draws of private", "publish", "tidy"])
def test_a_crash_at_any_step_of_publishing_is_repaired_by_the_next_call(
    house: House, step: str, *, after: bool
) -> None:
    name = house.done(private=True)
    private = Breaking(house.store.private, step, after=after)
    public = Breaking(house.store.public, step, after=after)
    store = Store(public, private, house.store.live)  # type: ignore[arg-type]
    with pytest.raises(PlatformError, match="died here"):
        Acts(store, CARDS, house.clock).publish(name, ADA)
    assert public.broken or private.broken
    assert verify(house.store.public) == ()
    published = house.state(name) is State.PUBLISHED
    assert house.shown() == ({name} if published else set())
    try:
        assert Acts(house.store, CARDS, house.clock).publish(name, ADA).state is State.PUBLISHED
    except SubmitterError as error:
        assert published and error.code == "not_now"
    assert house.shown() == {name}
    assert not [p for p in house.store.private.list("held/") if "/results/" in p]
    assert verify(house.store.public) == ()


def test_held_results_of_a_withdrawn_submission_are_removed(house: House) -> None:
    name = house.done(private=True)
    house.acts.withdraw(name, ADA)
    assert not [p for p in house.store.private.list("held/") if "/results/" in p]


def test_tidying_removes_what_is_held_for_nobody_and_nothing_else(house: House) -> None:
    held, gone = house.done(private=True), house.done(private=True, name="blue")
    store = replace(house.store, private=Breaking(house.store.private, "tidy"))  # type: ignore[arg-type]
    with pytest.raises(PlatformError, match="died here"):
        Acts(store, CARDS, house.clock).withdraw(gone, ADA)
    tidy_all(house.store)
    results = {p.split("/")[1] for p in house.store.private.list("held/") if "/results/" in p}
    assert results == {held}


def test_boards_of_a_folder_store_follow_too(tmp_path: Path) -> None:
    from leaderboard.store.folder import folder_store

    house = House(store=folder_store(tmp_path))
    first, second = house.done(), house.done(private=True)
    house.acts.publish(second, ADA)
    assert house.shown() == {second}
    house.acts.withdraw(second, ADA)
    assert house.shown() == {first}
    assert verify(house.store.public) == ()


# The publisher.


def test_the_snapshot_is_built_anew_only_when_the_boards_change(house: House) -> None:
    house.done()
    publisher = Publisher(house.store, CARDS)
    first = publisher.snapshot_files(house.clock(), house.ledger.statuses())
    house.send(name="blue")
    assert publisher.snapshot_files(house.clock(), house.ledger.statuses()) is first
    house.done(name="green")
    assert publisher.snapshot_files(house.clock(), house.ledger.statuses()) is not first


def test_boards_of_new_benchmarks_are_published_once() -> None:
    house = House(store=memory_store())
    house.publisher.publish_cards(house.clock())
    head = house.store.public.head()
    house.publisher.publish_cards(house.clock())
    assert house.store.public.head() == head
    snapshot = read_snapshot(house.store.public)
    assert snapshot is not None
    assert set(snapshot.boards) == set(CARDS)
