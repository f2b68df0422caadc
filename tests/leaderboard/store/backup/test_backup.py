"""A backup is the store, byte by byte, or it is no backup."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.store.backup.making import MOST_PASSES, back_up
from leaderboard.store.backup.manifest import MEMBER
from leaderboard.store.backup.reading import opened_backup
from leaderboard.store.copying import copy_store
from leaderboard.store.folder import folder_store
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.interface import Repository, Store
from leaderboard.store.memory import memory_store
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created

Member = tuple[tarfile.TarInfo, bytes]


@pytest.fixture
def filled() -> Store:
    store = memory_store()
    results = {f"results/{n}/ä b.parquet": b"PAR1" * n for n in range(230)}
    store.public.commit({**results, "queue.json": b"q"}, parent=store.public.head(), message="m")
    store.private.commit({"uploads/1.zip": bytes(3_000_000)}, parent="0", message="m")
    return store


def _read(repository: Repository) -> dict[str, bytes]:
    return {path: repository.read(path) for path in repository.list()}


def _made(store: Store, target: Path) -> list[str]:
    return list(back_up(store, "hub:lab/assay", target))


def _put_back(backup: Path, target: Store, scratch: Path) -> list[str]:
    with opened_backup(backup) as (_, kept):
        return list(copy_store(kept, target, scratch, anew=False))


@pytest.mark.slow
def test_what_comes_back_is_what_was_there(tmp_path: Path, filled: Store) -> None:
    backup = tmp_path / "b.tar"
    said = _made(filled, backup)
    assert said == [f"{backup}: 232 files, 3.6 MB. It holds private uploads."]
    back = folder_store(tmp_path / "back")
    _put_back(backup, back, tmp_path)
    assert _read(back.public) == _read(filled.public)
    assert _read(back.private) == _read(filled.private)


def test_it_is_for_its_owner_alone_and_leaves_nothing_beside_it(
    tmp_path: Path, filled: Store
) -> None:
    _made(filled, tmp_path / "b.tar")
    assert stat.S_IMODE((tmp_path / "b.tar").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar"]


@pytest.mark.slow
def test_a_store_on_the_hub_is_backed_up_and_put_back_there(
    hub: HubServer, tmp_path: Path, filled: Store
) -> None:
    _made(filled, tmp_path / "b.tar")
    created(hub, tmp_path / "made")
    there = hub_store(NAME, tmp_path / "cache", endpoint=hub.endpoint, token=hub.token)
    _put_back(tmp_path / "b.tar", there, tmp_path)
    _made(there, tmp_path / "again.tar")
    with opened_backup(tmp_path / "again.tar") as (manifest, kept):
        assert _read(kept.public) == _read(filled.public)
        assert _read(kept.private) == _read(filled.private)
        assert manifest.store == "hub:lab/assay"
        assert manifest.public.version == there.public.head()


class _Changing:
    """A repository that is written to while it is read, as often as is wanted."""

    def __init__(self, inner: Repository, change: Callable[[Repository], None], times: int) -> None:
        self._inner, self._change, self._left = inner, change, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def fetch(self, path: str, target: Path) -> None:
        self._inner.fetch(path, target)
        if self._left and path == "queue.json":
            self._left -= 1
            self._change(self._inner)


def _writes(repository: Repository) -> None:
    number = len(repository.list())
    changes = {"queue.json": f"{number}".encode(), f"results/new/{number}": b"n"}
    repository.commit(
        {**changes, "results/7/ä b.parquet": None}, parent=repository.head(), message="m"
    )


def _changing(store: Store, times: int) -> Store:
    public = cast(Repository, _Changing(store.public, _writes, times))
    return replace(store, public=public)


def test_a_store_in_use_is_backed_up_as_it_was_at_one_moment(tmp_path: Path, filled: Store) -> None:
    said = _made(_changing(filled, 2), tmp_path / "b.tar")
    assert said[0].startswith("Pass 1: the store was written to meanwhile")
    with opened_backup(tmp_path / "b.tar") as (_, kept):
        assert _read(kept.public) == _read(filled.public)
        assert "results/7/ä b.parquet" not in kept.public.list()


def test_a_store_that_never_rests_is_told_so_and_nothing_is_left(
    tmp_path: Path, filled: Store
) -> None:
    busy = _changing(filled, 10_000)
    with pytest.raises(TransientError, match=f"each of {MOST_PASSES} passes") as caught:
        _made(busy, tmp_path / "b.tar")
    assert caught.value.code == "store_busy"
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_overwritten(tmp_path: Path, filled: Store) -> None:
    (tmp_path / "b.tar").write_bytes(b"mine")
    with pytest.raises(SubmitterError) as caught:
        _made(filled, tmp_path / "b.tar")
    assert caught.value.code == "file_exists"
    assert (tmp_path / "b.tar").read_bytes() == b"mine"


def _rewritten(path: Path, change: Callable[[list[Member]], list[Member]]) -> None:
    with tarfile.open(path) as archive:
        members = [(m, f.read()) for m in archive if (f := archive.extractfile(m)) is not None]
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in change(members):
            archive.addfile(member, io.BytesIO(content))


def _flipped(members: list[Member]) -> list[Member]:
    member, content = members[5]
    return [*members[:5], (member, bytes(len(content))), *members[6:]]


def _added(members: list[Member]) -> list[Member]:
    extra = tarfile.TarInfo("public/../../evil")
    return [*members, (extra, b"")]


def _linked(members: list[Member]) -> list[Member]:
    link = tarfile.TarInfo(members[3][0].name)
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return [*members[:3], (link, b""), *members[4:]]


def _other_version(members: list[Member]) -> list[Member]:
    told = json.dumps({**json.loads(members[0][1]), "schema_version": 2}).encode()
    members[0][0].size = len(told)
    return [(members[0][0], told), *members[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_flipped, "is not what was kept"),
        (_added, "does not tell of 'public/../../evil'"),
        (_linked, "does not tell of"),
        (lambda members: [*members, members[-1]], "does not tell of"),
        (lambda members: members[:-1], "lacks 1 files, 'private/uploads/1.zip'"),
        (lambda members: members[1:], f"does not begin with {MEMBER}"),
        (_other_version, "schema_version"),
    ],
)
def test_a_backup_that_was_changed_is_refused_before_anything_is_written(
    tmp_path: Path,
    filled: Store,
    change: Callable[[list[Member]], list[Member]],
    says: str,
) -> None:
    _made(filled, tmp_path / "b.tar")
    _rewritten(tmp_path / "b.tar", change)
    target = memory_store()
    with pytest.raises(SubmitterError, match=says) as caught:
        _put_back(tmp_path / "b.tar", target, tmp_path)
    assert caught.value.code == "bad_backup"
    assert target.public.list() == target.private.list() == ()


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.6, 0.999])
def test_a_backup_that_was_cut_off_is_refused(tmp_path: Path, filled: Store, kept: float) -> None:
    _made(filled, tmp_path / "b.tar")
    content = (tmp_path / "b.tar").read_bytes()
    (tmp_path / "b.tar").write_bytes(content[: int(len(content) * kept) - (kept > 0.9) * 20_000])
    with pytest.raises(SubmitterError) as caught, opened_backup(tmp_path / "b.tar"):
        pass
    assert caught.value.code == "bad_backup"


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no tar at all" * 1000)
    for path, code in ((tmp_path / "a", "bad_backup"), (tmp_path / "b", "no_backup")):
        with pytest.raises(SubmitterError) as caught, opened_backup(path):
            pass
        assert caught.value.code == code


@pytest.mark.slow
def test_a_restore_that_was_stopped_goes_on(tmp_path: Path, filled: Store) -> None:
    _made(filled, tmp_path / "b.tar")
    target = memory_store()
    with opened_backup(tmp_path / "b.tar") as (_, kept):
        next(stopped := copy_store(kept, target, tmp_path, anew=False))
        del stopped
    assert _put_back(tmp_path / "b.tar", target, tmp_path)[0] == "public: 31 files copied."
    assert _read(target.public) == _read(filled.public)


def test_a_store_that_holds_something_else_is_left_alone(tmp_path: Path, filled: Store) -> None:
    _made(filled, tmp_path / "b.tar")
    target = memory_store()
    target.public.commit({"mine": b"m"}, parent=target.public.head(), message="m")
    with pytest.raises(SubmitterError) as caught:
        _put_back(tmp_path / "b.tar", target, tmp_path)
    assert caught.value.code == "target_not_empty"
    assert _read(target.public) == {"mine": b"m"}


@pytest.mark.slow
def test_a_backup_is_never_written_to(tmp_path: Path, filled: Store) -> None:
    _made(filled, tmp_path / "b.tar")
    with opened_backup(tmp_path / "b.tar") as (_, kept), pytest.raises(PlatformError) as caught:
        kept.public.commit({"a": b"a"}, parent=kept.public.head(), message="m")
    assert caught.value.code == "read_only"


@pytest.mark.slow
@pytest.mark.parametrize("side", ["public", "private"])
def test_a_store_that_went_on_since_is_not_set_back(
    tmp_path: Path, filled: Store, side: str
) -> None:
    _made(filled, tmp_path / "b.tar")
    target = memory_store()
    _put_back(tmp_path / "b.tar", target, tmp_path)
    went_on: Repository = getattr(target, side)
    path = went_on.list()[0]
    went_on.commit({path: b"newer"}, parent=went_on.head(), message="m")
    lost = target.public.list()[-1]
    target.public.commit({lost: None}, parent=target.public.head(), message="m")
    with pytest.raises(SubmitterError, match=f"{side} side .* another '{path}'") as caught:
        _put_back(tmp_path / "b.tar", target, tmp_path)
    assert caught.value.code == "target_not_empty"
    assert went_on.read(path) == b"newer"
    assert not target.public.has(lost)  # Neither side was written to.


@pytest.mark.slow
def test_neither_side_is_written_where_one_holds_something_else(
    tmp_path: Path, filled: Store
) -> None:
    _made(filled, tmp_path / "b.tar")
    target = memory_store()
    target.private.commit({"mine": b"m"}, parent=target.private.head(), message="m")
    with pytest.raises(SubmitterError):
        _put_back(tmp_path / "b.tar", target, tmp_path)
    assert target.public.list() == ()


def _named_outside(members: list[Member]) -> list[Member]:
    told = json.loads(members[0][1])
    told["public"]["files"]["../evil"] = told["public"]["files"].pop("queue.json")
    renamed = [("public/../evil" if m.name == "public/queue.json" else m.name) for m, _ in members]
    for (member, _), name in zip(members, renamed, strict=True):
        member.name = name
    content = json.dumps(told).encode()
    members[0][0].size = len(content)
    return [(members[0][0], content), *members[1:]]


def _without_numbers(members: list[Member]) -> list[Member]:
    members[2][0].pax_headers = {"GNU.sparse.size": "many"}
    return members


@pytest.mark.slow
@pytest.mark.parametrize("change", [_named_outside, _without_numbers])
def test_a_backup_made_by_somebody_hostile_is_refused_in_words(
    tmp_path: Path, filled: Store, change: Callable[[list[Member]], list[Member]]
) -> None:
    _made(filled, tmp_path / "b.tar")
    _rewritten(tmp_path / "b.tar", change)
    with pytest.raises(SubmitterError) as caught, opened_backup(tmp_path / "b.tar"):
        pass
    assert caught.value.code == "bad_backup"


@pytest.mark.slow
def test_a_full_folder_for_temporary_files_is_named(tmp_path: Path, filled: Store) -> None:
    _made(filled, tmp_path / "b.tar")
    with (
        opened_backup(tmp_path / "b.tar") as (_, kept),
        pytest.raises(TransientError, match="out of a backup into /dev/no-folder"),
    ):
        kept.private.fetch("uploads/1.zip", Path("/dev/no-folder/x"))


def test_a_name_that_no_disk_takes_is_told_so(tmp_path: Path, filled: Store) -> None:
    with pytest.raises(TransientError, match="could not write the backup"):
        _made(filled, tmp_path / ("n" * 300))
