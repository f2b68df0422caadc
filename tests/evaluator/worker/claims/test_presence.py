"""The locks that say which workers of a machine live, while others look and clean up."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from evaluator.worker.claims import presence as module
from evaluator.worker.claims.presence import FORGOTTEN_AFTER_S, Presence

LATER = FORGOTTEN_AFTER_S * 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workers"


def left_long_ago(folder: Path, name: str) -> None:
    with Presence(folder, name):
        pass
    os.utime(folder / f"{name}.lock", (0.0, 0.0))


def test_a_worker_lives_while_it_holds_its_lock(folder: Path) -> None:
    other = Presence(folder, "w2")
    assert not other.ended("w1"), "nothing is known of it"
    with Presence(folder, "w1"):
        assert not other.ended("w1")
    assert other.ended("w1")


def test_what_ended_long_ago_is_removed_and_what_lives_is_not(folder: Path) -> None:
    left_long_ago(folder, "old")
    with Presence(folder, "w1"):
        os.utime(folder / "w1.lock", (0.0, 0.0))
        Presence(folder, "w2").sweep(LATER)
    assert [file.name for file in folder.iterdir()] == ["w1.lock"]


def test_a_worker_whose_file_is_removed_before_it_has_locked_it_takes_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would else hold the lock of a file that nobody finds."""
    left_long_ago(folder, "w1")
    flock, swept = fcntl.flock, list[int]()

    def sweeping(fd: int, how: int) -> None:
        if not swept:
            swept.append(fd)
            Presence(folder, "w2").sweep(LATER)
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", sweeping)
    with Presence(folder, "w1"):
        assert (folder / "w1.lock").exists()
        assert not Presence(folder, "w2").ended("w1")
    assert Presence(folder, "w2").ended("w1")


def test_a_worker_that_comes_back_while_its_file_is_removed_takes_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_long_ago(folder, "w1")
    unlink, entered = Path.unlink, list[threading.Thread]()
    back = Presence(folder, "w1")

    def beside(path: Path, *args: bool, **more: bool) -> None:
        if not entered:
            entered.append(threading.Thread(target=back.__enter__))
            entered[0].start()
            entered[0].join(0.2)  # It cannot have the lock before the file is gone.
        unlink(path, *args, **more)

    monkeypatch.setattr(Path, "unlink", beside)
    Presence(folder, "w2").sweep(LATER)
    entered[0].join(60)
    assert (folder / "w1.lock").exists()
    assert not Presence(folder, "w3").ended("w1")
    back.__exit__(None, None, None)
    assert Presence(folder, "w3").ended("w1")


def test_a_look_at_the_moment_a_worker_comes_back_does_not_keep_it_from_its_lock(
    folder: Path,
) -> None:
    """Without its lock it would be taken for ended by the very next look."""
    left_long_ago(folder, "w1")
    looking = (folder / "w1.lock").open("rb")
    fcntl.flock(looking, fcntl.LOCK_EX)
    back = Presence(folder, "w1")
    thread = threading.Thread(target=back.__enter__)
    thread.start()
    thread.join(0.05)
    looking.close()
    thread.join(60)
    assert not Presence(folder, "w2").ended("w1")
    back.__exit__(None, None, None)


def test_whoever_cannot_have_its_lock_holds_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)
    with Presence(folder, "w1"):
        with Presence(folder, "w1"):
            pass
        assert not Presence(folder, "w2").ended("w1"), "the first still lives"
