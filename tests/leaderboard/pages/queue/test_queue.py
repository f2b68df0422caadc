"""The queue: who is at work, who is next, what runs say, and what nobody else may see."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from leaderboard.pages.mine.mine_page import Asked, mine
from leaderboard.pages.queue.live_view import Moment, happening, ordinal
from leaderboard.pages.queue.queue_page import now_of, one_submission, queue
from leaderboard.pages.queue.table import queue_table, workers_line

from benchmarks.errors import TransientError
from evaluator.worker.claims.liveness import SILENT_AFTER
from evaluator.worker.ending.concluding import MAX_ATTEMPTS
from leaderboard.accounts import Account
from leaderboard.pages.page import Context
from leaderboard.pages.shown.states_shown import legend
from leaderboard.records import Kind, Status
from leaderboard.states import LEGEND, State
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.memory import memory_store
from leaderboard.views.queue import MOST_ATTEMPTS, alive, measured_s, outlooks
from tests.leaderboard.pages.parsed import Node, harmless, read
from tests.leaderboard.pages.synthetic import NASTY, NOW, fill, pulse, site_of, submission
from tests.leaderboard.web.own_submissions import (
    ADA,
    GRACE,
    HELD,
    NEW,
    OLD,
    OPERATOR,
    QUEUED,
    give,
)
from tests.leaderboard.web.running_submission import RUNNING, SILENT, WORKER, run_one

SECRET_WORDS = ("batch 59", "careful")
PROGRESS = "1,920 of 4,800 · 81.3/s"


@pytest.fixture
def site() -> Context:
    return site_of(run_one(give(fill(memory_store()), ADA), ADA))


def shown(html: str) -> Node:
    harmless(html)
    return read(html)


def queued(place: int, state: State = State.QUEUED, **more: Any) -> Status:
    """A submission received `place` hours ago."""
    account = more.pop("account", "")
    own = submission(place, f"metric-{place}", ("ratings",), account=account)
    return Status(submission=own, state=state, since=NOW, by="w", **more)


def table(statuses: list[Status], *pulses: Any, **more: Any) -> Node:
    return shown(queue_table(statuses, list(pulses), {}, NOW, **more))


# Everybody's.


def test_every_submission_is_shown_with_progress_reason_fault_and_flags(site: Context) -> None:
    page = shown(html := queue(site, ""))
    for words in ("CLIPScore", "BLIP2-ITM", "VQAScore", "HPSv2", "on pair 12", "in `score`",
                  "by the submitter", "310 of 960 · 38.4/s · about 17 s"):  # fmt: skip
        assert words in page, words
    (bar,) = page.all("progress[max=960]")
    assert bar["value"] == "310"
    assert page.all("a[href=./queue?submission=made-up-0000] .as-warn")  # The same content.
    assert "private submission" in page and "secret-metric" not in html
    assert any(HELD in link for link in page.links())
    history = shown(one_submission(site, "made-up-0003"))
    assert "Traceback (most recent call last):" in history and "in `score`" in history
    assert len(history.all(".as-history li")) == 4
    later = replace(site, clock=lambda: NOW + timedelta(hours=5))
    # What does not change is not drawn anew, so that an open log stays open.
    same = [one_submission(one, "made-up-0003") for one in (site, later)]
    assert same[0] == same[1]
    assert "no submission" in shown(one_submission(site, NASTY))
    private = shown(one_submission(site, HELD))
    assert "its author" in private and "secret-metric" not in private


def test_versions_and_flags_of_a_submission_lead_to_what_they_are_about(site: Context) -> None:
    pages = {ident: shown(one_submission(site, ident)) for ident in (NEW, OLD, QUEUED, HELD)}
    links = {ident: page.links("./queue?submission=") for ident, page in pages.items()}
    assert f"./queue?submission={OLD}" in links[NEW] and "took the place" in pages[NEW]
    assert f"./queue?submission={NEW}" in links[OLD] and "taken by" in pages[OLD]
    assert not any("the place of" in pages[ident] for ident in (QUEUED, HELD))
    assert "same scores" in pages[NEW] and "own network namespace" in pages[NEW]
    assert f"./ledger?subject={NEW}" in pages[NEW].links()


def test_work_comes_first_then_who_is_next_then_what_is_done_newest_first() -> None:
    states = {6: State.FAILED, 5: State.QUEUED, 4: State.SCORING, 3: State.RECEIVED,
              2: State.PUBLISHED, 0: State.QUEUED}  # fmt: skip
    page = table([queued(place, state) for place, state in states.items()], pulse(1))
    wanted = ["In work", "metric-4", "Waiting", "metric-5", "metric-3", "metric-0", "Done",
              "metric-2", "metric-6"]  # fmt: skip
    places = [page.text.index(word) for word in wanted]
    assert places == sorted(places)
    assert [f"{ordinal(k)} of 3" in page for k in (1, 2, 3)] == [True] * 3
    people = [queued(4, account="hub:ada"), queued(3, account="hub:ada"),
              queued(2, account="hub:ada"), queued(0, account="hub:grace")]  # fmt: skip
    words = table(people).text  # The order is that of the workers: accounts in turn.
    in_turn = [words.index(f"metric-{k}") for k in (4, 0, 3, 2)]
    assert in_turn == sorted(in_turn)
    shown_ = " ".join(map(ordinal, (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1003)))
    assert shown_ == "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th 1,003rd"


def test_in_a_rush_nothing_is_missing_without_a_word() -> None:
    statuses = [
        *(queued(place, State.PUBLISHED) for place in range(900, 850, -1)),
        *(queued(place, State.SCORING) for place in range(400, 395, -1)),
        *(queued(place) for place in range(300, 0, -1)),
    ]
    page = table(statuses, most=3)
    assert len(page.all(".as-q-name")) == 9 and "metric-297" not in page
    for cut in ("2 more in work", "297 more waiting", "47 more done"):
        assert cut in page


@pytest.mark.parametrize(
    ("place", "workers", "said"),
    [(4, [], "isolates code"), (4, [{"isolation_ok": False}], "isolates code"),
     (4, [{"isolation_ok": False}, {"worker": "v"}], "1st of 1 · may begin now"),
     (5, [], "for a worker"), (5, [{"isolation_ok": False}], "1st of 1")],
)  # fmt: skip
def test_one_that_waits_says_when_no_worker_may_run_it(
    place: int, workers: list[dict[str, Any]], said: str
) -> None:
    one = queued(place)
    assert (one.submission.kind is Kind.SCORES) is (place == 5)  # Any worker does for these.
    page = table([one], *(pulse(1, **worker) for worker in workers))
    assert said in page and ("waits for" in page) is ("worker" in said or "code" in said)


@pytest.mark.parametrize(
    ("state", "beat", "said", "bars"),
    [
        (State.SCORING, {"seconds_ago": 61, "stage": "scoring", "total": 9}, "No sign of", 0),
        (State.CLAIMED, {"seconds_ago": 59}, "no progress", 0),
        (State.CLAIMED, {"seconds_ago": 59, "submission_id": "made-up-0001"}, "no progress", 0),
        (State.SCORING, {"stage": "new", "done": 5, "total": 9}, "new · 5 of 9", 1),
    ],
)
def test_progress_is_that_of_the_worker_that_holds_it_while_it_lives(
    state: State, beat: dict[str, Any], said: str, bars: int
) -> None:
    mine_ = pulse(**{"submission_id": "made-up-0004", **beat})
    # One that lost it may go on beating for a while.
    lost = pulse(1, worker="lost", submission_id="made-up-0004", stage="old", done=1, total=9)
    page = table([queued(4, state)], mine_, *([lost] if bars else []))
    assert said in page and len(page.all("progress")) == bars
    assert ("No sign" in page) is ("No sign" in said)


def test_workers_are_alive_for_a_minute_after_a_beat_also_for_the_workers_themselves() -> None:
    for pulses, words in (([], "No worker"), ([pulse(61)], "No worker"),
                          ([pulse(59)], "namespaces"),
                          ([pulse(1, isolation_ok=False)], "no code")):  # fmt: skip
        assert words in workers_line(pulses, NOW)
    assert MAX_ATTEMPTS == MOST_ATTEMPTS
    ends = [NOW + SILENT_AFTER + timedelta(seconds=k) for k in (0, 1)]
    assert [bool(alive([pulse()], end)) for end in ends] == [True, False]


def test_how_code_was_run_is_said_of_what_is_on_the_boards_and_every_state_explained() -> None:
    one = queued(4, State.PUBLISHED, on_boards=True)
    ident = one.submission.submission_id
    for layers, badge in ((("own network namespace", "seccomp"), "isolated"),
                          (("unsandboxed",), "not isolated")):  # fmt: skip
        assert badge in table([one], isolation={ident: layers}).texts("span")
    assert "isolated" not in table([queued(4)], pulse(1), isolation={ident: ("seccomp",)})
    page = read(legend())
    for state in State:
        assert state.value in page.texts("span") and LEGEND[state].split("'")[0] in page


# What its author sees of one that runs or waits.


def now(site: Context, account: Account | None = ADA, ident: str = RUNNING, **more: Any) -> Node:
    return shown(mine(site, account, Asked(ident, **more)).parts[3])


def test_its_author_sees_attempt_progress_and_words_and_nobody_else_the_words(
    site: Context,
) -> None:
    page = now(site)
    for words in (WORKER, "lease until", f"2 of {MOST_ATTEMPTS}", "Attempt 1 by gpu-1", SILENT,
                  f"{PROGRESS} · about 13 min", "<img src=x", *SECRET_WORDS):  # fmt: skip
        assert words in page, words
    assert page.all("[data-follow=running]")
    assert all(words in now(site, OPERATOR, everybody=True) for words in SECRET_WORDS)
    public = queue(site, RUNNING) + one_submission(site, RUNNING) + now_of(site, RUNNING)
    for account in (GRACE, None):
        html = "".join(mine(site, account, Asked(RUNNING)).parts)
        assert not any(words in html + public for words in SECRET_WORDS)
    for words in (PROGRESS, f"2 of {MOST_ATTEMPTS}", SILENT):
        assert words in read(public)
    before = mine(site, ADA, Asked(RUNNING)).parts
    site.live.say(RUNNING, "another batch\n")
    after = mine(site, ADA, Asked(RUNNING)).parts  # Only the log is drawn anew.
    assert before[:3] == after[:3] and before[3] != after[3]


def test_a_log_that_cannot_be_read_or_a_silent_worker_is_said(site: Context) -> None:
    class Mute(MemoryLive):
        def said(self, submission_id: str) -> str:
            raise TransientError("no_relay", "Away.")

    live = Mute()
    for one in site.live.pulses():
        live.beat(one)
    page = now(replace(site, live=live))
    assert "log cannot" in page and "81.3/s" in page
    silent = now(replace(site, clock=lambda: NOW + timedelta(seconds=61)))
    assert "no sign" in silent and not silent.all("progress")


def test_one_that_waits_says_its_place_and_when_its_turn_may_come(site: Context) -> None:
    # worker-1 is done with what it has in 17 s, and this one is second in line.
    for html in (now(site, ident=QUEUED).text, now_of(site, QUEUED)):
        assert "2nd of 2" in html and "in about" in html and "Running log" not in html
    assert now_of(site, "made-up-0003") == now_of(site, NASTY) == ""  # Finished; unknown.


def test_every_field_of_a_hostile_pulse_is_text(site: Context) -> None:
    statuses = site.own(ADA).statuses()
    (status,) = (s for s in statuses if s.submission.submission_id == RUNNING)
    hostile = pulse(worker=WORKER, submission_id=RUNNING, stage=NASTY, last_line=NASTY, done=-5,
                    total=3, rate_per_s=1e308, eta_s=-4.0)  # fmt: skip
    moment = Moment((hostile,), NOW, None, words=True, said=NASTY)
    assert shown(happening(status, (), moment)).one("progress[max=3]")["value"] == "0"


# How long it may take.


def test_the_expected_wait_follows_from_what_the_workers_hold_and_is_never_made_up(
    site: Context,
) -> None:
    line = [queued(4 * k, account=f"hub:{k}") for k in range(4, 0, -1)]
    x = [f"x-0000000{k}" for k in range(4)]
    first = pulse(worker="a", submission_id=x[1], eta_s=30.0, claimed=(x[1],))
    second = pulse(worker="b", submission_id=x[2], eta_s=10.0, claimed=(x[2], x[3]))
    found = list(outlooks(line, [first, second], NOW, 100.0).values())
    assert [(one.place, one.wait_s) for one in found] == [
        *enumerate((30.0, 110.0, 130.0, 210.0), 1)
    ]
    busy, blind = pulse(worker="a", submission_id=x[1]), pulse(isolation_ok=False)
    for pulses, each, waits in (([busy], None, [None, None]), ([], 50.0, [None, None]),
                                ([pulse()], None, [0.0, None]),
                                ([blind], 50.0, [None, None])):  # fmt: skip
        of = outlooks(line[:2], pulses, NOW, each).values()
        assert [one.wait_s for one in of] == waits
    entries = site.reader.view().entries.values()
    costs = {entry.submission_id: entry.cost for entry in entries if entry.cost}
    totals = [sum(cost.seconds for cost in of.values()) for of in costs.values()]
    assert min(totals) <= (measured_s(entries) or 0.0) <= max(totals) and measured_s([]) is None
