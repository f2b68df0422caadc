"""What another user of the worker's machine can put in its way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.isolation import bubblewrap as outside
from evaluator.isolation import processes, users
from evaluator.isolation.layout import PACKAGE

SOMEBODY = 65533


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A mark that says of this very process that it is left of a box."""
    folder = tmp_path / "assay" / "broken"
    folder.mkdir(mode=0o700, parents=True)
    (folder / f"{os.getpid()}-{processes.started(os.getpid())}").touch()
    return folder


def by_somebody(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, SOMEBODY, SOMEBODY)


def for_everybody(folder: Path) -> None:
    folder.chmod(0o777)


def a_link(folder: Path) -> None:
    kept = folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(kept)


def test_marks_of_our_own_count(mark: Path) -> None:
    assert processes.survivors(mark) == (os.getpid(),)


@pytest.mark.parametrize("change", [by_somebody, for_everybody, a_link])
@pytest.mark.parametrize("which", ["the folder", "the one above"])
def test_marks_that_others_can_make_stop_no_worker(
    mark: Path, change: Callable[[Path], None], which: str
) -> None:
    change(mark if which == "the folder" else mark.parent)
    assert processes.survivors(mark) == ()


def test_a_place_for_marks_that_cannot_be_used_is_said_and_hides_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken").write_text("a file where the folder should be")
    processes.mark_survivors([os.getpid()], tmp_path / "broken")
    assert "cannot be marked" in caplog.text


@pytest.mark.parametrize(
    ("me", "user", "ours"),
    [(1000, 1000, True), (1000, SOMEBODY, False), (0, 0, True), (0, users.UIDS[0], True),
     (0, SOMEBODY, False), (1000, users.UIDS[0], False)],
)  # fmt: skip
def test_only_boxes_of_our_own_are_taken_for_left_behind(
    monkeypatch: pytest.MonkeyPatch, me: int, user: int, ours: bool
) -> None:
    """Whoever makes a process look like one must not be able to stop a worker's start."""
    folder = processes.PROC / "7"
    texts = {
        folder / "comm": "bwrap\n",
        folder / "status": f"Uid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t7\t1\nPPid:\t1\n",
        processes.PROC / "1" / "comm": "init\n",
    }
    monkeypatch.setattr(os, "geteuid", lambda: me)
    monkeypatch.setattr(Path, "read_text", lambda path: texts[path])
    monkeypatch.setattr(Path, "read_bytes", lambda _: PACKAGE.encode())
    monkeypatch.setattr(processes, "pids_where", lambda matches: [n for n in [7] if matches(n)])
    assert outside.unreferenced() == ([7] if ours else [])
