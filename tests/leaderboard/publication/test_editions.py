"""Editions: what two results must share to stand on one board, and what moved between two."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import product

import pytest

from benchmarks.schema import Card, Selector
from leaderboard.ledger.editions import CONTRACT, Edition, is_current, scores_stand
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.changes import Movement, Ranking, movement
from leaderboard.publication.earlier_boards import board_path, earlier_tags, read_board
from leaderboard.publication.entries import Entry
from leaderboard.publication.publisher import Publisher, build_snapshot
from leaderboard.publication.results import Published
from leaderboard.publication.snapshot import Snapshot, parse_snapshot, read_snapshot, snapshot_bytes
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import draws_files
from leaderboard.records import Cost, Kind, RunResult
from leaderboard.store.interface import Store, check_path
from tests.kit.boards import NOW, cards, runs_of
from tests.kit.records import PUBLISHED, T0, an_event
from tests.kit.store import memory_store
from tests.kit.toy import Toy

CARD = Toy.card


def result(
    revision: str = "1", protocol: int = 1, contract: int | None = CONTRACT, *, ran: bool = True
) -> RunResult:
    cost = Cost(pairs=1, images=1, seconds=1.0, pairs_per_s=1.0) if ran else None
    return RunResult(
        submission_id="grey-0123456789", benchmark="toy", revision=revision, protocol=protocol,
        contract=contract, rows=(), resampling_seed=1, n_resamples=1, isolation=(), versions={},
        cost=cost, judged_at=T0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("of", "current"),
    [
        (result(), True),
        (result("2"), False),
        (result(protocol=2), False),
        (result(contract=CONTRACT + 1), False),
        (result(contract=None, ran=False), True),  # scores as submitted
    ],
)
def test_a_result_is_current_only_in_its_own_edition(of: RunResult, *, current: bool) -> None:
    assert is_current(of, CARD) is current


def test_scores_as_submitted_fit_any_contract_and_older_results_are_of_the_first() -> None:
    assert Edition(revision="1", contract=None).fits(Edition(revision="1", contract=99))
    assert Edition.of_result(result(contract=None)) == Edition.of_result(result(contract=2))


def test_scores_stand_for_the_same_revision_and_for_those_a_card_names() -> None:
    later = CARD.model_copy(update={"revision": "2", "same_questions_as": ("1",)})
    assert scores_stand(Edition(revision="1", protocol=7), CARD)
    assert scores_stand(Edition(revision="1"), later)
    assert not scores_stand(Edition(revision="0"), later)
    assert not scores_stand(Edition(revision="1", contract=CONTRACT - 1), CARD)


ORDINARY = ("r1", "2024-12-01", "8e37050-7330119", "arxiv_2412.18150")
ODD = ("../../etc", "", "a/b", "ü", "r1~p2", "x" * 300, ".hidden", "a b", "\u202ex")


@pytest.mark.parametrize("revision", [*ORDINARY, *ODD])
def test_the_tag_is_one_plain_part_of_a_path_and_an_ordinary_revision_itself(revision: str) -> None:
    tag = Edition(revision=revision).tag
    assert (tag == revision) is (revision in ORDINARY)
    assert tag.isascii()
    assert "/" not in tag
    assert check_path(f"boards/toy/{tag}.parquet")


def test_editions_that_differ_have_tags_that_differ() -> None:
    every = list(product(("1", "1~p2", "1 ", "2"), (1, 2), (2, 3)))
    assert len({Edition(revision=r, protocol=p, contract=c).tag for r, p, c in every}) == len(every)


# Boards never mix editions, however the results of a store are mixed

EDITIONS = [
    {"revision": revision, "protocol": protocol, "contract": contract}
    for revision, protocol, contract in product(
        ("2024-12-01", "older"), (1, 2), (CONTRACT, CONTRACT - 1)
    )
]
RATINGS = cards()["ratings"]
NEWER = RATINGS.model_copy(update={"revision": "newer"})


def with_result(run: Published, **change: object) -> Published:
    return Published(run.submission, run.result.model_copy(update=change), run.draws)


def runs(count: int) -> list[Published]:
    """One run on `ratings` for each metric."""
    found = [run for run in runs_of(count) if run.result.benchmark == "ratings"]
    only = {"benchmarks": ("ratings",)}
    own = [Published(r.submission.model_copy(update=only), r.result, r.draws) for r in found]
    return [in_edition(run, RATINGS) for run in own]


def in_edition(run: Published, card: Card) -> Published:
    return with_result(run, revision=card.revision, protocol=card.protocol, contract=CONTRACT)


def on_board(snapshot: Snapshot) -> set[str]:
    return {cell.entry_id.partition("/")[0] for cell in snapshot.boards["ratings"].cells}


@pytest.mark.parametrize("changes", EDITIONS[::2], ids=str)
def test_a_snapshot_of_mixed_results_shows_one_edition_alone(changes: dict[str, object]) -> None:
    mixed = [with_result(r, **EDITIONS[n % len(EDITIONS)]) for n, r in enumerate(runs(24))]
    kept = {name: changes[name] for name in ("revision", "protocol")}
    card = RATINGS.model_copy(update=kept)
    edition = Edition.of_card(card)
    fitting = [run for run in mixed if Edition.of_result(run.result).fits(edition)]
    built = build_snapshot(mixed, {"ratings": card}, NOW)
    assert on_board(built) == {run.submission.submission_id for run in fitting} != set()
    assert len(fitting) < len(mixed)
    assert on_board(parse_snapshot(snapshot_bytes(built))) == on_board(built)
    assert {e.submission_id for e in built.entries.values()} == on_board(built)


def filled(own: list[Published]) -> Store:
    store = memory_store()
    events = [an_event(state, at=T0) for state in PUBLISHED]
    for run in own:
        Ledger(store).receive(run.submission, run.submission.submission_id.encode(), events)
        put(store, run)
    return store


def put(store: Store, run: Published) -> None:
    assert run.draws is not None
    stem = f"results/{run.submission.submission_id}/ratings"
    draws = draws_files(stem, run.draws.resamples, run.draws.contributions)
    files = {f"{stem}.json": run.result.model_dump_json().encode(), **draws}
    store.public.commit(files, parent=store.public.head(), message="result")


def show(store: Store, card: Card, *new: Published) -> Snapshot:
    """What a process with this card publishes, and what is shown then."""
    files = Publisher(store, {"ratings": card}).snapshot_files(NOW, Ledger(store).statuses(), new)
    store.public.commit(files, parent=store.public.head(), message="boards")
    found = read_snapshot(store.public)
    assert found is not None
    return found


@pytest.mark.parametrize("changes", [{"revision": "newer"}, {"protocol": 2}], ids=str)
def test_the_board_has_the_new_edition_alone_at_each_step(changes: dict[str, object]) -> None:
    own = runs(6)
    store, card = filled(own), RATINGS.model_copy(update=changes)
    assert len(on_board(show(store, RATINGS))) == 6
    done: set[str] = set()
    for run in own:
        fresh = in_edition(run, card)
        assert on_board(show(store, card)) == done
        done.add(run.submission.submission_id)
        assert on_board(show(store, card, fresh)) == done
        put(store, fresh)
        kept = read_board(store.public, "ratings", Edition.of_card(RATINGS).tag)
        assert kept is not None
        assert len(kept.entries) == 6, "the earlier board stays whole"


def test_a_board_that_makes_way_is_kept_as_it_last_was_and_not_replaced_by_a_poorer_one() -> None:
    own = runs(6)
    store = filled(own)
    before = show(store, RATINGS)
    for step in range(2):
        show(store, NEWER)
        kept = read_board(store.public, "ratings", RATINGS.revision)
        assert kept is not None
        assert kept.board.cells == before.boards["ratings"].cells
        assert dict(kept.entries) == dict(before.entries)
        if not step:
            put(store, in_edition(own[0], NEWER))
            show(store, RATINGS)  # A process of an older installation.
    assert earlier_tags(store.public, "ratings", NEWER) == (RATINGS.revision,)
    assert earlier_tags(store.public, "ratings", RATINGS) == ()


def test_benchmarks_that_do_not_change_keep_no_board() -> None:
    store = filled(runs(3))
    show(store, RATINGS)
    show(store, RATINGS.model_copy(update={"title": "Another title"}))
    assert store.public.list("boards/ratings/") == ()
    assert not store.public.has(board_path("ratings", RATINGS.revision))


def test_old_results_below_at_are_on_no_board() -> None:
    own = runs(3)
    store = filled(own)
    hidden = own[0].result.model_copy(update={"rows": own[0].result.rows[:1]})
    path = f"results/{own[0].submission.submission_id}/at/older/ratings.json"
    content = hidden.model_dump_json().encode()
    store.public.commit({path: content}, parent=store.public.head(), message="old")
    wanted = build_snapshot(own, {"ratings": RATINGS}, NOW).boards["ratings"].cells
    assert set(show(store, RATINGS).boards["ratings"].cells) == set(wanted)


# What moved between two boards: values, ranks, who came and who left

MEAN = Selector(measure="mean")
Row = tuple[Entry, float | None, tuple[int, int, int] | None]


def entry(name: str, submission: str = "", account: str = "", days: int = 0) -> Entry:
    own = submission or f"{name}-0123456789"
    return Entry(
        entry_id=f"{own}/{name}", submission_id=own, metric=name, kind=Kind.METRIC, submitter="",
        account=account, received_at=T0 + timedelta(days=days), published_at=T0,
    )  # fmt: skip


def board(*rows: Row) -> Ranking:
    cells = []
    for of, value, ranks in rows:
        low, rank, high = ranks or (None, None, None)
        ends = (None, None) if value is None else (value - 0.1, value + 0.1)
        cells.append(Cell(
            entry_id=of.entry_id, measure="mean", variant=None, split=None, facet=None, skill=None,
            value=value, ci_low=ends[0], ci_high=ends[1], n_items=10, n_clusters=10, n_missing=0,
            note="", rank=rank, rank_low=low, rank_high=high,
        ))  # fmt: skip
    return Ranking(tuple(cells), {of.entry_id: of for of, _, _ in rows})


def of_values(**values: float | None) -> Ranking:
    return board(*((BY_NAME[name], value, None) for name, value in values.items()))


A, B, C = entry("a"), entry("b"), entry("c")
BY_NAME = {"a": A, "b": B, "c": C}


def found(*, higher: bool = True) -> Movement:
    then = board((A, 0.9, (1, 1, 1)), (B, 0.5, (2, 2, 3)), (C, 0.4, (2, 3, 3)))
    now = board((B, 0.8, (1, 1, 1)), (A, 0.6, (2, 2, 3)), (C, 0.5, (2, 3, 3)))
    return movement(then, now, MEAN, higher_is_better=higher)


def test_values_ranks_and_their_overlap_stand_side_by_side() -> None:
    b, a, c = found().moved
    assert [b.then.value, b.now.value, b.difference] == pytest.approx([0.5, 0.8, 0.3])
    assert (b.better, b.intervals_overlap, b.ranks_overlap) == (True, False, False)
    assert (a.better, a.ranks_overlap) == (False, False)
    assert (c.better, c.intervals_overlap, c.ranks_overlap) == (True, True, True)
    b, a, _ = found(higher=False).moved
    assert (b.better, a.better) == (False, True)


@pytest.mark.parametrize(
    ("then", "now", "kendall"),
    [
        ({"a": 0.9, "b": 0.5}, {"a": 0.9, "b": 0.5}, 1.0),
        ({"a": 0.9, "b": 0.5}, {"a": 0.1, "b": 0.5}, -1.0),
        ({"a": 0.9, "b": None}, {"a": 0.9, "b": None}, None),
        ({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}, None),
    ],
    ids=["same", "turned", "fewer than two", "all equal"],
)
def test_kendall_counts_the_pairs_that_changed_their_order(
    then: dict[str, float | None], now: dict[str, float | None], kendall: float | None
) -> None:
    tau = movement(of_values(**then), of_values(**now), MEAN).kendall
    assert tau == (None if kendall is None else pytest.approx(kendall))


def test_who_came_and_who_left_are_named_and_what_still_stands_waits() -> None:
    moved = movement(of_values(a=0.9, b=0.5), of_values(b=0.6, c=1.0), MEAN)
    assert [one.after.metric for one in moved.moved] == ["b"]
    assert (moved.came, moved.left) == ((C,), (A,))
    waits = movement(of_values(a=0.9, b=0.5), board(), MEAN, standing={A.submission_id})
    assert (waits.waiting, waits.left) == ((A,), (B,))


def test_a_newer_version_by_the_same_account_is_the_same_metric_and_anothers_is_not() -> None:
    old = entry("a", "old-0123456789", "hub:ada")
    new, others = (entry("a", "new-0123456789", f"hub:{who}", 3) for who in ("ada", "bob"))
    (one,) = movement(board((old, 0.5, None)), board((new, 0.7, None)), MEAN).moved
    assert (one.before, one.after) == (old, new)
    moved = movement(board((old, 0.5, None)), board((others, 0.7, None)), MEAN)
    assert (moved.moved, moved.came, moved.left) == ((), (others,), (old,))


def test_what_is_undefined_has_no_difference_and_no_overlap() -> None:
    (one,) = movement(of_values(a=None), board((A, 0.5, (1, 1, 2))), MEAN).moved
    assert (one.difference, one.better, one.intervals_overlap, one.ranks_overlap) == (None,) * 4


def test_it_is_said_in_words_and_in_json() -> None:
    words = found().summary("r1", "r2")
    assert all(word in words for word in ("r1", "r2", "3 metrics", "0.33"))
    record = json.loads(json.dumps(found().to_json()))
    assert record["kendall_tau_b"] == pytest.approx(1 / 3), "one of three pairs"
    first = record["moved"][0]
    assert (first["rank_ranges_overlap"], first["before"]["rank_high"]) == (False, 3)
