"""What people see of a submission while it waits and while it runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from benchmarks.errors import TransientError
from leaderboard.governance.accounts import Account, Origin
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.outlook import MOST_ATTEMPTS, alive, measured_s, outlooks
from leaderboard.pages.mine.mine_page import Asked, mine
from leaderboard.pages.page import Context
from leaderboard.pages.queue.live_view import Moment, happening
from leaderboard.pages.queue.queue_page import now_of, one_submission, queue
from leaderboard.pages.queue.table import queue_table
from leaderboard.pages.reading import Reader
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.live.interface import MemoryLive, Pulse
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.mine.own_submissions import ADA, GRACE, OPERATOR, QUEUED, give
from tests.leaderboard.pages.queue.running_submission import RUNNING, SILENT, WORKER, run_one
from tests.leaderboard.pages.synthetic import NASTY, NOW, StubDesk, cards, fill, submission

SECRET_WORDS = ("batch 59", "careful")


@pytest.fixture
def site() -> Context:
    store = run_one(give(fill(memory_store()), ADA), ADA)
    return Context(
        Reader(store, cards()), store.live, StubDesk(), cards(), lambda: NOW, store, SignIn(Way.HUB)
    )


def waiting(place: int, account: str = "", minutes: int = 0) -> Status:
    own = submission(4 * place, f"metric-{place}", ("ratings",)).model_copy(
        update={"account": account, "received_at": NOW - timedelta(minutes=minutes)}
    )
    return Status(submission=own, state=State.QUEUED, since=NOW, by="desk")


def pulse(worker: str, **more: object) -> Pulse:
    return Pulse.model_validate(
        {"worker": worker, "at": NOW, "isolation_ok": True, "isolation": "x", **more}
    )


def test_its_author_sees_who_has_it_which_attempt_how_far_it_is_and_what_it_says(
    site: Context,
) -> None:
    now = mine(site, ADA, Asked(RUNNING)).parts[3]
    assert WORKER in now
    assert "lease until" in now
    assert f"2 of {MOST_ATTEMPTS}" in now
    assert "Attempt 1 by <bdi>gpu-1</bdi> ended" in now
    assert SILENT in now
    assert "1,920 of 4,800 · 81.3/s · about 13 min left" in now
    for words in SECRET_WORDS:
        assert words in now
    assert 'data-follow="running"' in now


@pytest.mark.parametrize("account", [GRACE, None])
def test_nobody_else_sees_a_word_of_it(site: Context, account: Account | None) -> None:
    shown = "".join(mine(site, account, Asked(RUNNING)).parts)
    public = queue(site, RUNNING) + one_submission(site, RUNNING) + now_of(site, RUNNING)
    for words in SECRET_WORDS:
        assert words not in shown
        assert words not in public
    assert "1,920 of 4,800 · 81.3/s" in public
    assert f"2 of {MOST_ATTEMPTS}" in public
    assert SILENT in public


def test_an_operator_sees_what_it_says(site: Context) -> None:
    now = mine(site, OPERATOR, Asked(RUNNING, everybody=True)).parts[3]
    assert all(words in now for words in SECRET_WORDS)


def test_what_it_says_is_text_alone(site: Context) -> None:
    assert site.live.said(RUNNING).endswith("gnp.exe\n")
    now = mine(site, ADA, Asked(RUNNING)).parts[3]
    for dangerous in ("<img", "\x1b", "\u202e", "[31m", "${alert", "{{7"):
        assert dangerous not in now, dangerous
    assert "&lt;img src=x" in now


def test_a_log_that_cannot_be_read_is_said_and_the_rest_is_shown(site: Context) -> None:
    class Mute(MemoryLive):
        def said(self, submission_id: str) -> str:
            raise TransientError("no_relay", "Away.")

    live = Mute()
    for one in site.live.pulses():
        live.beat(one)
    now = mine(replace(site, live=live), ADA, Asked(RUNNING)).parts[3]
    assert "The running log cannot be read at the moment" in now
    assert "81.3/s" in now


def test_what_has_not_changed_is_not_drawn_anew_while_the_log_grows(site: Context) -> None:
    before = mine(site, ADA, Asked(RUNNING))
    site.live.say(RUNNING, "another batch\n")
    after = mine(site, ADA, Asked(RUNNING))
    assert before.parts[:3] == after.parts[:3]
    assert before.parts[3] != after.parts[3]


def test_one_that_waits_says_its_place_and_when_its_turn_may_come(site: Context) -> None:
    now = mine(site, ADA, Asked(QUEUED)).parts[3]
    # worker-1 is done with what it has in 17 s, and this one is second in line.
    assert "2nd of 2 · may begin in about " in now
    assert "2nd of 2 · may begin in about " in now_of(site, QUEUED)
    assert "Running log" not in now


def test_what_is_finished_has_no_now(site: Context) -> None:
    assert now_of(site, "made-up-0003") == ""
    assert now_of(site, NASTY) == ""


def test_a_worker_that_is_silent_is_said_to_be(site: Context) -> None:
    later = replace(site, clock=lambda: NOW + timedelta(seconds=61))
    now = mine(later, ADA, Asked(RUNNING)).parts[3]
    assert "no sign of it for a minute or more" in now
    assert "<progress" not in now


def test_the_order_on_the_page_is_that_of_the_workers() -> None:
    statuses = [
        waiting(1, "hub:ada", 30), waiting(2, "hub:ada", 29), waiting(3, "hub:ada", 28),
        waiting(4, "hub:grace", 5),
    ]  # fmt: skip
    html = queue_table(statuses, [], {}, NOW)
    places = [html.index(f"metric-{n}<") for n in (1, 4, 2, 3)]
    assert places == sorted(places)


def test_the_expected_wait_follows_from_what_the_workers_hold() -> None:
    line = [waiting(n, f"hub:{n}", 60 - n) for n in range(1, 5)]
    pulses = [
        pulse("a", submission_id="x-00000001", eta_s=30.0, claimed=("x-00000001",)),
        pulse("b", submission_id="x-00000002", eta_s=10.0, claimed=("x-00000002", "x-00000003")),
    ]
    found = outlooks(line, pulses, NOW, 100.0)
    assert [found[s.submission.submission_id].wait_s for s in line] == [30.0, 110.0, 130.0, 210.0]
    assert [found[s.submission.submission_id].place for s in line] == [1, 2, 3, 4]


def test_where_nothing_was_measured_no_wait_is_made_up() -> None:
    line = [waiting(n, f"hub:{n}", 60 - n) for n in range(1, 3)]
    busy = [pulse("a", submission_id="x-00000001")]
    assert [one.wait_s for one in outlooks(line, busy, NOW, None).values()] == [None, None]
    assert [one.wait_s for one in outlooks(line, [], NOW, 50.0).values()] == [None, None]
    free = [pulse("a")]
    assert [one.wait_s for one in outlooks(line, free, NOW, None).values()] == [0.0, None]


def test_a_module_waits_for_a_worker_that_isolates() -> None:
    found = outlooks([waiting(1)], [pulse("judge", isolation_ok=False)], NOW, 50.0)
    assert [one.wait_s for one in found.values()] == [None]


def test_a_run_takes_what_runs_took_as_a_rule(site: Context) -> None:
    entries = site.reader.view().entries.values()
    found = measured_s(entries)
    assert found is not None
    costs = {entry.submission_id: entry.cost for entry in entries if entry.cost}
    totals = sorted(sum(cost.seconds for cost in of.values()) for of in costs.values())
    assert totals[0] <= found <= totals[-1]
    assert measured_s([]) is None


def test_the_page_and_the_worker_agree_on_when_one_is_silent_and_when_to_give_up() -> None:
    from evaluator.worker.claims.liveness import SILENT_AFTER
    from evaluator.worker.ending.concluding import MAX_ATTEMPTS

    assert MAX_ATTEMPTS == MOST_ATTEMPTS
    assert alive([pulse("a")], NOW + SILENT_AFTER)
    assert not alive([pulse("a")], NOW + SILENT_AFTER + timedelta(seconds=1))


def test_every_field_of_a_hostile_pulse_is_text(site: Context) -> None:
    status = next(
        s for s in site.own(Account(origin=Origin.HUB, name="ada")).statuses()
        if s.submission.submission_id == RUNNING
    )  # fmt: skip
    hostile = pulse(
        WORKER, submission_id=RUNNING, stage=NASTY, last_line=NASTY, done=-5, total=3,
        rate_per_s=1e308, eta_s=-4.0,
    )  # fmt: skip
    html = happening(status, (), Moment((hostile,), NOW, None, words=True, said=NASTY))
    assert "<img" not in html
    assert "\u202e" not in html
    assert 'value="0" max="3"' in html
