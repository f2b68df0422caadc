"""What a terminal shows of a submission that waits or runs, and of what its scorer prints."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from benchmarks.errors import SubmitterError, TransientError
from evaluator.commands.following import OUTAGE_S, Telling, Turns, watched
from evaluator.commands.status import logs, status
from leaderboard.governance.accounts import Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.memory import memory_store
from leaderboard.store.opening import StoreName
from tests.leaderboard.pages.failing_store import Switch, failing
from tests.leaderboard.pages.mine.own_submissions import QUEUED, give
from tests.leaderboard.pages.queue.running_submission import RUNNING, SAID, SILENT, WORKER, run_one
from tests.leaderboard.pages.synthetic import NASTY, NOW

ADA = Account(origin=Origin.LOCAL, name="ada")


@pytest.fixture
def store() -> Store:
    return run_one(give(memory_store(lambda: NOW), ADA), ADA)


@pytest.fixture(params=["ada", "grace"])
def anyone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ASSAY_USER", request.param)
    return str(request.param)


@pytest.fixture
def ada(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_USER", "ada")


def told(telling: Telling, store: Store) -> list[str]:
    return [line.plain for line in telling.lines(Ledger(store).whole_status(RUNNING))]


def end(store: Store, log: str) -> None:
    event = Event(at=NOW, state=State.FAILED, by=WORKER, reason="It stopped.", log=log)
    Ledger(store).append(RUNNING, [event])


def test_an_author_hears_each_line_once_and_as_it_comes(store: Store, ada: None) -> None:
    telling = Telling(store, RUNNING)
    first = told(telling, store)
    assert first[0].split()[2] == "received"
    assert sum("batch 59" in line for line in first) == 1
    assert told(telling, store) == []
    store.live.say(RUNNING, "one more\nunfin")
    assert told(telling, store) == ["    | one more"]
    store.live.say(RUNNING, "ished\n")
    assert told(telling, store) == ["    | unfinished"]
    # The worker ends it: the log of the event holds what was told, and one line that was not.
    store.live.forget(RUNNING)
    end(store, f"{SAID}one more\nunfinished\nTraceback\n"[-300:])
    last = told(telling, store)
    assert last[0].split()[2:5] == ["failed", "by", f"{WORKER}:"]
    assert last[1:] == ["    | Traceback"]


def test_of_what_ended_before_the_log_is_told_once(store: Store, ada: None) -> None:
    end(store, "a\nb\n")
    lines = told(Telling(store, RUNNING), store)
    assert [line for line in lines if line.startswith("    |")] == ["    | a", "    | b"]


def test_nobody_else_hears_a_word(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_USER", "grace")
    lines = told(Telling(store, RUNNING), store)
    assert lines[0].split()[2] == "received"
    assert not any("batch" in line or "careful" in line for line in lines)


def test_nothing_that_is_printed_moves_the_cursor(store: Store, ada: None) -> None:
    store.live.say(RUNNING, f"{NASTY}\x1b[2J\x1b]0;title\x07\r\n")
    end(store, f"{NASTY}\x1b[2J")
    lines = told(Telling(store, RUNNING), store)
    assert any("onerror=alert" in line for line in lines)
    assert not any(set(line) & set("\x1b\x07\r\u202e\x9b") for line in lines)
    assert not any("[2J" in line for line in lines)


def test_a_log_that_cannot_be_read_is_said_once_and_following_goes_on(
    store: Store, ada: None
) -> None:
    class Mute(MemoryLive):
        away = True

        def said(self, submission_id: str) -> str:
            if self.away:
                raise TransientError("no_relay", "The app does not answer.")
            return super().said(submission_id)

    live = Mute()
    live.say(RUNNING, "a line\n")
    muted = replace(store, live=live)
    telling = Telling(muted, RUNNING)
    assert sum("cannot be read" in line for line in told(telling, store)) == 1
    assert told(telling, store) == []
    live.away = False
    assert told(telling, store) == ["    | a line"]


def test_where_logs_are_shown_on_the_page_alone_that_is_said_once(store: Store, ada: None) -> None:
    class OnPage(MemoryLive):
        asked = 0

        def said(self, submission_id: str) -> str:
            self.asked += 1
            raise SubmitterError("no_live_secret", "On the pages.", "Open https://x/mine")

    live = OnPage()
    telling = Telling(replace(store, live=live), RUNNING)
    assert sum("https://x/mine" in line for line in told(telling, store)) == 1
    assert told(telling, store) == []
    assert live.asked == 1


def test_following_bears_an_outage_of_minutes_and_no_longer(store: Store, ada: None) -> None:
    switch, now = Switch(), [0.0]
    out = failing(store, switch)

    def sleep(seconds: float) -> None:
        now[0] += seconds
        switch.out = 10 < now[0] < 200 or now[0] > 1000
        if 300 < now[0] < 320:
            now[0] = 1000.0

    seen: list[float] = []
    followed = watched(out, RUNNING, follow=True, sleep=sleep, steady=lambda: now[0])
    with pytest.raises(TransientError):
        seen.extend(now[0] for _ in followed)
    assert any(moment > 200 for moment in seen)
    assert OUTAGE_S < now[0] - seen[-1] < OUTAGE_S + 20
    with pytest.raises(TransientError):
        next(watched(out, RUNNING, follow=False, sleep=sleep))


def test_a_place_is_told_of_what_waits_and_costs_nothing_else(store: Store) -> None:
    ledger = Ledger(store)
    turn = Turns(store).of([ledger.status(QUEUED)])[QUEUED]
    assert (turn.place, turn.of) == (1, 1)
    running, switch = ledger.status(RUNNING), Switch()
    switch.out = True
    assert Turns(failing(store, switch)).of([running]) == {}


@pytest.fixture
def folder(tmp_path: Path) -> StoreName:
    opened = folder_store(tmp_path, lambda: NOW)
    run_one(give(opened, ADA), ADA)
    beat = opened.live.pulses()[0]
    opened.live.beat(beat.model_copy(update={"at": folder_store(tmp_path).clock()}))
    return StoreName(str(tmp_path))


def test_status_shows_who_has_it_which_attempt_and_how_far_it_is(
    folder: StoreName, anyone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status(RUNNING, store=folder)
    shown = " ".join(capsys.readouterr().out.split())
    assert WORKER in shown
    assert "2 of 3" in shown
    assert SILENT in shown
    assert "ratings: scoring 1,920 of 4,800, 81.3 pairs/s, about 12.6 min left" in shown
    assert ("careful" in shown) is (anyone == "ada")
    assert "\x1b[31m" not in shown


def test_status_shows_the_place_of_one_that_waits(
    folder: StoreName, ada: None, capsys: pytest.CaptureFixture[str]
) -> None:
    status(QUEUED, store=folder)
    assert "waiting for a worker: place 1 of 1" in capsys.readouterr().out


def test_logs_show_the_running_log_to_its_author_alone(
    folder: StoreName, anyone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs(RUNNING, store=folder)
    shown = capsys.readouterr().out
    assert "claimed by gpu-2" in shown
    assert ("    | batch 59" in shown) is (anyone == "ada")


def test_followed_progress_holds_no_words_for_others(
    folder: StoreName, anyone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = folder.open()
    ending = threading.Timer(0.5, lambda: end(opened, ""))
    ending.start()
    with pytest.raises(typer.Exit) as stopped:
        status(RUNNING, follow=True, store=folder, as_json=True)
    assert stopped.value.exit_code == 1
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["progress"]["done"] == 1920
    assert ("careful" in first["progress"]["last_line"]) is (anyone == "ada")
    assert first["turn"] is None
