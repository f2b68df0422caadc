"""A worker's disk: what is given up, in which order, and when nothing more is begun."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from evaluator.folder_cache import bytes_below
from evaluator.hub.model_cache import ModelCache
from evaluator.in_use import in_use
from evaluator.worker.disk import DiskPlaces, DiskWatch, free_bytes
from leaderboard.states import State
from tests.kit.refusals import refused
from tests.kit.worker import Rig, wait_for

NOW = 1_000_000.0
LONG_AGO = NOW - 7200.0
MODEL = f"owner/model@{'0' * 40}"
PIECE = 4096
ORDER = (
    "scratch/unpacked/left",
    "scratch/shards/done",
    f"models/{MODEL.replace('/', '--')}",
    "embeddings/0123456789abcdef",
)
KEPT = {"scratch/shards/going-on", "scratch/outbox/waiting"}


def places(folder: Path) -> DiskPlaces:
    return DiskPlaces(folder / "scratch", folder / "models", folder / "embeddings")


def put(folder: Path, at: float = LONG_AGO, n_bytes: int = PIECE) -> Path:
    folder.mkdir(parents=True)
    (folder / "content").write_bytes(b"x" * n_bytes)
    for path in (folder / "content", folder):
        os.utime(path, (at, at))
    return folder


@dataclass
class Disk:
    """A disk of a few pieces, of which the files below a folder take one each."""

    folder: Path
    pieces: int
    time: float = NOW
    asked: int = 0

    def left(self) -> set[str]:
        files = (p for p in self.folder.rglob("*") if p.is_file() and p.stat().st_size)
        return {path.parent.relative_to(self.folder).as_posix() for path in files}

    def over(self) -> Collection[str]:
        self.asked += 1
        return ("done",)

    def watch(self, *, floor: int = 1, high: int = 2) -> DiskWatch:
        return DiskWatch(
            places(self.folder),
            self.over,
            floor_bytes=floor * PIECE,
            high_bytes=high * PIECE,
            clock=lambda: self.time,
            free=lambda _: (self.pieces - len(self.left())) * PIECE,
        )


@pytest.fixture
def full(tmp_path: Path) -> Disk:
    """Six pieces, all of them taken: by two modules, two sets of shards, a model, embeddings."""
    for place in (*ORDER, *KEPT):
        put(tmp_path / place)
    return Disk(tmp_path, pieces=6)


@pytest.mark.parametrize("wanted", [1, 2, 3, 4])
def test_so_much_is_given_up_as_is_needed_and_in_this_order(full: Disk, wanted: int) -> None:
    full.watch(high=wanted).check()
    assert full.left() == {*KEPT, *ORDER[wanted:]}


def test_with_room_enough_nothing_is_given_up_and_the_store_is_not_read(full: Disk) -> None:
    full.pieces = 20
    full.watch().check()
    assert full.left() == {*KEPT, *ORDER}
    assert full.asked == 0


def test_below_the_floor_nothing_is_begun_until_there_is_room_again(full: Disk) -> None:
    watch = full.watch(floor=5, high=5)
    with refused("disk_low", kind=TransientError) as caught:
        watch.check()
    assert full.left() == KEPT
    assert str(full.folder / "scratch") in caught.value.message
    assert caught.value.hint
    full.pieces = 20
    watch.check()


def test_what_a_running_box_uses_is_kept(full: Disk) -> None:
    models = ModelCache(full.folder / "models")
    with in_use(full.folder / ORDER[0]), models.lent([MODEL]):
        full.watch(high=4).check()
        assert full.left() == {*KEPT, ORDER[0], ORDER[2]}


@pytest.mark.parametrize(
    ("more", "at", "kept"),
    [
        ("scratch/unpacked/new", NOW - 5, "scratch/unpacked/new"),
        ("scratch/outbox/done", LONG_AGO, "scratch/shards/done"),
    ],
    ids=["new", "outbox"],
)
def test_what_may_be_needed_yet_is_kept(full: Disk, more: str, at: float, kept: str) -> None:
    put(full.folder / more, at)
    full.pieces += 1
    full.watch(high=3).check()
    assert kept in full.left()


def test_shards_are_kept_where_the_store_does_not_say_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: Disk) -> Collection[str]:
        raise TransientError("store_failed", "The store failed.")

    put(tmp_path / "scratch/shards/done")
    monkeypatch.setattr(Disk, "over", gone)
    disk = Disk(tmp_path, pieces=1)
    with pytest.raises(TransientError):
        disk.watch().check()
    assert disk.left() == {"scratch/shards/done"}


def test_the_model_used_longest_ago_goes_first(tmp_path: Path) -> None:
    for name, used in (("a", LONG_AGO + 9), ("b", LONG_AGO), ("c", LONG_AGO + 5)):
        place = put(tmp_path / f"models/o--{name}@{'0' * 40}")
        mark = place.with_name(f"{place.name}.used")
        mark.touch()
        os.utime(mark, (used, used))
    disk = Disk(tmp_path, pieces=3)
    disk.watch(high=2).check()
    assert disk.left() == {f"models/o--a@{'0' * 40}"}


def test_where_nothing_is_to_be_had_the_store_is_asked_once_a_minute(tmp_path: Path) -> None:
    put(tmp_path / "scratch/shards/going-on")
    disk = Disk(tmp_path, pieces=2)
    watch = disk.watch(floor=1, high=2)
    for _ in range(20):
        watch.check()
    assert disk.asked == 1
    disk.time += 61
    watch.check()
    assert disk.asked == 2


def test_a_long_run_is_watched_as_well(full: Disk) -> None:
    with full.watch(high=4).watching(every_s=0.01):
        wait_for(lambda: full.left() == KEPT)


def test_a_run_loses_nothing_to_a_full_disk_in_its_middle(rig: Rig) -> None:
    name, unpacked = rig.sent(), rig.folder / "scratch/unpacked"
    put(unpacked / "left")
    # A day later by the watch's clock, so that nothing is kept for being new.
    watch = DiskWatch(
        places(rig.folder), lambda: (), clock=lambda: time.time() + 86400.0, free=lambda _: 0
    )
    seen: set[int] = set()

    def score(brightness: int, _: str) -> float:
        watch.relieve()
        seen.add(len(list(unpacked.iterdir())))
        return float(brightness)

    rig.backend.score = score
    rig.worker().run_all()
    assert rig.state(name) is State.PUBLISHED
    assert seen == {2}, "the upload and the module; what was left there is gone"
    assert not (unpacked / "left").exists()


SMALL = 8 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[Path], int]]]:
    """A file system of 8 MiB and what is free on it; counted, where none can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", f"size={SMALL}", "assay-test", str(folder))
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield folder, lambda _: SMALL - bytes_below(folder)
        return
    yield folder, free_bytes
    subprocess.run(["umount", str(folder)], check=True)


def test_a_small_disk_that_is_nearly_full_has_room_again(
    small_disk: tuple[Path, Callable[[Path], int]],
) -> None:
    folder, free = small_disk
    watch = DiskWatch(
        places(folder), lambda: ("done",), floor_bytes=4 << 20, high_bytes=6 << 20, free=free
    )
    long_ago = time.time() - 7200
    put(folder / "scratch/unpacked/left", long_ago, 2 << 20)
    put(folder / "scratch/shards/done", long_ago, 3 << 20)
    put(folder / "scratch/shards/going-on", long_ago, 1 << 20)
    assert free(folder) < 3 << 20
    watch.check()
    assert free(folder) >= 6 << 20
    put(folder / "scratch/shards/more", n_bytes=4 << 20)
    with pytest.raises(TransientError):
        watch.check()
