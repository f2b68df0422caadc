"""Submissions in the queue and one by one: order, places, progress, steps, and what may be said."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.errors import TransientError
from evaluator.worker.liveness import SILENT_AFTER
from evaluator.worker.tasks import MAX_ATTEMPTS
from leaderboard.accounts import Account
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Kind, Status
from leaderboard.states import State
from leaderboard.store.live.interface import MemoryLive, readable_text
from leaderboard.views.submissions import (
    MOST_ATTEMPTS,
    Moment,
    Queue,
    SubmissionView,
    alive,
    measured_s,
    ordinal,
    outlooks,
    queue_of,
    row_of,
    submission_view,
)
from leaderboard.views.submit import MOST_OWN, SubmitQuery, place_of, wait_words
from leaderboard.web.page import Context
from tests.kit.boards import NASTY, NOW, event, fill, pulse, site_of, submission
from tests.kit.store import memory_store
from tests.leaderboard.web.own_submissions import (
    ADA,
    FAILED,
    GRACE,
    HELD,
    NEW,
    OLD,
    OPERATOR,
    QUEUED,
    RUNNING,
    SAID,
    SILENT,
    WORKER,
    give,
    run_one,
)


@pytest.fixture
def site() -> Context:
    return site_of(run_one(give(fill(memory_store()), ADA), ADA))


def queued(place: int, state: State = State.QUEUED, **more: Any) -> Status:
    """A submission received `place` hours ago."""
    own = submission(place, f"metric-{place}", ("ratings",), account=more.pop("account", ""))
    return Status(submission=own, state=state, since=NOW, by="w", **more)


def queue(statuses: list[Status], *pulses: Any, most: int = 100, **more: Any) -> Queue:
    return queue_of(statuses, Moment(pulses, NOW, **more), most=most)


def names(found: Queue) -> dict[str, list[str]]:
    return {group.title: [row.own.name for row in group.rows] for group in found.groups}


def chosen(site: Context, account: Account | None, ident: str = RUNNING) -> SubmissionView:
    found = place_of(site, account, ident).chosen
    assert found is not None
    return found


# The queue.


def test_work_comes_first_then_who_is_next_then_what_is_done_newest_first() -> None:
    states = {6: State.FAILED, 5: State.QUEUED, 4: State.SCORING, 3: State.RECEIVED,
              2: State.PUBLISHED, 0: State.QUEUED}  # fmt: skip
    found = queue([queued(place, state) for place, state in states.items()], pulse(1))
    assert names(found) == {
        "In work": ["metric-4"], "Waiting, next first": ["metric-5", "metric-3", "metric-0"],
        "Done, newest first": ["metric-2", "metric-6"],
    }  # fmt: skip
    assert dict(found.counts) == {"waiting": 3, "in work": 1, "published": 1, "stopped": 1}
    waiting = found.groups[1].rows
    assert [row.place.split(" ·")[0] for row in waiting] == ["1st of 3", "2nd of 3", "3rd of 3"]
    people = [queued(4, account="hub:ada"), queued(3, account="hub:ada"),
              queued(2, account="hub:ada"), queued(0, account="hub:grace")]  # fmt: skip
    (line,) = names(queue(people)).values()  # That of the workers: accounts in turn.
    assert line == [f"metric-{k}" for k in (4, 0, 3, 2)]
    said = " ".join(map(ordinal, (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1003)))
    assert said == "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th 1,003rd"


def test_in_a_rush_what_is_not_listed_is_counted() -> None:
    statuses = [
        *(queued(place, State.PUBLISHED) for place in range(900, 850, -1)),
        *(queued(place, State.SCORING) for place in range(400, 395, -1)),
        *(queued(place) for place in range(300, 0, -1)),
    ]
    found = queue(statuses, most=3)
    assert [(len(group.rows), group.beyond) for group in found.groups] == [
        (3, 2),
        (3, 297),
        (3, 47),
    ]


def test_the_queue_changes_by_itself_while_anything_waits_or_is_in_work() -> None:
    busy = {state: queue([queued(4, state)]).busy for state in State}
    working = {State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED,
               State.JUDGING}  # fmt: skip
    assert {state for state, is_busy in busy.items() if is_busy} == working
    assert not queue([]).busy


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
    ((row,),) = (group.rows for group in queue([one], *(pulse(1, **w) for w in workers)).groups)
    assert said in f"{row.place} {row.note}"
    assert ("Waits for" in row.note) is ("worker" in said or "code" in said)


@pytest.mark.parametrize(
    ("state", "beat", "said", "done"),
    [
        (State.SCORING, {"seconds_ago": 61, "stage": "scoring", "total": 9}, "No sign of", None),
        (State.CLAIMED, {"seconds_ago": 59}, "no progress", None),
        (State.CLAIMED, {"seconds_ago": 59, "submission_id": "made-up-0001"}, "no progress", None),
        (State.SCORING, {"stage": "new", "done": 5, "total": 9}, "at work on it", (5, 9)),
    ],
)
def test_progress_is_that_of_the_worker_that_holds_it_while_it_lives(
    state: State, beat: dict[str, Any], said: str, done: tuple[int, int] | None
) -> None:
    own = pulse(**{"submission_id": "made-up-0004", **beat})
    # One that lost it may go on beating for a while.
    lost = pulse(1, worker="lost", submission_id="made-up-0004", stage="old", done=1, total=9)
    row = row_of(queued(4, state), Moment((own, *([lost] if done else [])), NOW))
    assert said in row.note
    assert (row.progress and (row.progress.done, row.progress.total)) == done


def test_a_pulse_out_of_bounds_is_brought_within_them() -> None:
    hostile = pulse(submission_id="made-up-0004", stage=NASTY, done=-5, total=3, rate_per_s=1e308)
    progress = row_of(queued(4, State.SCORING), Moment((hostile,), NOW)).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.share) == (0, 3, 0.0)


def test_workers_are_alive_for_a_minute_after_a_beat_also_for_the_workers_themselves() -> None:
    assert [len(queue([], pulse(ago)).workers) for ago in (59, 61)] == [1, 0]
    assert queue([], pulse(61)).last_seen == NOW - timedelta(seconds=61)
    assert MAX_ATTEMPTS == MOST_ATTEMPTS
    ends = [NOW + SILENT_AFTER + timedelta(seconds=k) for k in (0, 1)]
    assert [bool(alive([pulse()], end)) for end in ends] == [True, False]


def test_a_built_in_metric_waits_for_any_worker_and_is_named_as_one() -> None:
    one = queued(4)
    source = f"builtin:clipscore-hessel@{'0' * 64}"
    own = one.submission.model_copy(update={"source": source})
    assert (own.builtin, own.boxed, one.submission.boxed) == ("clipscore-hessel", False, True)
    blind = pulse(1, isolation_ok=False)
    status = one.model_copy(update={"submission": own})
    ((row,),) = (group.rows for group in queue([status], blind).groups)
    assert (row.kind, "isolates" in row.note) == ("built-in metric", False)
    done = status.model_copy(update={"state": State.PUBLISHED, "on_boards": True})
    moment = Moment((), NOW, isolation={own.submission_id: ("built-in metric",)})
    assert row_of(done, moment).isolation == ""


def test_how_code_was_run_is_said_of_what_is_on_the_boards() -> None:
    one = queued(4, State.PUBLISHED, on_boards=True)
    ident = one.submission.submission_id
    for status, layers, said in (
        (one, ("own network namespace", "seccomp"), "isolated"),
        (one, ("unsandboxed",), "not isolated"), (one, ("scores as submitted, not re-run",), ""),
        (queued(4), ("seccomp",), ""),
    ):  # fmt: skip
        assert row_of(status, Moment((), NOW, isolation={ident: layers})).isolation == said


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
    assert "2 submissions ahead" in wait_words(site, Kind.SCORES)
    idle = replace(site, store=replace(site.store, live=MemoryLive()))
    assert "no worker that takes it" in wait_words(idle, Kind.METRIC)


# One of them.


def steps(view: SubmissionView) -> list[str]:
    return [step.state for step in view.steps]


def view_of(state: State, *, private: bool = False, before: State | None = None) -> SubmissionView:
    status = queued(4, state)
    own = status.submission.model_copy(update={"private": private})
    events = [event(one) for one in (before, state) if one]
    return submission_view(status.model_copy(update={"submission": own}), events, Moment((), NOW))


@pytest.mark.parametrize(
    ("state", "before", "wanted"),
    [(State.RECEIVED, None, "now later later later later"),
     (State.QUEUED, None, "done now later later later"),
     (State.CLAIMED, None, "done done now later later"),
     (State.SCORING, None, "done done now later later"),
     (State.SCORED, None, "done done done now later"),
     (State.JUDGING, None, "done done done now later"),
     (State.PUBLISHED, State.JUDGING, "done done done done done"),
     (State.FAILED, State.SCORING, "done done failed later later"),
     (State.FAILED, State.JUDGING, "done done done failed later"),
     (State.REJECTED, State.RECEIVED, "failed later later later later"),
     (State.WITHDRAWN, State.QUEUED, "")],
)  # fmt: skip
def test_the_steps_name_the_current_one_and_where_it_failed(
    state: State, before: State | None, wanted: str
) -> None:
    view = view_of(state, before=before)
    assert steps(view) == wanted.split()
    assert view.final is (state in {State.PUBLISHED, State.FAILED, State.REJECTED, State.WITHDRAWN})


def test_a_private_one_ends_with_results_that_its_author_alone_sees() -> None:
    view = view_of(State.HELD, private=True, before=State.JUDGING)
    assert [step.label for step in view.steps][-1] == "scored, private"
    assert (view.verdict_tone, view.final) == ("good", True)


@pytest.mark.parametrize(
    ("place", "fault", "said"),
    [(4, "submitter", "in your code"), (5, "submitter", "in your file"),
     (4, "platform", "on our side"), (4, "world", "something outside")],
)  # fmt: skip
def test_a_failure_says_whose_it_is_and_that_it_is_not_charged(
    place: int, fault: str, said: str
) -> None:
    status = queued(place, State.FAILED, fault=fault)
    events = [event(State.SCORING), event(State.FAILED)]
    view = submission_view(status, events, Moment((), NOW), mine=True, author=True)
    assert said in view.verdict and view.charged == "Not charged."
    of_others = submission_view(status, events, Moment((), NOW))
    assert "your" not in of_others.verdict and of_others.charged == ""
    scored = submission_view(queued(4, State.PUBLISHED, scored_at=NOW), (), Moment((), NOW),
                             mine=True)  # fmt: skip
    assert scored.charged == "Counts against the quota."


def test_its_author_and_operators_see_its_words_and_nobody_else_does(site: Context) -> None:
    for account in (ADA, OPERATOR):
        view = chosen(site, account)
        assert (view.log_shown, view.log) == (True, readable_text(SAID))
        assert view.row.last_line.startswith("careful")
        assert (view.worker, view.lost, view.at_it) == (WORKER, False, True)
        assert (view.row.attempts, [one.why for one in view.attempts]) == ("2 of 3", [SILENT])
    for other in (GRACE, None):
        view = chosen(site, other)
        assert (view.log_shown, view.log, view.row.last_line) == (False, "", "")
        assert view.row.progress is not None and view.row.progress.done == 1_920
        assert (view.mine, view.actions) == (False, ())


def test_a_log_that_cannot_be_read_and_a_silent_worker_are_told_apart_from_none(
    site: Context,
) -> None:
    class Mute(MemoryLive):
        def log_end(self, submission_id: str) -> str:
            raise TransientError("no_relay", "Away.")

    live = Mute()
    for one in site.live.pulses():
        live.beat(one)
    assert chosen(replace(site, store=replace(site.store, live=live)), ADA).log is None
    silent = chosen(replace(site, clock=lambda: NOW + timedelta(seconds=61)), ADA)
    assert silent.lost and silent.row.progress is None


def test_held_results_are_their_author_s_alone_and_have_intervals(site: Context) -> None:
    (run,) = chosen(site, ADA, HELD).runs
    first = run.headline[0]
    assert (first.value, first.low, first.high) == pytest.approx((0.63, 0.525, 0.733), abs=1e-3)
    assert (len(run.headline), len(run.results)) == (3, 13)
    public = chosen(site, GRACE, HELD)
    assert public.runs == () and public.row.own.name == "private submission"


@pytest.mark.parametrize("ident", ["private-0123456789", NASTY, "x" * 200])
def test_what_nobody_knows_is_unknown(site: Context, ident: str) -> None:
    asked = SubmitQuery.from_params({"id": ident, "kind": "nothing"})
    found = place_of(site, ADA, asked.submission_id)
    assert (found.chosen, found.unknown, asked.kind) == (None, ident[:100], Kind.METRIC)


def test_versions_lead_to_each_other_and_only_to_scored_ones(site: Context) -> None:
    ids = {
        ident: ([v.submission.submission_id for v in view.newer],
                [v.submission.submission_id for v in view.older])
        for ident in (NEW, OLD, QUEUED, HELD) for view in [chosen(site, ADA, ident)]
    }  # fmt: skip
    assert ids == {NEW: ([], [OLD]), OLD: ([NEW], []), QUEUED: ([], []), HELD: ([], [])}
    assert chosen(site, None, NEW).older[0].submission.submission_id == OLD
    assert chosen(site, None, NEW).runs[0].same_scores == "made-up-0000"


def test_one_s_own_are_listed_newest_first_and_the_rest_is_counted(site: Context) -> None:
    found = place_of(site, ADA)
    assert [row.own.submission_id for row in found.own][:2] == [RUNNING, NEW]
    assert (len(found.own), found.beyond) == (6, 0) and MOST_OWN >= 6
    assert place_of(site, GRACE).own == () and place_of(site, None).standings == ()
    whole = place_of(site, OPERATOR, everybody=True, most=99).queue
    listed = [row.own.name for group in whole.groups for row in group.rows]
    assert "secret-metric" in listed
    public = place_of(site, ADA, everybody=True, most=99).queue
    assert "secret-metric" not in [row.own.name for g in public.groups for row in g.rows]


def test_it_is_asked_again_only_while_something_changes_by_itself() -> None:
    store = give(memory_store(), ADA)
    site = site_of(store)
    assert place_of(site, ADA, FAILED).busy  # One of them waits.
    Ledger(store).append(QUEUED, [event(State.WITHDRAWN)])
    for ident in ("", FAILED, HELD, NEW):
        assert not place_of(site_of(store), ADA, ident).busy
