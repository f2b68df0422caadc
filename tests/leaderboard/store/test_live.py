"""Pulses and running logs, in memory and in a folder."""

from __future__ import annotations

import os
import stat
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.sources.output import DRAFT
from leaderboard.store.live.interface import (
    MOST_SAID,
    SAID_BYTES,
    FolderLive,
    Live,
    MemoryLive,
    last_line,
    new_lines,
)
from tests.kit.records import T0, a_pulse


@pytest.fixture(params=["memory", "folder"])
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Live:
    return MemoryLive() if request.param == "memory" else FolderLive(tmp_path / "live")


def test_the_latest_log_is_read_back_and_forgotten_on_request(live: Live) -> None:
    assert live.log_end("metric-0001") == ""
    live.set_log("metric-0001", "loading\nscor")
    live.set_log("metric-0001", "loading\nscoring\n")
    live.set_log("metric-0002", "another\n")
    assert live.log_end("metric-0001") == "loading\nscoring\n"
    live.forget("metric-0001")
    live.forget("metric-0003")
    assert (live.log_end("metric-0001"), live.log_end("metric-0002")) == ("", "another\n")


def test_a_log_keeps_its_end_in_whole_lines_and_of_an_endless_line_the_end(live: Live) -> None:
    live.set_log("metric-0001", "".join(f"line {n}\n" for n in range(30_000)))
    found = live.log_end("metric-0001")
    lines = found.splitlines()
    assert SAID_BYTES - 100 < len(found.encode()) <= SAID_BYTES
    assert lines == [f"line {n}" for n in range(30_000 - len(lines), 30_000)]
    live.set_log("metric-0002", "a" * (3 * SAID_BYTES) + "end")
    assert live.log_end("metric-0002") == "a" * (SAID_BYTES - 3) + "end"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[31mred\x1b[0m \x1b[2K\x1b[1;1Hhome\n", "red home\n"),
        ("\x1b]0;title\x07a\x1b]8;;https://e.example\x1b\\link\x1b]8;;\x1b\\\n", "alink\n"),
        ("\x9b31mred\x9b0m\n", "red\n"),
        ("a\x1b[", "a"),
        ("a\x1b[31mred\n", "ared\n"),
        ("10%\r20%\r30%\n", "30%\n"),
        ("done\r\nnext\r\n", "done\nnext\n"),
        ("evil\u202egnp.exe\u2066\u200b\n", "evilgnp.exe\n"),
        ("bell\x07back\x08null\x00\tend\n", "bellbacknull\tend\n"),
        ("<script>alert(1)</script>\n", "<script>alert(1)</script>\n"),
        ("\ud800\n", "?\n"),
        ("\u2028\u2029Größe 漢字 🙂\n", "Größe 漢字 🙂\n"),
    ],
)
def test_nothing_that_is_said_steers_a_terminal(live: Live, said: str, shown: str) -> None:
    live.set_log("metric-0001", said)
    assert live.log_end("metric-0001") == shown


def test_no_more_than_so_many_submissions_have_a_log(live: Live) -> None:
    for number in range(MOST_SAID + 3):
        live.set_log(f"metric-{number:04d}", "x\n")
    kept = [n for n in range(MOST_SAID + 3) if live.log_end(f"metric-{n:04d}")]
    assert (len(kept), kept[-1]) == (MOST_SAID, MOST_SAID + 2)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "A", "x" * 101, "a\n"])
def test_a_name_that_is_none_reaches_no_file(live: Live, name: str) -> None:
    for act in (lambda: live.beat(a_pulse(name)), lambda: live.set_log(name, "x")):
        with pytest.raises(ValueError, match="name"):
            act()


def test_a_pulse_of_an_older_worker_and_of_a_newer_one_is_read(tmp_path: Path) -> None:
    old = '{"worker":"old","at":"2026-01-01T12:00:00Z","isolation_ok":true,"isolation":"x"}'
    new = old.replace('"old"', '"new"').replace('"x"', '"x","colour":"blue"')
    (tmp_path / "old.json").write_text(old)
    (tmp_path / "new.json").write_text(new)
    (tmp_path / "torn.json").write_text(old[:40])
    found = {p.worker: p for p in FolderLive(tmp_path).pulses()}
    assert set(found) == {"old", "new"}
    assert (found["old"].last_line, found["old"].attempt, found["old"].claimed) == ("", 0, ())


def test_everybody_s_pulse_holds_none_of_the_scorer_s_words() -> None:
    assert a_pulse(last_line="secret", done=3).for_everybody == a_pulse(done=3)


def test_only_the_owner_can_read_what_lies_in_the_folder(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        live = FolderLive(tmp_path / "live")
        live.beat(a_pulse())
        live.set_log("metric-0001", "x\n")
        live.set_log("metric-0001", "y" * (2 * SAID_BYTES))
    finally:
        os.umask(before)
    modes = {
        path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "live", *(tmp_path / "live").rglob("*"))
    }
    assert modes == {
        "live": 0o700, "live/said": 0o700, "live/w1.json": 0o600,
        "live/said/metric-0001.log": 0o600,
    }  # fmt: skip


def test_a_log_silent_for_a_day_goes_when_another_begins(tmp_path: Path) -> None:
    live = FolderLive(tmp_path)
    live.set_log("metric-0001", "x\n")
    live.set_log("metric-0002", "x\n")
    day_ago = (tmp_path / "said/metric-0002.log").stat().st_mtime - 86_500
    os.utime(tmp_path / "said/metric-0001.log", (day_ago, day_ago))
    live.set_log("metric-0003", "x\n")
    assert [live.log_end(f"metric-000{n}") for n in (1, 2, 3)] == ["", "x\n", "x\n"]


@pytest.mark.parametrize("folder", ["", "said"])
def test_half_a_file_of_the_killed_goes_a_day_later_when_a_worker_comes(
    tmp_path: Path, folder: str
) -> None:
    live = FolderLive(tmp_path)
    live.set_log("metric-0001", "x\n")
    old, new = (tmp_path / folder / f"{name}.log.0{DRAFT}" for name in ("old", "new"))
    for draft in (old, new):
        draft.write_text("half a li")
    day_ago = new.stat().st_mtime - 86_500
    os.utime(old, (day_ago, day_ago))
    live.beat(a_pulse())
    assert (old.exists(), new.exists()) == (False, True)


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    live = FolderLive(tmp_path)
    live.set_log("metric-0001", "x\n")
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "said/metric-0002.log").symlink_to(tmp_path / "elsewhere")
    live.set_log("metric-0002", "x\n")
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_pulse_is_never_read_half_written(tmp_path: Path) -> None:
    live, stop, found = FolderLive(tmp_path), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            found.append(len(live.pulses()))

    live.beat(a_pulse())
    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        live.beat(a_pulse(isolation="x" * (number * 50), at=T0 + timedelta(seconds=number)))
    stop.set()
    reader.join()
    assert set(found) == {1}


def test_new_lines_are_told_once_though_the_start_of_a_log_goes() -> None:
    told, before = [], ""
    lines = [f"step {n % 7}\n" for n in range(200)]
    for end in range(0, 201, 5):
        window = "".join(lines[max(0, end - 30) : end]) + "unfinish"
        new, before = new_lines(before, window)
        told.append(new)
    assert "".join(told) == "".join(lines)


def test_lines_are_told_from_the_start_where_a_log_began_anew() -> None:
    _, before = new_lines("", "first attempt\nfailed\n")
    assert new_lines(before, "second attempt\n") == ("second attempt\n", "second attempt\n")


@pytest.mark.parametrize(("log", "last"), [("a\nb  \n \n", "b"), ("x" * 300, "x" * 200), ("", "")])
def test_the_last_line_is_the_last_that_says_anything(log: str, last: str) -> None:
    assert last_line(log) == last
