"""A worker's disk: what is given up, in which order, and when nothing more is begun."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from evaluator.hub.model_shelf import ModelShelf
from evaluator.hub.shelf_room import bytes_below
from evaluator.in_use import in_use
from evaluator.worker.upkeep.disk_watch import DiskWatch, free_bytes
from evaluator.worker.upkeep.evictable import DiskPlaces
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from tests.evaluator.rig import Rig

NOW = 1_000_000.0
LONG_AGO = NOW - 7200.0
MODEL = f"owner/model@{'0' * 40}"
PIECE = 4096


@dataclass
class Disk:
    """A disk of a few pieces, of which the files below a folder take one each."""

    folder: Path
    pieces: int
    finished: tuple[str, ...] = ("done",)
    time: float = NOW
    asked: int = 0
    removed: list[str] = field(default_factory=list)

    def free(self, _: Path) -> int:
        there = sum(1 for path in self.folder.rglob("*") if path.is_file() and path.stat().st_size)
        return (self.pieces - there) * PIECE

    def over(self) -> Collection[str]:
        self.asked += 1
        return self.finished

    def watch(self, *, floor: int = 1, high: int = 2) -> DiskWatch:
        return DiskWatch(
            places(self.folder),
            self.over,
            floor_bytes=floor * PIECE,
            high_bytes=high * PIECE,
            clock=lambda: self.time,
            free=self.free,
        )


def places(folder: Path) -> DiskPlaces:
    return DiskPlaces(folder / "scratch", folder / "models", folder / "embeddings")


def put(folder: Path, at: float = LONG_AGO, n_bytes: int = PIECE) -> Path:
    folder.mkdir(parents=True)
    (folder / "content").write_bytes(b"x" * n_bytes)
    for path in (folder / "content", folder):
        os.utime(path, (at, at))
    return folder


@pytest.fixture
def full(tmp_path: Path) -> Disk:
    """Six pieces, all of them taken: by two modules, two sets of shards, a model, embeddings."""
    put(tmp_path / "scratch/unpacked/left")
    put(tmp_path / "scratch/shards/done")
    put(tmp_path / "scratch/shards/going-on")
    put(tmp_path / f"models/{MODEL.replace('/', '--')}")
    put(tmp_path / "embeddings/0123456789abcdef")
    put(tmp_path / "scratch/outbox/waiting")
    return Disk(tmp_path, pieces=6)


def left(disk: Disk) -> set[str]:
    files = (p for p in disk.folder.rglob("*") if p.is_file() and p.stat().st_size)
    return {path.parent.relative_to(disk.folder).as_posix() for path in files}


ORDER = (
    "scratch/unpacked/left",
    "scratch/shards/done",
    f"models/{MODEL.replace('/', '--')}",
    "embeddings/0123456789abcdef",
)
KEPT = {"scratch/shards/going-on", "scratch/outbox/waiting"}


@pytest.mark.parametrize("wanted", [1, 2, 3, 4])
def test_so_much_is_given_up_as_is_needed_and_in_this_order(full: Disk, wanted: int) -> None:
    full.watch(high=wanted).check()
    assert left(full) == {*KEPT, *ORDER[wanted:]}


def test_with_room_enough_nothing_is_given_up_and_the_store_is_not_read(full: Disk) -> None:
    full.pieces = 20
    full.watch().check()
    assert left(full) == {*KEPT, *ORDER}
    assert full.asked == 0


def test_below_the_floor_nothing_is_begun_and_the_figures_are_told(full: Disk) -> None:
    with pytest.raises(TransientError) as caught:
        full.watch(floor=5, high=5).check()
    assert caught.value.code == "disk_low"
    assert left(full) == KEPT
    assert "are free where" in caught.value.message
    assert str(full.folder / "scratch") in caught.value.message
    assert "Make room" in caught.value.hint


def test_work_goes_on_once_there_is_room_again(full: Disk) -> None:
    watch = full.watch(floor=5, high=5)
    with pytest.raises(TransientError):
        watch.check()
    full.pieces = 20
    watch.check()


def test_what_a_running_box_uses_is_kept(full: Disk) -> None:
    with (
        in_use(full.folder / "scratch/unpacked/left"),
        ModelShelf(full.folder / "models").lent([MODEL]),
    ):
        full.watch(high=4).check()
        assert left(full) == {*KEPT, ORDER[0], ORDER[2]}


def test_what_was_made_a_moment_ago_is_kept(full: Disk) -> None:
    put(full.folder / "scratch/unpacked/new", at=NOW - 5)
    full.pieces += 1
    full.watch(high=4).check()
    assert left(full) == {*KEPT, "scratch/unpacked/new"}


def test_shards_of_what_waits_in_the_outbox_are_kept(full: Disk) -> None:
    put(full.folder / "scratch/outbox/done")
    full.pieces += 1
    full.watch(high=3).check()
    assert "scratch/shards/done" in left(full)


def test_shards_are_kept_where_the_store_does_not_say_what_is_finished(tmp_path: Path) -> None:
    def gone() -> Collection[str]:
        raise TransientError("store_failed", "The store failed.")

    put(tmp_path / "scratch/shards/done")
    disk = Disk(tmp_path, pieces=1)
    disk.over = gone  # type: ignore[method-assign]
    with pytest.raises(TransientError, match="needed before"):
        disk.watch().check()
    assert left(disk) == {"scratch/shards/done"}


def test_the_model_used_longest_ago_goes_first(tmp_path: Path) -> None:
    for name, used in (("a", LONG_AGO + 9), ("b", LONG_AGO), ("c", LONG_AGO + 5)):
        place = put(tmp_path / f"models/o--{name}@{'0' * 40}")
        mark = place.with_name(f"{place.name}.used")
        mark.touch()
        os.utime(mark, (used, used))
    Disk(tmp_path, pieces=3).watch(high=2).check()
    assert left(Disk(tmp_path, 3)) == {f"models/o--a@{'0' * 40}"}


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
        until(lambda: left(full) == KEPT)


def until(done: Callable[[], bool], at_most_s: float = 10.0) -> None:
    end = time.monotonic() + at_most_s
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_run_loses_nothing_to_a_full_disk_in_its_middle(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    sent = rig.send().submission.submission_id
    unpacked = tmp_path / "scratch/unpacked"
    put(unpacked / "left")
    # A day later by the watch's clock, so that nothing is kept for being new.
    watch = DiskWatch(
        places(tmp_path),
        lambda: (),
        clock=lambda: time.time() + 86400.0,
        free=lambda _: 0,
    )
    seen: list[int] = []

    def score(brightness: int, _: str) -> float:
        watch.relieve()
        seen.append(sum(1 for _ in unpacked.iterdir()))
        return float(brightness)

    rig.backend.score = score
    rig.worker().run_all()
    assert Ledger(rig.store).status(sent).state is State.PUBLISHED
    assert seen
    assert set(seen) == {2}  # the upload and the module; what was left there is gone
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
    with pytest.raises(TransientError, match="given up"):
        watch.check()
