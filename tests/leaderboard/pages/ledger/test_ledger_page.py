"""The public ledger: what it shows, what it verifies, what it never shows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from leaderboard.ledger.chronicle import FIRST, last_hash, read_lines, segments, sha256, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.ledger.ledger_page import ledger
from leaderboard.pages.ledger.query import PER_PAGE, LedgerQuery, page_of
from leaderboard.pages.ledger.reading import VERIFY_EVERY, ChronicleReader
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.interface import Repository, Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.mine.own_submissions import ADA, HELD, NEW, QUEUED, give
from tests.leaderboard.pages.synthetic import NASTY, NOW, fill


@pytest.fixture
def store() -> Store:
    return give(fill(memory_store()), ADA)


def reader_of(store: Store, clock: Callable[[], datetime] = lambda: NOW) -> ChronicleReader:
    """Waits for what it begins, however slow the machine."""
    return ChronicleReader(store.public, clock, patience_s=60)


def shown(store: Store, **asked: str) -> str:
    return ledger(reader_of(store), LedgerQuery.from_params(asked))


def test_lines_come_newest_first_and_all_of_them(store: Store) -> None:
    lines = read_lines(store.public)
    html = shown(store)
    assert html.count('id="line-') == min(len(lines), PER_PAGE)
    assert html.index(f'id="line-{lines[-1].n}"') < html.index(f'id="line-{lines[-2].n}"')


def test_a_filter_keeps_exactly_what_it_names(store: Store) -> None:
    lines = read_lines(store.public)
    reader = reader_of(store)
    for query in (
        LedgerQuery(subject=NEW),
        LedgerQuery(account=ADA.key),
        LedgerQuery(action="failed"),
        LedgerQuery(subject=NEW, action="published"),
    ):
        wanted = [line.n for line in reversed(lines) if query.matches(line)]
        assert wanted
        assert [line.n for line in page_of(reader.read().lines, query).lines] == wanted
    assert "No line is about that." in shown(store, subject="nobody")


@pytest.mark.slow
def test_pages_hold_every_line_once(store: Store) -> None:
    add_events(store, 2 * PER_PAGE)
    lines = read_lines(store.public)
    pages = [page_of(lines, LedgerQuery(page=n)) for n in range(1, 9)]
    found = [line.n for page in pages[: pages[0].pages] for line in page.lines]
    assert found == [line.n for line in reversed(lines)]
    assert page_of(lines, LedgerQuery(page=10**8)).page == pages[0].pages
    assert 'rel="next" href="./ledger?page=2"' in shown(store)


@pytest.mark.parametrize("page", ["", "0", "-3", "x", "1e9", "٣", "9" * 40])
def test_an_address_that_makes_no_sense_shows_a_page_all_the_same(store: Store, page: str) -> None:
    assert 'id="line-' in shown(store, page=page)


def test_a_filter_is_kept_in_the_links_of_its_pages() -> None:
    query = LedgerQuery.from_params({"subject": "a b&c", "action": "failed", "page": "3"})
    assert query.to_link() == "./ledger?subject=a+b%26c&action=failed&page=3"


def test_the_chain_is_verified_and_its_hash_is_shown(store: Store) -> None:
    html = shown(store)
    assert f"Verified up to line {len(read_lines(store.public))}" in html
    assert last_hash(store.public) in html


def test_a_line_that_was_changed_is_found_and_said(store: Store) -> None:
    path = segments(store.public)[0]
    forged = store.public.read(path).replace(b"worker-1", b"worker-2", 1)
    store.public.commit({path: forged}, parent=store.public.head(), message="forge")
    html = shown(store)
    assert "The ledger does not hold" in html
    assert "Verified" not in html


def test_a_line_that_cannot_be_read_breaks_no_page(store: Store) -> None:
    path = segments(store.public)[0]
    torn = store.public.read(path) + b'{"n": "<img src=x>"\n'
    store.public.commit({path: torn}, parent=store.public.head(), message="tear")
    html = shown(store)
    assert "cannot be read" in html
    assert "<img" not in html


def test_new_lines_are_shown_at_once_and_said_not_to_be_verified_yet(store: Store) -> None:
    reader = reader_of(store)
    verified = len(reader.read().lines)
    add_events(store, 2)
    html = ledger(reader, LedgerQuery())
    assert f'id="line-{verified + 2}"' in html
    assert f"Verified up to line {verified}</b>" in html
    assert "2 newer lines follow from it and are held against the records with the next" in html


def test_all_of_it_is_verified_again_every_few_minutes_and_no_oftener(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[datetime] = []

    def counted(public: Repository) -> tuple[str, ...]:
        times.append(now)
        return verify(public)

    monkeypatch.setattr("leaderboard.pages.ledger.reading.verify", counted)
    reader, now = reader_of(store, lambda: now), NOW
    for seconds in (0, 1, 60, 119, 121, 130):
        now = NOW + timedelta(seconds=seconds)
        add_events(store, 2)
        known = reader.read()
        assert len(known.lines) == len(read_lines(store.public))
    assert times == [NOW, NOW + timedelta(seconds=121)]
    assert known.verified is not None
    assert known.verified.at == times[-1]


def test_an_old_line_that_is_changed_is_found_at_once_and_not_forgotten(store: Store) -> None:
    reader = reader_of(store)
    assert reader.read().problems == ()
    path = segments(store.public)[0]
    right = store.public.read(path)
    store.public.commit(
        {path: right.replace(b"worker-1", b"worker-2", 1)},
        parent=store.public.head(), message="forge",
    )  # fmt: skip
    found = reader.read().problems
    assert any("does not follow" in problem for problem in found)
    assert any("gone or changed" in problem for problem in found)
    store.public.commit({path: right}, parent=store.public.head(), message="put it back")
    assert any("gone or changed" in problem for problem in reader.read().problems)
    assert reader_of(store).read().problems == ()


def test_a_chain_that_was_computed_anew_is_known_from_what_was_read_before(store: Store) -> None:
    """Whoever writes to the store can forge every hash in it, and not what a reader remembers."""
    reader = reader_of(store)
    reader.read()
    path, content, before = segments(store.public)[0], b"", FIRST
    for line in read_lines(store.public)[:-1]:
        content += line.model_copy(update={"before": before}).model_dump_json().encode() + b"\n"
        before = sha256(content.splitlines()[-1])
    store.public.commit({path: content}, parent=store.public.head(), message="forge")
    assert any("gone or changed" in problem for problem in reader.read().problems)


def test_a_new_line_that_does_not_follow_is_found_before_the_next_verification(
    store: Store,
) -> None:
    reader = reader_of(store)
    reader.read()
    path = segments(store.public)[0]
    loose = read_lines(store.public)[-1].model_dump_json().encode() + b"\n"
    store.public.commit(
        {path: store.public.read(path) + loose}, parent=store.public.head(), message="add"
    )
    known = reader.read()
    assert known.verified is not None
    assert known.verified.problems == ()
    assert "does not follow from the line before it" in " ".join(known.problems)


def test_records_that_change_without_a_line_are_found_with_the_next_verification(
    store: Store,
) -> None:
    now = NOW
    reader = reader_of(store, lambda: now)
    reader.read()
    path = f"submissions/{QUEUED}/events.jsonl"
    events = store.public.read(path).replace(b"local:", b"hub:").replace(ADA.key.encode(), b"hub:x")
    store.public.commit({path: events}, parent=store.public.head(), message="forge")
    assert reader.read().problems == ()
    now = NOW + VERIFY_EVERY
    assert any(QUEUED in problem for problem in reader.read().problems)


def test_no_request_waits_for_a_long_verification(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def slow(public: Repository) -> tuple[str, ...]:
        goes_on.wait(60)
        return verify(public)

    monkeypatch.setattr("leaderboard.pages.ledger.reading.verify", slow)
    reader = ChronicleReader(store.public, lambda: NOW, patience_s=0.01)
    html = ledger(reader, LedgerQuery())
    assert "It is being verified now" in html
    assert 'id="line-1"' in html
    goes_on.set()
    reader = ChronicleReader(store.public, lambda: NOW, patience_s=60)
    assert "Verified up to line" in ledger(reader, LedgerQuery())


def test_the_download_is_the_chain_byte_for_byte(store: Store) -> None:
    content = reader_of(store).download().encode()
    assert content == b"".join(store.public.read(path) for path in segments(store.public))
    assert [json.loads(line)["n"] for line in content.splitlines()] == [
        line.n for line in read_lines(store.public)
    ]


def test_what_strangers_wrote_is_text(store: Store) -> None:
    html = shown(store, subject=NASTY) + shown(store) + shown(store, account=NASTY, action=NASTY)
    assert "The scorer stopped on pair 12" in html
    for hostile in ("<img", "\x1b", "\u202e", "{{7*7}}"):
        assert hostile not in html


def test_of_a_private_submission_there_is_an_opaque_id_and_no_more(store: Store) -> None:
    html = shown(store, subject=HELD)
    assert HELD in html
    assert "its author" in html
    assert "secret-metric" not in html
    assert ADA.key not in html.partition("<tbody")[2]


def test_a_store_in_which_nothing_was_done_says_so() -> None:
    html = shown(memory_store())
    assert "Nothing was done here yet" in html
    assert "No line yet" in html


def add_events(store: Store, count: int) -> None:
    """Have a submission fail and be queued again."""
    every = (State.CLAIMED, State.QUEUED)
    for number in range(count):
        event = Event(at=NOW + timedelta(seconds=number), state=every[number % 2], by="w")
        Ledger(store).append(QUEUED, [event])
