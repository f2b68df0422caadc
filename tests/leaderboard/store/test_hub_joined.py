"""Two repositories of the Hub as one: where files go, what a version is, what is undone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part, part_of, parts_with
from leaderboard.store.hub.maintenance import create
from leaderboard.store.hub.multi_repository import PINS
from leaderboard.store.hub.uploads import Operation
from leaderboard.store.interface import Changes, ConflictError, NotFoundError
from tests.kit.hub.repositories import StoredFile
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, NOWHERE, created, parts_of
from tests.kit.refusals import refused
from tests.kit.store import contents, put

FILES: dict[str, bytes] = {
    "queue.json": b"q",
    "events/s1.jsonl": b"e",
    "results/s1/croc.json": b"{}",
    "results/s1/croc.scores.parquet": b"PAR1",
    "snapshot.parquet": b"snap",
    "boards/croc.json": b"board",
}
WHERE = {
    "queue.json": Part.REQUESTS,
    "events/s1.jsonl": Part.REQUESTS,
    "results/s1/croc.json": Part.RESULTS,
    "results/s1/croc.scores.parquet": Part.RESULTS,
    "snapshot.parquet": Part.RESULTS,
    "boards/croc.json": Part.RESULTS,
    "results/s1/notes.txt": Part.RESULTS,
}
ONE_EACH = {Part.REQUESTS: 1, Part.RESULTS: 1}


@pytest.fixture
def filled(hub: HubServer, parts: HubParts) -> HubParts:
    put(parts.public, FILES)
    hub.tally.reset()
    hub.served.clear()
    return parts


def left_behind(parts: HubParts, changes: Changes) -> None:
    """What a crash leaves: a part went on, and the pins did not."""
    pin = parts.public.version(parts.public.head()).pins.results
    parts.repositories[Part.RESULTS].commit_onto(pin, changes, "half")


def tree(hub: HubServer, part: Part) -> dict[str, bytes]:
    repository = hub.repositories[f"{NAME}-{part.value}"]
    files = repository.files(repository.branches["main"])
    hidden = (".commits/", ".gitattributes", "README.md")
    return {path: file.content for path, file in files.items() if not path.startswith(hidden)}


def commits(hub: HubServer) -> dict[Part, int]:
    counted = {part: hub.tally.commits(f"{NAME}-{part.value}") for part in Part}
    return {part: n for part, n in counted.items() if n}


# Where files go


def test_every_file_lies_in_the_repository_of_its_readers(hub: HubServer, filled: HubParts) -> None:
    for path in FILES:
        assert [part for part in Part if path in tree(hub, part)] == [WHERE[path]]
    assert contents(filled.public) == FILES


@pytest.mark.parametrize(("path", "part"), WHERE.items())
def test_whoever_may_hold_a_path_is_asked_for_every_beginning_of_it(path: str, part: Part) -> None:
    assert part_of(path) is part
    assert all(part in parts_with(path[:end]) for end in range(len(path) + 1))


def test_a_file_and_a_folder_of_one_name_are_refused_across_repositories(parts: HubParts) -> None:
    public = parts.public
    head = put(public, {"results/a.json": b"{}"})
    for path in ("results/a.json/b.parquet", "results/a.json/b.txt", "results"):
        with refused("path_clash"):
            put(public, {path: b"x"})
    assert (public.head(), public.list()) == (head, ("results/a.json",))
    put(public, {"results/a.json/b.parquet": b"x", "results/a.json": None})
    assert public.list() == ("results/a.json/b.parquet",)


def test_a_card_written_by_hand_is_never_undone(hub: HubServer, filled: HubParts) -> None:
    results = hub.repositories[f"{NAME}-results"]
    kept = {p: f.content for p, f in results.files(results.branches["main"]).items()}
    results.commit({**kept, "README.md": b"# By hand"})
    put(filled.public, {"snapshot.parquet": b"2"})
    files = results.files(results.branches["main"])
    assert files["README.md"].content == b"# By hand"
    assert ".gitattributes" in files
    assert not filled.public.has("README.md")
    assert "README.md" not in filled.public.list()


@pytest.mark.parametrize("path", ["README.md", ".gitattributes", ".git/x", "a/.cache/b"])
def test_the_hubs_own_files_are_not_written_and_not_read(parts: HubParts, path: str) -> None:
    with refused("bad_path", "reserved"):
        put(parts.public, {path: b"x"})
    with pytest.raises(NotFoundError):
        parts.public.read(path)


# What is not pinned


def test_what_is_not_pinned_is_seen_by_nobody(hub: HubServer, filled: HubParts) -> None:
    before = filled.public.head()
    left_behind(filled, {"snapshot.parquet": b"half", "results/s2/croc.json": b"half"})
    for reader in (filled, parts_of(hub, NOWHERE)):
        assert (reader.public.head(), reader.public.read("snapshot.parquet")) == (before, b"snap")
        assert not reader.public.has("results/s2/croc.json")
        with pytest.raises(NotFoundError):
            reader.public.read("results/s2/croc.json")


@pytest.mark.parametrize("described", [True, False], ids=["by description", "by trees"])
def test_what_lies_beyond_a_pin_is_undone_by_the_next_commit(
    hub: HubServer, filled: HubParts, monkeypatch: pytest.MonkeyPatch, described: bool
) -> None:
    if not described:
        monkeypatch.setattr("leaderboard.store.hub.repository.describe", lambda *_: "by hand")
    half = dict.fromkeys(("snapshot.parquet", "results/s2/croc.json", "results/s3/croc.json"), b"h")
    left_behind(filled, {**half, "boards/croc.json": None})
    public = parts_of(hub, NOWHERE).public
    put(public, {"results/s3/croc.json": b"mine"})
    expected = {path: content for path, content in FILES.items() if WHERE[path] is Part.RESULTS}
    found = tree(hub, Part.RESULTS)
    assert found == {**expected, "results/s3/croc.json": b"mine"}
    assert {path: public.read(path) for path in found} == found


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"pins": {}}',
        b'{"results": "main"}',
        b'{"pins": {"scores": "main", "results": "main"}}',
        b'{"pins": {"scores": "%s"}}' % (b"0" * 40),
        b'{"pins": {"results": "%s"}}' % (b"0" * 40),
    ],
)
def test_damaged_pins_are_told_and_what_they_were_can_be_put_back(
    hub: HubServer, filled: HubParts, tmp_path: Path, content: bytes
) -> None:
    public, decisive = filled.public, hub.repositories[f"{NAME}-requests"]
    whole = public.decisive.read_at(PINS, public.head())
    decisive.change({PINS: StoredFile(content, lfs=False)})
    for broken in (public, parts_of(hub, tmp_path / "other").public):
        with refused("pins_broken"):
            broken.read("snapshot.parquet")
        with refused("pins_broken"):
            put(broken, {"queue.json": b"2"})
        assert broken.read("queue.json") == b"q"
    decisive.change({PINS: StoredFile(whole, lfs=False)})
    assert public.read("snapshot.parquet") == b"snap"


def test_pins_that_somebody_removed_are_not_made_up(hub: HubServer, parts: HubParts) -> None:
    put(parts.public.results, {"snapshot.parquet": b"left by a crash"})
    hub.repositories[f"{NAME}-requests"].change({PINS: None})
    with refused("pins_gone"):
        list(create(parts))


# Races


def test_a_race_that_is_lost_early_costs_no_commit(hub: HubServer, filled: HubParts) -> None:
    old = filled.public.head()
    put(filled.public, {"queue.json": b"1"})
    hub.tally.reset()
    with pytest.raises(ConflictError):
        parts_of(hub, NOWHERE).public.commit(FILES, parent=old, message="late")
    assert commits(hub) == {}


def test_a_race_that_is_lost_during_an_upload_costs_no_commit(
    hub: HubServer, filled: HubParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = filled.client.upload

    def uploading(repo: str, operations: Sequence[Operation]) -> None:
        upload(repo, operations)
        put(parts_of(hub, NOWHERE).public, {"queue.json": b"another's"})

    monkeypatch.setattr(filled.client, "upload", uploading)
    with pytest.raises(ConflictError):
        put(filled.public, FILES)
    assert commits(hub) == {Part.REQUESTS: 1}, "the other's"


def test_a_race_lost_at_the_last_step_is_seen_by_nobody(hub: HubServer, filled: HubParts) -> None:
    public = filled.public
    hub.spoil(f"{NAME}-requests/commit/", method="POST", conflict=True)
    with pytest.raises(ConflictError):
        put(public, {"snapshot.parquet": b"2", "queue.json": b"2"})
    assert (public.read("snapshot.parquet"), public.read("queue.json")) == (b"snap", b"q")
    put(public, {"queue.json": b"3"})
    assert public.read("snapshot.parquet") == b"snap"


def test_a_race_lost_in_a_part_is_run_again_there(hub: HubServer, parts: HubParts) -> None:
    hub.spoil(f"{NAME}-results/commit/", method="POST", conflict=True, times=2)
    put(parts.public, FILES)
    assert parts.public.read("snapshot.parquet") == b"snap"


# What it costs


def test_only_what_is_touched_costs_a_commit(hub: HubServer, filled: HubParts) -> None:
    put(filled.public, {"queue.json": b"2"})
    assert commits(hub) == {Part.REQUESTS: 1}
    put(filled.public, {path: content + b"2" for path, content in FILES.items()})
    assert commits(hub) == {**ONE_EACH, Part.REQUESTS: 2}


def test_hundreds_of_files_are_one_commit(hub: HubServer, parts: HubParts, tmp_path: Path) -> None:
    files: dict[str, bytes | Path] = {"queue.json": b"1"}
    for n in range(150):
        (tmp_path / f"{n}.parquet").write_bytes(b"PAR1" * n + b"x")
        files[f"results/{n}/a.scores.parquet"] = tmp_path / f"{n}.parquet"
        files[f"results/{n}/a.json"] = b"{%d}" % n
    hub.tally.reset()
    put(parts.public, files)
    assert commits(hub) == ONE_EACH
    public = parts_of(hub, tmp_path).public
    assert len(public.list("results/")) == 300
    assert public.read("results/149/a.scores.parquet") == b"PAR1" * 149 + b"x"


def test_listing_a_folder_of_events_asks_one_repository(hub: HubServer, filled: HubParts) -> None:
    assert parts_of(hub, NOWHERE).public.list("events/") == ("events/s1.jsonl",)
    assert all(f"{NAME}-requests" in each.target for each in hub.served)


def test_a_cold_read_is_a_few_requests(hub: HubServer, filled: HubParts, tmp_path: Path) -> None:
    """The version, the pins, the queue; the snapshot, and where its content lies."""
    hub.commits_page = 3
    for n in range(8):
        put(filled.public, {f"results/r{n}/croc.json": b"{}"})
    hub.served.clear()
    public = parts_of(hub, tmp_path / "cold", fresh_for_s=5.0).public
    for _ in range(2):  # the second time it asks nothing
        public.head()
        public.read("snapshot.parquet")
        public.read("queue.json")
    asked = [(each.method, each.status) for each in hub.served]
    assert asked == [("HEAD", 200), ("GET", 200), ("GET", 302), ("GET", 200), ("GET", 200)]


def test_a_claim_of_eight_jobs_by_a_cold_worker_is_one_commit_and_few_requests(
    hub: HubServer, filled: HubParts, tmp_path: Path
) -> None:
    """The version, the queue, the version and pins again, what is there, contents, the commit."""
    public = parts_of(hub, tmp_path / "cold", fresh_for_s=5.0).public
    events = {f"events/s{n}.jsonl": b"claimed %d" % n for n in range(8)}
    put(public, {**events, "queue.json": public.read("queue.json") + b"claimed"})
    assert commits(hub) == {Part.REQUESTS: 1}
    assert len(hub.served) == 7


def test_contents_on_this_disk_are_not_sent(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    big = bytes(range(256)) * 20_000
    put(parts.public, {"snapshot.parquet": big})
    for _ in range(2):
        assert parts_of(hub, tmp_path / "disk").public.read("snapshot.parquet") == big
        assert hub.sent("/content/") == len(big)


def test_who_wrote_a_file_need_not_ask_for_it(hub: HubServer, tmp_path: Path) -> None:
    public = created(hub, tmp_path, fresh_for_s=5.0).public
    put(public, FILES)
    put(public, {"queue.json": b"2"})
    hub.served.clear()
    found = [public.read(path) for path in ("queue.json", "events/s1.jsonl", "snapshot.parquet")]
    assert (found, hub.served) == ([b"2", b"e", b"snap"], [])


def test_while_a_squash_stops_commits_reads_go_on(hub: HubServer, filled: HubParts) -> None:
    public = filled.public
    until = hub.clock.now() + timedelta(minutes=10)
    frozen = public.version(public.head()).pins.model_copy(update={"frozen_until": until})
    filled.repositories[Part.REQUESTS].commit_with({}, frozen.note, public.head(), "stop")
    with refused("store_squashing"):
        put(public, {"queue.json": b"2"})
    assert public.read("snapshot.parquet") == b"snap"
    hub.clock.advance(601)
    public.commit({"queue.json": b"2"}, parent=public.fresh_head(), message="m")
