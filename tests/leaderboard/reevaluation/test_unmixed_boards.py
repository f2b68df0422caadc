"""Boards never mix editions, however the results of a store are mixed."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest

from benchmarks.schema import Card
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.snapshot import (
    Published,
    Snapshot,
    build_snapshot,
    parse_snapshot,
    read_snapshot,
    snapshot_bytes,
)
from leaderboard.ranking.draws import draws_files
from leaderboard.records import Event, RunResult
from leaderboard.reevaluation.earlier_boards import board_path, earlier_tags, read_board
from leaderboard.reevaluation.editions import CONTRACT, Edition
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import NOW, cards, runs_of

AT = datetime(2026, 1, 1, tzinfo=UTC)
EDITIONS = [
    {"revision": revision, "protocol": protocol, "contract": contract}
    for revision, protocol, contract in product(
        ("2024-12-01", "older"), (1, 2), (CONTRACT, CONTRACT - 1)
    )
]


def mixed(count: int) -> list[Published]:
    """One run on `ratings` for each metric, in one edition after the other."""
    found = []
    for place, run in enumerate(r for r in runs_of(count) if r.result.benchmark == "ratings"):
        result = run.result.model_copy(update=EDITIONS[place % len(EDITIONS)])
        own = run.submission.model_copy(update={"benchmarks": ("ratings",)})
        found.append(Published(own, result, run.draws))
    return found


def card_of(changes: dict[str, object]) -> Card:
    kept = {name: changes[name] for name in ("revision", "protocol")}
    return cards()["ratings"].model_copy(update=kept)


def fitting(runs: list[Published], card: Card) -> set[str]:
    board = Edition.of_card(card)
    return {
        run.submission.submission_id for run in runs if Edition.of_result(run.result).fits(board)
    }


def on_board(snapshot: Snapshot) -> set[str]:
    return {cell.entry_id.partition("/")[0] for cell in snapshot.boards["ratings"].cells}


@pytest.mark.parametrize("changes", EDITIONS[::2], ids=str)
def test_a_snapshot_of_mixed_results_shows_one_edition_alone(changes: dict[str, object]) -> None:
    runs, card = mixed(24), card_of(changes)
    built = build_snapshot(runs, {"ratings": card}, NOW)
    assert on_board(built) == fitting(runs, card) != set()
    assert len(on_board(built)) < len(runs)
    again = parse_snapshot(snapshot_bytes(built))
    assert on_board(again) == on_board(built)
    assert {e.submission_id for e in built.entries.values()} == on_board(built)


def filled(runs: list[Published]) -> Store:
    store = memory_store()
    ledger = Ledger(store)
    for run in runs:
        events = [Event(at=AT, state=s, by="w") for s in (
            State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED,
            State.JUDGING, State.PUBLISHED)]  # fmt: skip
        ledger.receive(run.submission, run.submission.submission_id.encode(), events)
        put(store, run)
    return store


def put(store: Store, run: Published) -> None:
    assert run.draws is not None
    stem = f"results/{run.submission.submission_id}/ratings"
    files = {
        f"{stem}.json": run.result.model_dump_json().encode(),
        **draws_files(stem, run.draws.resamples, run.draws.contributions),
    }
    store.public.commit(files, parent=store.public.head(), message="result")


def show(store: Store, card: Card, *new: Published) -> Snapshot:
    """What a process with this card publishes, and what is shown then."""
    files = Publisher(store, {"ratings": card}).snapshot_files(NOW, Ledger(store).statuses(), new)
    store.public.commit(files, parent=store.public.head(), message="boards")
    found = read_snapshot(store.public)
    assert found is not None
    return found


def in_edition(run: Published, card: Card) -> Published:
    changes = {"revision": card.revision, "protocol": card.protocol, "contract": CONTRACT}
    return Published(run.submission, run.result.model_copy(update=changes), run.draws)


@pytest.mark.parametrize("changes", [{"revision": "newer"}, {"protocol": 2}], ids=str)
def test_one_result_after_the_other_the_board_has_the_new_edition_alone(
    changes: dict[str, object],
) -> None:
    old_card = cards()["ratings"]
    runs = [in_edition(run, old_card) for run in mixed(6)]
    store = filled(runs)
    assert len(on_board(show(store, old_card))) == 6
    card = old_card.model_copy(update=changes)
    done: set[str] = set()
    for run in runs:
        fresh = in_edition(run, card)
        assert on_board(show(store, card)) == done
        done.add(run.submission.submission_id)
        shown = show(store, card, fresh)
        assert on_board(shown) == done
        put(store, fresh)
        kept = read_board(store.public, "ratings", Edition.of_card(old_card).tag)
        assert kept is not None
        assert len(kept.entries) == 6, "the earlier board stays whole"


def test_a_board_that_makes_way_is_kept_as_it_last_was() -> None:
    old_card = cards()["ratings"]
    runs = [in_edition(run, old_card) for run in mixed(6)]
    store = filled(runs)
    before = show(store, old_card)
    card = old_card.model_copy(update={"revision": "newer"})
    show(store, card)
    kept = read_board(store.public, "ratings", old_card.revision)
    assert kept is not None
    assert kept.board.cells == before.boards["ratings"].cells
    assert dict(kept.entries) == dict(before.entries)
    assert earlier_tags(store.public, "ratings", card) == (old_card.revision,)
    assert earlier_tags(store.public, "ratings", old_card) == ()


def test_a_fuller_board_that_is_kept_is_not_replaced_by_a_poorer_one() -> None:
    old_card = cards()["ratings"]
    runs = [in_edition(run, old_card) for run in mixed(6)]
    store = filled(runs)
    show(store, old_card)
    card = old_card.model_copy(update={"revision": "newer"})
    show(store, card)
    put(store, in_edition(runs[0], card))
    show(store, old_card)  # A process of an older installation.
    show(store, card)
    kept = read_board(store.public, "ratings", old_card.revision)
    assert kept is not None
    assert len(kept.entries) == 6


def test_benchmarks_that_do_not_change_keep_no_board() -> None:
    old_card = cards()["ratings"]
    store = filled([in_edition(run, old_card) for run in mixed(3)])
    show(store, old_card)
    show(store, old_card.model_copy(update={"title": "Another title"}))
    assert store.public.list("boards/ratings/") == ()
    assert not store.public.has(board_path("ratings", old_card.revision))


def test_old_results_below_at_are_on_no_board() -> None:
    old_card = cards()["ratings"]
    runs = [in_edition(run, old_card) for run in mixed(3)]
    store = filled(runs)
    hidden = runs[0].result.model_copy(update={"rows": runs[0].result.rows[:1]})
    assert isinstance(hidden, RunResult)
    path = f"results/{runs[0].submission.submission_id}/at/older/ratings.json"
    content = hidden.model_dump_json().encode()
    store.public.commit({path: content}, parent=store.public.head(), message="old")
    wanted = build_snapshot(runs, {"ratings": old_card}, NOW).boards["ratings"].cells
    assert set(show(store, old_card).boards["ratings"].cells) == set(wanted)
