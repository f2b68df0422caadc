"""What a terminal shows of a submission that waits or runs, and of what its scorer prints."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.errors import SubmitterError, TransientError
from evaluator.commands.status import (
    OUTAGE_S,
    ProgressPrinter,
    QueueEstimates,
    status_table,
    watched,
)
from leaderboard.accounts import Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import MemoryLive
from tests.evaluator.commands.submitting import Run, id_of, sent
from tests.kit.boards import NASTY, NOW
from tests.kit.governed import House
from tests.kit.store import memory_store
from tests.leaderboard.web.failing_store import Switch, failing
from tests.leaderboard.web.own_submissions import (
    QUEUED,
    RUNNING,
    SAID,
    SILENT,
    WORKER,
    give,
    run_one,
)

ADA = Account(origin=Origin.LOCAL, name="ada")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """In which a submission of ada runs, who asks."""
    monkeypatch.setenv("ASSAY_USER", "ada")
    return run_one(give(memory_store(lambda: NOW), ADA), ADA)


def told(telling: ProgressPrinter, store: Store) -> list[str]:
    return [line.plain for line in telling.lines(Ledger(store).whole_status(RUNNING))]


def end(store: Store, log: str) -> None:
    event = Event(at=NOW, state=State.FAILED, by=WORKER, reason="It stopped.", log=log)
    Ledger(store).append(RUNNING, [event])


def test_an_author_hears_each_line_once_and_as_it_comes(store: Store) -> None:
    telling = ProgressPrinter(store, RUNNING)
    first = told(telling, store)
    assert first[0].split()[2] == "received"
    assert sum("batch 59" in line for line in first) == 1
    assert told(telling, store) == []
    store.live.set_log(RUNNING, f"{SAID}one more\nunfin")
    assert told(telling, store) == ["    | one more"]
    store.live.set_log(RUNNING, f"{SAID}one more\nunfinished\n")
    assert told(telling, store) == ["    | unfinished"]
    # The worker ends it: the log of the event holds what was told, and one line that was not.
    store.live.forget(RUNNING)
    end(store, f"{SAID}one more\nunfinished\nTraceback\n"[-300:])
    last = told(telling, store)
    assert last[0].split()[2:5] == ["failed", "by", f"{WORKER}:"]
    assert last[1:] == ["    | Traceback"]


def test_a_log_is_told_once_it_ended_and_nothing_moves_the_cursor(store: Store) -> None:
    store.live.set_log(RUNNING, f"{NASTY}\x1b[2J\x1b]0;title\x07\r\n")
    while_it_ran = told(ProgressPrinter(store, RUNNING), store)
    end(store, f"{NASTY}\x1b[2J\na\nb\n")
    lines = told(ProgressPrinter(store, RUNNING), store)
    assert lines[-2:] == ["    | a", "    | b"]
    for shown in (while_it_ran, lines):
        assert any("onerror=alert" in line for line in shown)
        assert not any(set(line) & set("\x1b\x07\r\u202e\x9b") or "[2J" in line for line in shown)


def test_nobody_else_hears_a_word(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_USER", "grace")
    lines = told(ProgressPrinter(store, RUNNING), store)
    assert lines[0].split()[2] == "received"
    assert not any("batch" in line or "careful" in line for line in lines)


class Mute(MemoryLive):
    """What its scorers say cannot be read, for a reason."""

    why: Exception | None = None
    asked = 0

    def log_end(self, submission_id: str) -> str:
        self.asked += 1
        if self.why:
            raise self.why
        return super().log_end(submission_id)


def test_a_log_that_cannot_be_read_is_said_once_and_following_goes_on(store: Store) -> None:
    live = Mute()
    live.set_log(RUNNING, "a line\n")
    live.why = TransientError("no_relay", "The app does not answer.")
    telling = ProgressPrinter(replace(store, live=live), RUNNING)
    assert sum("cannot be read" in line for line in told(telling, store)) == 1
    assert told(telling, store) == []
    live.why = None
    assert told(telling, store) == ["    | a line"]
    live = Mute()
    live.why = SubmitterError("no_live_secret", "On the pages.", "Open https://x/submit")
    telling = ProgressPrinter(replace(store, live=live), RUNNING)
    for n_told in (1, 0):
        assert sum("https://x/submit" in line for line in told(telling, store)) == n_told
    assert live.asked == 1, "where logs are shown on the page alone nobody asks again"


def test_following_bears_an_outage_of_minutes_and_no_longer(store: Store) -> None:
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
    turn = QueueEstimates(store).of([ledger.status(QUEUED)])[QUEUED]
    assert (turn.place, turn.of) == (1, 1)
    running, switch = ledger.status(RUNNING), Switch()
    switch.out = True
    assert QueueEstimates(failing(store, switch)).of([running]) == {}


# The commands ----------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    """The store of `run`, in which a submission of ada runs."""
    opened = folder_store(tmp_path / "store", lambda: NOW)
    run_one(give(opened, ADA), ADA)
    beat = opened.live.pulses()[0]
    opened.live.beat(beat.model_copy(update={"at": folder_store(tmp_path / "store").clock()}))
    return opened


@pytest.mark.parametrize("person", ["ada", "grace"])
def test_all_see_progress_and_the_author_alone_the_log(
    run: Run, kept: Store, monkeypatch: pytest.MonkeyPatch, person: str
) -> None:
    own = person == "ada"
    shown = run("status", RUNNING, user=person).told
    progress = "ratings: scoring 1,920 of 4,800, 81.3 pairs/s, about 13 min left"
    for said in (WORKER, "2 of 3", SILENT, progress):
        assert said in shown
    assert ("careful" in shown) is own and "\x1b[31m" not in shown
    assert "place 1 of 1" in run("status", QUEUED, user=person).told
    logs = run("logs", RUNNING, user=person).out
    assert f"by {WORKER}" in logs and ("    | batch 59" in logs) is own
    ending = partial(watched, sleep=lambda _: end(kept, ""))  # after the first look
    monkeypatch.setattr("evaluator.commands.status.watched", ending)
    followed = run("status", RUNNING, "--follow", "--json", user=person)
    first = json.loads(followed.out.splitlines()[0])
    assert (followed.code, first["turn"], first["progress"]["done"]) == (1, None, 1920)
    assert ("careful" in first["progress"]["last_line"]) is own


def test_following_ends_with_the_submission_and_its_exit_code(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    followed = run("status", own_id, "--follow", "--json")
    last = json.loads(followed.out.splitlines()[-1])
    assert (followed.code, last["status"]["state"], last["progress"]) == (0, "published", None)
    states = [line.split()[2] for line in run("logs", own_id, "--follow").out.splitlines()]
    assert " ".join(states) == "received queued claimed scoring scored judging published"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_an_id_is_folded_where_it_is_narrow_and_never_cut(width: int) -> None:
    house = House()
    status = house.ledger.status(house.send(name="a-metric-of-a-rather-long-name"))
    console = Console(width=width, legacy_windows=False)
    with console.capture() as captured:
        console.print(status_table([status], house.clock()))
    lines = [line for line in captured.get().splitlines() if line.startswith("│")]
    parts = [part for line in lines if (part := line.split("│")[1].strip())]
    assert "".join(parts) == status.submission.submission_id
    assert (len(parts) == 1) is (width == 200)
