"""The public ledger: what it shows, what it verifies, what it never shows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from leaderboard.ledger.audit_log import FIRST, last_hash, read_lines, segments, sha256, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.interface import Repository, Store
from leaderboard.views.audit_log import PER_PAGE, VERIFY_EVERY, AuditLogReader, LedgerQuery, page_of
from leaderboard.web.pages.status_page import audit_log
from tests.kit.boards import NASTY, NOW, event, fill, keep
from tests.kit.html import Node, parse
from tests.kit.store import memory_store
from tests.leaderboard.web import own_submissions as sent

VERIFY = "leaderboard.views.audit_log.verify"


@pytest.fixture
def store() -> Store:
    return sent.give(fill(memory_store()), sent.ADA)


def reader_of(store: Store, clock: Callable[[], datetime] = lambda: NOW) -> AuditLogReader:
    """Waits for what it begins, however slow the machine."""
    return AuditLogReader(store.public, clock, patience_s=60)


def shown(of: Store | AuditLogReader, **asked: str) -> Node:
    reader = of if isinstance(of, AuditLogReader) else reader_of(of)
    html = audit_log(reader, LedgerQuery.from_params(asked))
    return parse(html)


def numbers(page: Node) -> list[int]:
    return [int(row["id"].removeprefix("line-")) for row in page.all("[id=line-]")]


def add_events(store: Store, count: int) -> None:
    """Have a submission fail and be queued again."""
    for k in range(count):
        state = (State.CLAIMED, State.QUEUED)[k % 2]
        Ledger(store).append(sent.QUEUED, [event(state, at=NOW + timedelta(seconds=k), by="w")])


def change(store: Store, change: Callable[[bytes], bytes]) -> bytes:
    """Change its first segment; as it was before."""
    path = segments(store.public)[0]
    before = store.public.read(path)
    keep(store, {path: change(before)})
    return before


def forged(content: bytes) -> bytes:
    return content.replace(b"worker-1", b"worker-2", 1)


# What is shown.


def test_lines_come_newest_first_and_a_filter_keeps_exactly_what_it_names(store: Store) -> None:
    lines = read_lines(store.public)
    newest = [line.n for line in reversed(lines)]
    assert numbers(shown(store)) == newest[:PER_PAGE]
    reader = reader_of(store)
    for query in (
        LedgerQuery(subject=sent.NEW), LedgerQuery(account=sent.ADA.key), LedgerQuery(action="failed"),
        LedgerQuery(subject=sent.NEW, action="published"),
    ):  # fmt: skip
        wanted = [line.n for line in reversed(lines) if query.matches(line)]
        assert wanted
        assert [line.n for line in page_of(reader.read().lines, query)["lines"]] == wanted
    assert numbers(shown(store, subject="nobody")) == []
    assert numbers(shown(memory_store())) == [] and "Nothing was done" in shown(memory_store())


@pytest.mark.slow
def test_pages_hold_every_line_once(store: Store) -> None:
    add_events(store, 2 * PER_PAGE)
    lines = read_lines(store.public)
    pages = [page_of(lines, LedgerQuery(page=n)) for n in range(1, 9)]
    found = [line.n for page in pages[: pages[0]["pages"]] for line in page["lines"]]
    assert found == [line.n for line in reversed(lines)]
    assert page_of(lines, LedgerQuery(page=10**8))["page"] == pages[0]["pages"]
    assert shown(store).links("", "[rel=next]") == ["./ledger?page=2"]


def test_a_filter_stays_in_links_of_pages_and_odd_pages_are_the_first(store: Store) -> None:
    query = LedgerQuery.from_params({"subject": "a b&c", "action": "failed", "page": "3"})
    assert query.to_link() == "./ledger?subject=a+b%26c&action=failed&page=3"
    for page in ("", "0", "-3", "x", "1e9", "٣", "9" * 40):
        assert numbers(shown(store, page=page))


def test_what_strangers_wrote_is_text_and_private_ones_are_an_opaque_id(store: Store) -> None:
    page = shown(store, subject=NASTY, account=NASTY, action=NASTY)
    assert "on pair 12" in shown(store) and page
    private = shown(store, subject=sent.HELD)
    assert sent.HELD in private and "its author" in private and "secret-metric" not in private
    assert sent.ADA.key not in private.one("tbody")


def test_the_download_is_the_chain_byte_for_byte(store: Store) -> None:
    content = reader_of(store).content()
    assert content == b"".join(store.public.read(path) for path in segments(store.public))
    lines = [json.loads(line)["n"] for line in content.splitlines()]
    assert lines == [line.n for line in read_lines(store.public)]


# What is verified.


def test_the_chain_is_verified_and_its_hash_is_shown(store: Store) -> None:
    page = shown(store)
    assert f"up to line {len(read_lines(store.public))}" in page
    assert last_hash(store.public) in page


@pytest.mark.parametrize(
    "broken", [forged, lambda content: content + b'{"n": "<img src=x>"\n'], ids=["forged", "torn"]
)
def test_a_line_that_was_changed_or_cannot_be_read_is_said(
    store: Store, broken: Callable[[bytes], bytes]
) -> None:
    change(store, broken)
    page = shown(store)
    assert "Verified" not in page and ("not hold" in page or "cannot be read" in page)


def test_new_lines_are_shown_at_once_and_all_verified_again_every_few_minutes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[datetime] = []

    def counted(public: Repository) -> tuple[str, ...]:
        times.append(now)
        return verify(public)

    monkeypatch.setattr(VERIFY, counted)
    reader, now = reader_of(store, lambda: now), NOW
    verified = len(reader.read().lines)
    add_events(store, 2)
    page = shown(reader)
    assert numbers(page)[0] == verified + 2
    assert f"up to line {verified}" in page and "2 newer" in page
    for seconds in (1, 60, 119, 121, 130):
        now = NOW + timedelta(seconds=seconds)
        add_events(store, 2)
        known = reader.read()
        assert len(known.lines) == len(read_lines(store.public))
    assert times == [NOW, NOW + timedelta(seconds=121)]
    assert known.verified is not None and known.verified.at == times[-1]


def test_an_old_line_that_is_changed_is_found_at_once_and_not_forgotten(store: Store) -> None:
    reader = reader_of(store)
    assert reader.read().problems == ()
    right = change(store, forged)
    found = " ".join(reader.read().problems)
    assert "not follow" in found and "or changed" in found
    change(store, lambda _: right)
    assert "or changed" in " ".join(reader.read().problems)
    assert reader_of(store).read().problems == ()


def test_a_chain_that_was_computed_anew_is_known_from_what_was_read_before(store: Store) -> None:
    """Whoever writes to the store can forge every hash in it, and not what a reader remembers."""
    reader = reader_of(store)
    reader.read()
    content, before = b"", FIRST
    for line in read_lines(store.public)[:-1]:
        content += line.model_copy(update={"before": before}).model_dump_json().encode() + b"\n"
        before = sha256(content.splitlines()[-1])
    change(store, lambda _: content)
    assert "or changed" in " ".join(reader.read().problems)


def test_a_new_line_that_does_not_follow_is_found_before_the_next_verification(
    store: Store,
) -> None:
    reader = reader_of(store)
    reader.read()
    loose = read_lines(store.public)[-1].model_dump_json().encode() + b"\n"
    change(store, lambda content: content + loose)
    known = reader.read()
    assert known.verified is not None and known.verified.problems == ()
    assert "not follow" in " ".join(known.problems)


def test_records_that_change_without_a_line_are_found_with_the_next_verification(
    store: Store,
) -> None:
    now = NOW
    reader = reader_of(store, lambda: now)
    reader.read()
    path = f"submissions/{sent.QUEUED}/events.jsonl"
    keep(store, {path: store.public.read(path).replace(sent.ADA.key.encode(), b"hub:x")})
    assert reader.read().problems == ()
    now = NOW + VERIFY_EVERY
    assert any(sent.QUEUED in problem for problem in reader.read().problems)


def test_no_request_waits_for_a_long_verification(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def slow(public: Repository) -> tuple[str, ...]:
        goes_on.wait(60)
        return verify(public)

    monkeypatch.setattr(VERIFY, slow)
    page = shown(AuditLogReader(store.public, lambda: NOW, patience_s=0.01))
    assert "being verified" in page and 1 in numbers(page)
    goes_on.set()
    assert "up to line" in shown(store)
