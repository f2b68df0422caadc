"""The public ledger: what it shows, what it verifies, what it never shows."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from leaderboard.chronicle import last_hash, read_lines, segments
from leaderboard.ledger import Ledger
from leaderboard.pages.ledger_page import ChronicleReader, ledger
from leaderboard.pages.ledger_query import PER_PAGE, LedgerQuery, page_of
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.own_submissions import ADA, HELD, NEW, QUEUED, give
from tests.leaderboard.pages.synthetic import NASTY, NOW, fill


@pytest.fixture
def store() -> Store:
    return give(fill(memory_store()), ADA)


def shown(store: Store, **asked: str) -> str:
    return ledger(ChronicleReader(store.public), LedgerQuery.from_params(asked))


def test_lines_come_newest_first_and_all_of_them(store: Store) -> None:
    lines = read_lines(store.public)
    html = shown(store)
    assert html.count('id="line-') == min(len(lines), PER_PAGE)
    assert html.index(f'id="line-{lines[-1].n}"') < html.index(f'id="line-{lines[-2].n}"')


def test_a_filter_keeps_exactly_what_it_names(store: Store) -> None:
    lines = read_lines(store.public)
    reader = ChronicleReader(store.public)
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


def test_it_is_verified_once_for_each_version_of_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, reads = ChronicleReader(store.public), 0
    verified = ChronicleReader._verified

    def counted(self: ChronicleReader) -> object:
        nonlocal reads
        reads += 1
        return verified(self)

    monkeypatch.setattr(ChronicleReader, "_verified", counted)
    for _ in range(5):
        ledger(reader, LedgerQuery())
    assert reads == 1
    add_events(store, 1)
    before = len(reader.read().lines)
    assert (reads, before) == (2, len(read_lines(store.public)))


def test_the_download_is_the_chain_byte_for_byte(store: Store) -> None:
    content = ChronicleReader(store.public).download().encode()
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
