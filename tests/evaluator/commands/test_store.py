"""`store`: a store on the Hub made, shown, squashed, described; any store copied and backed up."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from evaluator.commands.common import DEFAULT_STORE, store_words
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.index import index_base
from leaderboard.publication.reader import view_of
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.publication.static_page import static_page
from leaderboard.ranking.orders import Orders
from leaderboard.records import Event, Kind, Submission
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from leaderboard.store.opening import StoreName
from tests.evaluator.commands.submitting import SCORES, Ended, Run, submit_words
from tests.kit.hub.accounts import Account
from tests.kit.hub.server import HubServer
from tests.kit.old_hub_store import add_old_store
from tests.leaderboard.web import index_fixture

NAME = "hub:lab/assay"
REPOSITORIES = {f"lab/assay-{part}": part == "submissions"
                for part in ("requests", "results", "submissions")}  # fmt: skip
"""Of the store, and whether they are private."""
FILES = {"results/a/b.json": b"{}", "queue.json": b"q"}


@pytest.fixture
def store(run: Run, hub: HubServer) -> Run:
    return lambda *words: run("store", *words)


@pytest.fixture
def opened(store: Run) -> Store:
    """The store on the Hub."""
    assert store("create", NAME).code == 0
    return StoreName.parse(NAME).open()


@pytest.fixture
def source(tmp_path: Path) -> Store:
    """A store in the folder `source`."""
    made = folder_store(tmp_path / "source")
    made.public.commit(FILES, parent=made.public.head(), message="m")
    made.private.commit({"uploads/a.zip": b"zip"}, parent=made.private.head(), message="m")
    return made


def refused(ended: Ended, *said: str, code: int = 1) -> None:
    assert ended.code == code, ended.err
    assert [one for one in said if one not in ended.err] == []


def put(store: Store, **files: bytes) -> None:
    changes = {f"{name}.json": content for name, content in files.items()}
    store.public.commit(changes, parent=store.public.head(), message="m")


def kept(folder: Path) -> dict[str, bytes]:
    store = folder_store(folder)
    parts = store.public, store.private
    return {path: part.read(path) for part in parts for path in part.list()}


def test_creating_a_store_is_told_and_safe_to_run_again(hub: HubServer, store: Run) -> None:
    made = store("create", NAME)
    assert made.code == 0 and made.out.count(": created") == 3
    assert {name: each.private for name, each in hub.repositories.items()} == REPOSITORIES
    heads = {name: each.branches["main"] for name, each in hub.repositories.items()}
    again = store("create", NAME)
    assert again.code == 0 and again.out.count("already") == 6
    assert heads == {name: each.branches["main"] for name, each in hub.repositories.items()}
    assert store("create", "hub:lab/members", "--private").code == 0
    members = [each for name, each in hub.repositories.items() if "members" in name]
    assert [each.private for each in members] == [True] * 3


def test_a_backup_is_restored_to_a_store_that_is_made_for_it(
    hub: HubServer, store: Run, source: Store, tmp_path: Path
) -> None:
    assert store("backup", tmp_path / "source", tmp_path / "a.tar").code == 0
    done = store("restore", tmp_path / "a.tar", NAME)
    assert (done.code, done.out.count(": created")) == (0, 3)
    assert {name: each.private for name, each in hub.repositories.items()} == REPOSITORIES
    again = StoreName.parse(NAME).open()
    assert {path: again.public.read(path) for path in again.public.list()} == FILES
    assert store("restore", tmp_path / "a.tar", "hub:lab/members", "--private").code == 0
    assert hub.repositories["lab/members-results"].private


def test_status_says_when_what_is_to_be_written_can_be(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(*submit_words(tmp_path), "--no-wait").code == 0
    assert "waits for commits" not in run("status").out
    monkeypatch.setattr(Store, "commit_wait_min", lambda _: 7)
    assert "waits for commits, the next in 7 min" in run("status").out


def test_a_worker_that_starts_puts_its_benchmarks_on_the_card(
    hub: HubServer, run: Run, opened: Store
) -> None:
    results = hub.repositories["lab/assay-results"]
    card = results.files(results.branches["main"])["README.md"]
    assert b"| `toy` |" not in card.content
    assert run("worker", "--store", NAME, "--once").code == 0
    assert b"| `toy` |" in results.files(results.branches["main"])["README.md"].content


@pytest.mark.slow
def test_a_store_of_the_release_before_is_migrated(hub: HubServer, store: Run) -> None:
    old = add_old_store(hub)
    assert store("show", NAME).code == 0
    refused(store("squash", NAME), "store migrate", code=3)
    assert store("backup", NAME, "before.tar").code == 0
    done = store("migrate", NAME)
    assert (done.code, "may be deleted" in done.out) == (0, True)
    results = hub.repositories["lab/assay-results"]
    assert b"config_name: scores" in results.files(results.branches["main"])["README.md"].content
    assert set(StoreName.parse(NAME).open().public.list()) == set(old)
    again = store("migrate", NAME)
    assert (again.code, "already" in again.out) == (0, True)


def test_a_creation_that_was_stopped_is_finished(hub: HubServer, store: Run) -> None:
    hub.spoil("/commit/", method="POST", status=403)
    refused(store("create", NAME), "HF_TOKEN")
    assert store("create", NAME).code == 0
    put(StoreName.parse(NAME).open(), a=b"1")


def test_a_store_is_shown_as_it_is_read(hub: HubServer, store: Run, opened: Store) -> None:
    opened.public.commit(FILES, parent=opened.public.head(), message="m")
    shown = store("show", NAME, "--json").json
    assert shown["version"] == hub.repositories["lab/assay-requests"].branches["main"]
    assert shown["frozen_until"] is None
    repositories = {each["name"]: each for each in shown["repositories"]}
    assert {name: each["private"] for name, each in repositories.items()} == REPOSITORIES
    assert [each["commits"] for each in repositories.values()] == [4, 4, 3]
    assert all(each["head"] == each["pinned"] for each in repositories.values())
    assert all(name in store("show", NAME).out for name in REPOSITORIES)


def test_the_cards_are_written_once_and_not_in_the_way(
    hub: HubServer, store: Run, opened: Store
) -> None:
    opened.public.commit(FILES, parent=opened.public.head(), message="m")
    for each in hub.repositories.values():
        each.change({"README.md": None})
    written = store("cards", NAME)
    assert written.code == 0 and written.out.count("written") == 3
    for each in hub.repositories.values():
        card = each.files(each.branches["main"])["README.md"].content
        assert card.startswith(b"---\n")
    assert store("cards", NAME).out.count("already") == 3
    opened = StoreName.parse(NAME).open()
    assert set(opened.public.list()) == set(FILES)
    opened.public.commit({"results/a/b.json": b"2"}, parent=opened.public.head(), message="m")
    results = hub.repositories["lab/assay-results"]
    assert "README.md" in results.files(results.branches["main"])


def in_work(store: Store) -> None:
    """A worker holds a submission for five minutes."""
    received = datetime(2026, 1, 1, tzinfo=UTC)
    submission = Submission(
        submission_id="colour-reader-1", kind=Kind.METRIC, name="colour", metrics=("colour",),
        benchmarks=("demo_croc",), submitter="ada", content_sha256="0" * 64,
        archive="uploads/0.zip", received_at=received,
    )  # fmt: skip
    queued = [Event(at=received, state=s, by="w1") for s in (State.RECEIVED, State.QUEUED)]
    until = store.clock() + timedelta(minutes=5)
    claimed = Event(at=received, state=State.CLAIMED, by="w1", lease_until=until)
    Ledger(store).receive(submission, b"zip", queued)
    Ledger(store).append(submission.submission_id, [claimed])


@pytest.mark.parametrize("way", ["force", "wait"])
def test_a_store_is_not_squashed_while_a_worker_holds_a_job_unless_forced(
    hub: HubServer, store: Run, opened: Store, way: str
) -> None:
    in_work(opened)
    refused(store("squash", NAME), "colour-reader-1")
    assert hub.asked("super-squash", "POST") == []
    if way == "wait":  # until the lease has run out by the Hub's clock
        hub.clock.advance(301)
    assert store("squash", NAME, *(["--force"] if way == "force" else [])).code == 0
    assert len(hub.asked("super-squash", "POST")) == 3
    assert [s.state for s in Ledger(opened).statuses()] == [State.CLAIMED]


# Copies and backups -------------------------------------------------------------------------------


def test_a_store_is_copied_to_the_hub_and_back_also_by_its_backup(
    store: Run, opened: Store, source: Store, tmp_path: Path
) -> None:
    everything = {**FILES, "uploads/a.zip": b"zip"}
    assert store("copy", "source", NAME).code == 0
    copied = store("copy", NAME, "back")
    assert copied.code == 0 and "2 files" in copied.out
    assert kept(tmp_path / "back") == everything
    assert store("backup", "source", "b.tar").code == 0
    checked = store("restore", "b.tar")
    assert checked.code == 0 and "whole; 3 files" in checked.out
    assert store("restore", "b.tar", "put-back").code == 0
    assert kept(tmp_path / "put-back") == everything
    for words in (("create", "hub:lab/again"), ("restore", "b.tar", "hub:lab/again")):
        assert store(*words).code == 0
    assert store("copy", "hub:lab/again", "from-the-hub").code == 0
    assert kept(tmp_path / "from-the-hub") == everything
    refused(store("backup", "source", "b.tar"), "[file_exists]")
    damaged = (tmp_path / "b.tar").read_bytes().replace(b"zip", b"ZIP", 1)
    (tmp_path / "damaged.tar").write_bytes(damaged)
    refused(store("restore", "damaged.tar", "other"), "[bad_backup]")


@pytest.mark.parametrize("place", ["source/b.tar", "source/public/b.tar", "link/private/b.tar"])
def test_a_backup_is_no_part_of_its_store(
    store: Run, source: Store, tmp_path: Path, place: str
) -> None:
    (tmp_path / "link").symlink_to("source")
    refused(store("backup", "source", place), "[backup_in_store]")
    assert not (tmp_path / place).exists()


def test_no_store_is_set_back_unless_it_is_told(store: Run, source: Store, tmp_path: Path) -> None:
    assert store("backup", "source", "b.tar").code == 0
    assert store("copy", "source", "live").code == 0
    for name in ("source", "live"):
        put(folder_store(tmp_path / name), queue=name.encode())
    refused(store("restore", "b.tar", "source"), "[target_not_empty]")
    refused(store("copy", "source", "live"), "[target_not_empty]")
    assert kept(tmp_path / "source")["queue.json"] == b"source"
    assert kept(tmp_path / "live")["queue.json"] == b"live"
    assert store("copy", "source", "live", "--over").code == 0
    assert kept(tmp_path / "live")["queue.json"] == b"source"


def test_a_backup_that_is_ended_leaves_nothing(
    store: Run, source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = signal.getsignal(signal.SIGTERM)

    def ended(*_: object) -> NoReturn:
        assert list(tmp_path.glob(".assay-backup-*"))
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("it went on")

    monkeypatch.setattr("leaderboard.store.backup.copy_store", ended)
    assert store("backup", "source", "b.tar").code != 0
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == []
    assert signal.getsignal(signal.SIGTERM) is asked


def test_a_folder_that_is_no_store_is_refused(store: Run, source: Store, tmp_path: Path) -> None:
    refused(store("copy", "absent", NAME), "no store")
    refused(store("backup", "absent", "c.tar"))
    refused(store("show", "source"), "folder")
    assert not (tmp_path / "absent").exists()


# The boards as one file ----------------------------------------------------------------------------


def test_the_boards_of_a_store_are_written_as_one_file(run: Run, tmp_path: Path) -> None:
    store, target = folder_store(tmp_path / "store"), tmp_path / "index.html"
    index_fixture.fill(store)
    assert run("store", "page", tmp_path / "store", "--to", target).code == 0
    snapshot = read_snapshot(store.public)
    assert snapshot is not None
    cards = {name: board.card for name, board in snapshot.boards.items()}
    base = index_base(view_of(snapshot, cards, Orders(store)))
    assert target.read_bytes() == static_page(snapshot, base)


def test_where_nothing_is_published_nothing_is_written(run: Run, tmp_path: Path) -> None:
    folder_store(tmp_path / "store")
    for name in ("store", "mistyped"):
        assert run("store", "page", tmp_path / name, "--to", tmp_path / "index.html").code == 1
    assert not (tmp_path / "index.html").exists() and not (tmp_path / "mistyped").exists()


# Stores that cannot be opened: a wrong name or token is theirs to mend -------------------------------

COMMANDS = [
    command.split()
    for command in (
        f"status --store {NAME}", f"status m-1 --store {NAME}", f"report m-1 --store {NAME}",
        f"quota --store {NAME}", f"rerun m-1 --reason why --store {NAME}",
        f"ledger --store {NAME}", f"store show {NAME}", f"store squash {NAME}",
        f"store copy {NAME} copied",
        f"submit s.csv --kind scores --benchmark toy --store {NAME} --no-wait",
    )
]  # fmt: skip


@pytest.mark.first_quick
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_missing_store_is_theirs_to_make_and_an_outage_is_ours(
    hub: HubServer, run: Run, tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "s.csv").write_text(SCORES)
    refused(run(*words), "no_store", f"store create {NAME}")
    assert hub.repositories == {}
    assert run("store", "create", NAME).code == 0
    hub.spoil("/", status=503, times=10_000)
    refused(run(*words), "store_unreachable", code=3)


@pytest.mark.usefixtures("opened")
def test_a_token_that_may_not_is_told_the_scope_it_needs_and_not_repeated(
    hub: HubServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = hub.enroll("hf_narrow", Account("ada", role="read", orgs={"lab": "read"}))
    for token, words, scope in (
        ("hf_nobodys", ("status", "--store", NAME), "repo.content.read"),
        (reader, ("store", "squash", NAME), "write"),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        ended = run(*words)
        refused(ended, "no_store_access", scope)
        assert token not in ended.out + ended.err


def test_printed_commands_open_the_store_that_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_STORE", raising=False)
    assert store_words(StoreName("hub:lab/board")) == " --store hub:lab/board"
    assert store_words(StoreName("my store")) == " --store 'my store'"
    assert store_words(DEFAULT_STORE) == ""
    monkeypatch.setenv("ASSAY_STORE", "hub:lab/board")
    assert store_words(StoreName("hub:lab/board")) == ""
    assert store_words(DEFAULT_STORE) == " --store .assay/store"
