"""A copy of a store, in another store or in a file, is the store byte by byte, or it is none."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import SubmitterError, TransientError
from leaderboard.store.backup import MEMBER, back_up, opened_backup
from leaderboard.store.copying import copy_store
from leaderboard.store.folder import folder_store
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.interface import Repository, Store
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, created
from tests.kit.refusals import refused
from tests.kit.store import contents, memory_store, put

Member = tuple[tarfile.TarInfo, bytes]
Change = Callable[[list[Member]], list[Member]]


def store_with(results: int) -> Store:
    store = memory_store()
    # The first ten are large files to the Hub, by their ending.
    files = {
        f"results/{n}/ä b.{'json' if n > 9 else 'parquet'}": b"PAR1" * n for n in range(results)
    }
    put(store.public, {**files, "queue.json": b"q", "results/1/a.json": b"{}"})
    put(store.private, {"uploads/1.zip": bytes(3_000_000)})
    return store


@pytest.fixture
def filled() -> Store:
    """A store of more files than go into one commit of a copy."""
    return store_with(230)


@pytest.fixture
def small() -> Store:
    return store_with(9)


def whole(store: Store) -> list[dict[str, bytes]]:
    return [contents(store.public), contents(store.private)]


# In another store


@pytest.mark.slow
def test_a_store_goes_to_the_hub_and_back(hub: HubServer, tmp_path: Path, filled: Store) -> None:
    created(hub, tmp_path / "made")
    there = hub_store(NAME, tmp_path / "cache", endpoint=hub.endpoint, token=hub.token)
    told = [line.split()[:3] for line in copy_store(filled, there, tmp_path)]
    assert told[:2] == [["public:", "200", "files"], ["public:", "32", "files"]]
    assert [line[:2] for line in told[2:]] == [
        ["public:", "all"], ["private:", "1"], ["private:", "all"],
    ]  # fmt: skip
    back = folder_store(tmp_path / "back")
    list(copy_store(there, back, tmp_path))
    assert whole(back) == whole(filled)
    assert not [file for file in tmp_path.iterdir() if file.is_file()]


def test_a_copy_that_was_stopped_sends_only_the_rest(tmp_path: Path, filled: Store) -> None:
    target = memory_store()
    next(stopped := copy_store(filled, target, tmp_path))
    del stopped
    put(target.public, {"results/0/ä b.parquet": b"changed since"})
    said = list(copy_store(filled, target, tmp_path))
    assert said[0].startswith("public: 33 files")
    assert whole(target) == whole(filled)


def test_a_store_written_to_while_it_is_copied_is_no_copy(tmp_path: Path, small: Store) -> None:
    next(going := copy_store(small, memory_store(), tmp_path))
    put(small.public, {"new": b"1"})
    with refused("source_changed", kind=TransientError):
        list(going)


@pytest.mark.parametrize("backed_up", [False, True])
@pytest.mark.parametrize("side", ["public", "private"])
def test_another_store_is_left_alone(
    tmp_path: Path, small: Store, side: str, backed_up: bool
) -> None:
    target = memory_store()
    put(getattr(target, side), {"mine": b"1"})
    before = whole(target)
    with refused("target_not_empty", "'mine'"):
        if backed_up:
            made(small, tmp_path / "b.tar")
            put_back(tmp_path / "b.tar", target, tmp_path)
        else:
            list(copy_store(small, target, tmp_path))
    assert whole(target)[side == "private"] == before[side == "private"]
    assert not backed_up or whole(target) == before  # Neither side was written to.


# In a file


def made(store: Store, target: Path) -> list[str]:
    return list(back_up(store, "hub:lab/assay", target))


def put_back(backup: Path, target: Store, scratch: Path) -> list[str]:
    with opened_backup(backup) as (_, kept):
        return list(copy_store(kept, target, scratch, anew=False))


@pytest.fixture
def backup(tmp_path: Path, small: Store) -> Path:
    (line,) = made(small, tmp_path / "b.tar")
    assert all(word in line for word in ("12 files", "3.0 MB", "private"))
    return tmp_path / "b.tar"


def test_a_backup_is_for_its_owner_alone_and_lone(
    tmp_path: Path, small: Store, backup: Path
) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [backup]
    before = backup.read_bytes()
    with refused("file_exists"):
        made(small, backup)
    assert backup.read_bytes() == before
    with refused("store_failed", kind=TransientError):
        made(small, tmp_path / ("n" * 300))


@pytest.mark.slow
def test_a_store_on_the_hub_is_backed_up(
    hub: HubServer, tmp_path: Path, small: Store, backup: Path
) -> None:
    created(hub, tmp_path / "made")
    there = hub_store(NAME, tmp_path / "cache", endpoint=hub.endpoint, token=hub.token)
    put_back(backup, there, tmp_path)
    made(there, tmp_path / "again.tar")
    with opened_backup(tmp_path / "again.tar") as (manifest, kept):
        assert whole(kept) == whole(small)
        assert manifest.store == "hub:lab/assay"
        assert manifest.public.version == there.public.head()


class Changing:
    """A repository that is written to while it is read, as often as is wanted."""

    def __init__(self, inner: Repository, times: int) -> None:
        self._inner, self._left = inner, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def fetch(self, path: str, target: Path) -> None:
        self._inner.fetch(path, target)
        if self._left and path == "queue.json":
            self._left -= 1
            number = len(self._inner.list())
            new = {"queue.json": b"%d" % number, f"results/new/{number}": b"n"}
            put(self._inner, {**new, "results/7/ä b.parquet": None})


def changing(store: Store, times: int) -> Store:
    public: Any = Changing(store.public, times)
    return replace(store, public=public)


def test_a_store_in_use_is_backed_up_as_it_was_at_one_moment(tmp_path: Path, small: Store) -> None:
    said = made(changing(small, 2), tmp_path / "b.tar")
    assert said[0].startswith("Pass 1:")
    with opened_backup(tmp_path / "b.tar") as (_, kept):
        assert whole(kept) == whole(small)
        assert "results/7/ä b.parquet" not in kept.public.list()


def test_a_store_that_never_rests_leaves_nothing(tmp_path: Path, small: Store) -> None:
    with refused("store_busy", kind=TransientError):
        made(changing(small, 10_000), tmp_path / "b.tar")
    assert list(tmp_path.iterdir()) == []


# A backup that was changed


def rewritten(path: Path, change: Change) -> None:
    with tarfile.open(path) as archive:
        members = [(m, f.read()) for m in archive if (f := archive.extractfile(m)) is not None]
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in change(members):
            archive.addfile(member, io.BytesIO(content))


def linked(members: list[Member]) -> list[Member]:
    link = tarfile.TarInfo(members[3][0].name)
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return [*members[:3], (link, b""), *members[4:]]


def retold(change: Callable[[dict[str, Any]], object]) -> Change:
    def changed(members: list[Member]) -> list[Member]:
        (member, content), *rest = members
        told = json.loads(content)
        change(told)
        content = json.dumps(told).encode()
        member.size = len(content)
        return [(member, content), *rest]

    return changed


def named_outside(members: list[Member]) -> list[Member]:
    for member, _ in members:
        member.name = member.name.replace("public/queue.json", "public/../evil")

    def rename(told: dict[str, Any]) -> None:
        files = told["public"]["files"]
        files["../evil"] = files.pop("queue.json")

    return retold(rename)(members)


def without_numbers(members: list[Member]) -> list[Member]:
    members[2][0].pax_headers = {"GNU.sparse.size": "many"}
    return members


EVIL = "public/../../evil"
CHANGES: dict[str, tuple[Change, str]] = {
    "flipped": (lambda x: [*x[:5], (x[5][0], bytes(len(x[5][1]))), *x[6:]], "what was kept"),
    "added": (lambda x: [*x, (tarfile.TarInfo(EVIL), b"")], EVIL),
    "linked": (linked, "not tell of"),
    "twice": (lambda x: [*x, x[-1]], "not tell of"),
    "lacking": (lambda x: x[:-1], "private/uploads/1.zip"),
    "headless": (lambda x: x[1:], MEMBER),
    "another version": (retold(lambda told: told.update(schema_version=2)), "schema_version"),
    "named outside": (named_outside, ""),
    "without numbers": (without_numbers, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", CHANGES)
def test_a_backup_that_was_changed_writes_nothing(tmp_path: Path, backup: Path, how: str) -> None:
    change, word = CHANGES[how]
    rewritten(backup, change)
    target = memory_store()
    with refused("bad_backup", word, kind=SubmitterError):
        put_back(backup, target, tmp_path)
    assert whole(target) == [{}, {}]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.6, 0.999])
def test_a_backup_that_was_cut_off_is_refused(backup: Path, kept: float) -> None:
    content = backup.read_bytes()
    backup.write_bytes(content[: int(len(content) * kept) - (kept > 0.9) * 20_000])
    with refused("bad_backup"), opened_backup(backup):
        pass


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no tar at all" * 1000)
    for name, code in (("a", "bad_backup"), ("b", "no_backup")):
        with refused(code), opened_backup(tmp_path / name):
            pass


@pytest.mark.slow
def test_a_restore_that_was_stopped_goes_on(tmp_path: Path, filled: Store) -> None:
    target, backup = memory_store(), tmp_path / "b.tar"
    made(filled, backup)
    with opened_backup(backup) as (_, kept):
        next(stopped := copy_store(kept, target, tmp_path, anew=False))
        del stopped
    assert put_back(backup, target, tmp_path)[0].startswith("public: 32 files")
    assert whole(target) == whole(filled)


@pytest.mark.slow
def test_a_backup_is_never_written_to(backup: Path) -> None:
    with opened_backup(backup) as (_, kept):
        with refused("read_only"):
            put(kept.public, {"a": b"a"})
        with refused("store_failed", "/dev/no-folder"):
            kept.private.fetch("uploads/1.zip", Path("/dev/no-folder/x"))


@pytest.mark.slow
@pytest.mark.parametrize("side", ["public", "private"])
def test_a_store_that_went_on_is_not_set_back(tmp_path: Path, backup: Path, side: str) -> None:
    target = memory_store()
    put_back(backup, target, tmp_path)
    went_on: Repository = getattr(target, side)
    path = went_on.list()[0]
    put(went_on, {path: b"newer"})
    put(target.public, {target.public.list()[-1]: None})
    before = whole(target)
    with refused("target_not_empty", side, f"'{path}'"):
        put_back(backup, target, tmp_path)
    assert whole(target) == before
