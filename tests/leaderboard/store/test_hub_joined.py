"""Three repositories of the Hub as one: where files go, what a version is, what is undone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.hub.creating import create
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part, part_of, parts_with
from leaderboard.store.hub.pins import PINS
from leaderboard.store.interface import Changes, ConflictError, NotFoundError
from tests.hub.contents import StoredFile
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, NOWHERE, created, parts_of

FILES: Changes = {
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
    "results/s1/croc.scores.parquet": Part.SCORES,
    "snapshot.parquet": Part.RESULTS,
    "boards/croc.json": Part.RESULTS,
    "results/s1/notes.txt": Part.REQUESTS,
}


@pytest.fixture
def parts(hub: HubServer, tmp_path: Path) -> HubParts:
    return created(hub, tmp_path / "mine")


def test_every_file_lies_in_the_repository_of_its_readers(hub: HubServer, parts: HubParts) -> None:
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    for path in FILES:
        holders = [part for part in Part if path in _tree(hub, parts, part, "main")]
        assert holders == [WHERE[path]]
    assert parts.public.list() == tuple(sorted(FILES))
    assert {path: parts.public.read(path) for path in FILES} == FILES


@pytest.mark.parametrize(("path", "part"), WHERE.items())
def test_whoever_may_hold_a_path_is_asked_for_every_beginning_of_it(path: str, part: Part) -> None:
    assert part_of(path) is part
    assert all(part in parts_with(path[:end]) for end in range(len(path) + 1))


def test_listing_a_folder_of_events_asks_one_repository(hub: HubServer, parts: HubParts) -> None:
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    hub.served.clear()
    assert parts_of(hub, NOWHERE).public.list("events/") == ("events/s1.jsonl",)
    assert not [
        each for each in hub.served if "-scores" in each.target or "-results" in each.target
    ]


def test_a_file_and_a_folder_of_one_name_are_refused_across_repositories(parts: HubParts) -> None:
    public = parts.public
    public.commit({"results/a.json": b"{}"}, parent=public.head(), message="m")
    head = public.head()
    for changes in (
        {"results/a.json/b.parquet": b"x"},
        {"results/a.json/b.txt": b"x"},
        {"results": b"x"},
    ):
        with pytest.raises(PlatformError) as refused:
            public.commit(changes, parent=head, message="m")
        assert refused.value.code == "path_clash"
    assert (public.head(), public.list()) == (head, ("results/a.json",))
    public.commit(
        {"results/a.json/b.parquet": b"x", "results/a.json": None}, parent=head, message="m"
    )
    assert public.list() == ("results/a.json/b.parquet",)


def test_a_commit_that_touches_no_payload_costs_one_commit(hub: HubServer, parts: HubParts) -> None:
    hub.tally.reset()
    parts.public.commit({"queue.json": b"2"}, parent=parts.public.head(), message="m")
    assert _commits(hub, parts) == {Part.REQUESTS: 1}
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    assert _commits(hub, parts) == {Part.REQUESTS: 2, Part.SCORES: 1, Part.RESULTS: 1}


def test_what_was_committed_to_a_part_but_not_pinned_is_seen_by_nobody(
    hub: HubServer, parts: HubParts
) -> None:
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    before = parts.public.head()
    _left_behind(parts, {"snapshot.parquet": b"half", "results/s2/croc.json": b"half"})
    for reader in (parts, parts_of(hub, NOWHERE)):
        assert reader.public.head() == before
        assert reader.public.read("snapshot.parquet") == b"snap"
        assert not reader.public.has("results/s2/croc.json")
        with pytest.raises(NotFoundError):
            reader.public.read("results/s2/croc.json")


@pytest.mark.parametrize("described", [True, False], ids=["by description", "by trees"])
def test_what_lies_beyond_a_pin_is_undone_by_the_next_commit(
    hub: HubServer, parts: HubParts, monkeypatch: pytest.MonkeyPatch, described: bool
) -> None:
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    if not described:
        monkeypatch.setattr("leaderboard.store.hub.committing.describe", lambda *_: "by hand")
    _left_behind(
        parts,
        {
            "snapshot.parquet": b"half",
            "results/s2/croc.json": b"half",
            "boards/croc.json": None,
            "results/s3/croc.json": b"half",
        },
    )
    public = parts_of(hub, NOWHERE).public
    public.commit({"results/s3/croc.json": b"mine"}, parent=public.head(), message="next")
    expected = {path: content for path, content in FILES.items() if WHERE[path] is Part.RESULTS}
    tree = _tree(hub, parts, Part.RESULTS, "main")
    assert tree == {**expected, "results/s3/croc.json": b"mine"}
    assert {p: public.read(p) for p in tree} == tree


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"pins": {}}',
        b'{"pins": {"scores": "main", "results": "main"}}',
        b'{"pins": {"scores": "%s"}}' % (b"0" * 40),
    ],
)
def test_damaged_pins_are_told_and_what_they_were_can_be_put_back(
    hub: HubServer, parts: HubParts, tmp_path: Path, content: bytes
) -> None:
    public = parts.public
    public.commit({"snapshot.parquet": b"s", "queue.json": b"q"}, parent=public.head(), message="m")
    decisive = hub.repositories[f"{NAME}-requests"]
    whole = public.decisive.read_at(PINS, public.head())
    decisive.change({PINS: StoredFile(content, lfs=False)})
    for broken in (public, parts_of(hub, tmp_path / "other").public):
        with pytest.raises(PlatformError) as caught:
            broken.read("snapshot.parquet")
        assert caught.value.code == "pins_broken"
        with pytest.raises(PlatformError):
            broken.commit({"queue.json": b"2"}, parent=broken.head(), message="m")
        assert broken.read("queue.json") == b"q"
    decisive.change({PINS: StoredFile(whole, lfs=False)})
    assert public.read("snapshot.parquet") == b"s"


def test_pins_that_somebody_removed_are_not_made_up(hub: HubServer, parts: HubParts) -> None:
    results = parts.public.payload[Part.RESULTS]
    results.commit({"snapshot.parquet": b"half"}, parent=results.head(), message="left by a crash")
    hub.repositories[f"{NAME}-requests"].change({PINS: None})
    with pytest.raises(PlatformError) as caught:
        list(create(parts))
    assert caught.value.code == "pins_gone"


def test_a_card_written_by_hand_is_never_undone(hub: HubServer, parts: HubParts) -> None:
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    results = hub.repositories[f"{NAME}-results"]
    kept = {p: f.content for p, f in results.files(results.branches["main"]).items()}
    results.commit({**kept, "README.md": b"# By hand"})
    parts.public.commit({"snapshot.parquet": b"2"}, parent=parts.public.head(), message="m")
    files = results.files(results.branches["main"])
    assert files["README.md"].content == b"# By hand"
    assert ".gitattributes" in files
    assert not parts.public.has("README.md")
    assert "README.md" not in parts.public.list()


def test_the_hubs_own_files_are_not_written_and_not_read(parts: HubParts) -> None:
    for path in ("README.md", ".gitattributes", ".git/x", "a/.cache/b"):
        with pytest.raises(PlatformError, match="reserved"):
            parts.public.commit({path: b"x"}, parent=parts.public.head(), message="m")
        with pytest.raises(NotFoundError):
            parts.public.read(path)


def test_a_race_that_is_lost_early_costs_no_commit(hub: HubServer, parts: HubParts) -> None:
    public = parts.public
    old = public.head()
    public.commit({"queue.json": b"1"}, parent=old, message="m")
    hub.tally.reset()
    with pytest.raises(ConflictError):
        parts_of(hub, NOWHERE).public.commit(FILES, parent=old, message="late")
    assert _commits(hub, parts) == {}


def test_a_race_lost_at_the_last_step_is_seen_by_nobody(hub: HubServer, parts: HubParts) -> None:
    public = parts.public
    public.commit(FILES, parent=public.head(), message="m")
    hub.spoil(f"{NAME}-requests/commit/", method="POST", conflict=True)
    with pytest.raises(ConflictError):
        public.commit(
            {"snapshot.parquet": b"2", "queue.json": b"2"}, parent=public.head(), message="m"
        )
    assert (public.read("snapshot.parquet"), public.read("queue.json")) == (b"snap", b"q")
    public.commit({"queue.json": b"3"}, parent=public.head(), message="m")
    assert public.read("snapshot.parquet") == b"snap"


def test_a_race_lost_in_a_part_is_run_again_there(hub: HubServer, parts: HubParts) -> None:
    hub.spoil(f"{NAME}-results/commit/", method="POST", conflict=True, times=2)
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    assert parts.public.read("snapshot.parquet") == b"snap"


def test_a_payload_of_hundreds_of_files_is_one_commit_of_each_part(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    files: dict[str, bytes | Path] = {}
    for n in range(150):
        (tmp_path / f"{n}.parquet").write_bytes(b"PAR1" * n + b"x")
        files[f"results/{n}/a.scores.parquet"] = tmp_path / f"{n}.parquet"
        files[f"results/{n}/a.json"] = b"{%d}" % n
    hub.tally.reset()
    parts.public.commit({**files, "queue.json": b"1"}, parent=parts.public.head(), message="m")
    assert _commits(hub, parts) == {Part.REQUESTS: 1, Part.SCORES: 1, Part.RESULTS: 1}
    public = parts_of(hub, tmp_path).public
    assert len(public.list("results/")) == 300
    assert public.read("results/149/a.scores.parquet") == b"PAR1" * 149 + b"x"


def test_a_cold_read_of_a_board_is_a_constant_number_of_requests(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    """The version, the pins, the queue; the snapshot, and where its content lies."""
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    for n in range(60):
        results = {f"results/r{n}/croc.json": b"{}"}
        parts.public.commit(results, parent=parts.public.head(), message="m")
    hub.served.clear()
    public = parts_of(hub, tmp_path / "cold", fresh_for_s=5.0).public
    public.head()
    public.read("snapshot.parquet")
    public.read("queue.json")
    assert [(each.method, each.status) for each in hub.served] == [
        ("HEAD", 200),
        ("GET", 200),
        ("GET", 302),
        ("GET", 200),
        ("GET", 200),
    ]
    hub.served.clear()
    public.read("snapshot.parquet")
    public.read("queue.json")
    assert hub.served == []


def test_a_claim_of_eight_jobs_by_a_cold_worker_is_one_commit_and_few_requests(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    """The version, the queue, the version and pins again, what is there, contents, the commit."""
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    hub.tally.reset()
    hub.served.clear()
    public = parts_of(hub, tmp_path / "cold", fresh_for_s=5.0).public
    events = {f"events/s{n}.jsonl": b"claimed %d" % n for n in range(8)}
    queue = public.read("queue.json") + b"claimed"
    public.commit({**events, "queue.json": queue}, parent=public.head(), message="claim")
    assert _commits(hub, parts) == {Part.REQUESTS: 1}
    assert len(hub.served) == 7


def test_contents_that_are_on_this_disk_are_not_sent_again(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    big = bytes(range(256)) * 20_000
    parts.public.commit({"snapshot.parquet": big}, parent=parts.public.head(), message="m")
    assert parts_of(hub, tmp_path / "disk").public.read("snapshot.parquet") == big
    assert hub.sent("/content/") == len(big)
    assert parts_of(hub, tmp_path / "disk").public.read("snapshot.parquet") == big
    assert hub.sent("/content/") == len(big)


def test_who_wrote_a_file_need_not_ask_for_it(hub: HubServer, tmp_path: Path) -> None:
    parts = created(hub, tmp_path, fresh_for_s=5.0)
    parts.public.commit(FILES, parent=parts.public.head(), message="m")
    parts.public.commit({"queue.json": b"2"}, parent=parts.public.head(), message="m")
    hub.served.clear()
    assert (parts.public.read("queue.json"), parts.public.read("events/s1.jsonl")) == (b"2", b"e")
    assert parts.public.read("snapshot.parquet") == b"snap"
    assert hub.served == []


def test_while_a_squash_stops_commits_they_wait_and_reads_go_on(
    hub: HubServer, parts: HubParts
) -> None:
    public, decisive = parts.public, parts.repositories[Part.REQUESTS]
    public.commit(FILES, parent=public.head(), message="m")
    pins = public.version(public.head()).pins
    until = hub.clock.now() + timedelta(minutes=10)
    frozen = pins.model_copy(update={"frozen_until": until})
    decisive.commit_with({}, frozen.note, public.head(), "stop")
    with pytest.raises(TransientError, match="being squashed") as refused:
        public.commit({"queue.json": b"2"}, parent=public.head(), message="m")
    assert refused.value.code == "store_squashing"
    assert public.read("snapshot.parquet") == b"snap"
    hub.clock.advance(601)
    public.commit({"queue.json": b"2"}, parent=public.fresh_head(), message="m")


def _left_behind(parts: HubParts, changes: Changes) -> None:
    """What a crash leaves: a part went on, and the pins did not."""
    pin = parts.public.version(parts.public.head()).pins[Part.RESULTS]
    parts.repositories[Part.RESULTS].commit_onto(pin, changes, "half")


def _tree(hub: HubServer, parts: HubParts, part: Part, revision: str) -> dict[str, bytes]:
    repository = hub.repositories[parts.name.of(part)]
    files = repository.files(repository.branches.get(revision, revision))
    hidden = (".commits/", ".gitattributes", "README.md")
    return {path: file.content for path, file in files.items() if not path.startswith(hidden)}


def _commits(hub: HubServer, parts: HubParts) -> dict[Part, int]:
    counted = {part: hub.tally.commits(parts.name.of(part)) for part in Part}
    return {part: n for part, n in counted.items() if n}
