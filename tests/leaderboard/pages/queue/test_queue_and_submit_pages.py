"""The queue and the two ways in, as they answer people."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.desk import Examination, Gate, Problem
from leaderboard.governance.bans import Ban, bans_file
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.pages.about.glossary import about
from leaderboard.pages.page import Context, all_pages
from leaderboard.pages.queue.live_view import ordinal
from leaderboard.pages.queue.queue_page import one_submission, queue
from leaderboard.pages.queue.table import queue_table, workers_line
from leaderboard.pages.reading import Reader
from leaderboard.pages.shown.states_shown import legend
from leaderboard.pages.submit.answers import examined, gate_notice, refused, worker_banner
from leaderboard.pages.submit.submit_page import warnings
from leaderboard.pages.submit.submitting import (
    MOST_RECEIPT_BYTES,
    ModuleForm,
    ScoresForm,
    check_metric,
    may_send,
    send_metric,
    send_scores,
    standing_of,
)
from leaderboard.pages.visitors import who
from leaderboard.records import Kind, Status
from leaderboard.states import LEGEND, State
from leaderboard.store.live.interface import MemoryLive, Pulse
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.mine.own_submissions import ADA, HELD, NEW, give
from tests.leaderboard.pages.synthetic import NASTY, NOW, StubDesk, cards, fill, submission

REPOSITORY = Path(__file__).resolve().parents[4]


def context(desk: StubDesk | None = None) -> Context:
    store = fill(memory_store())
    return Context(
        Reader(store, cards()), store.live, desk or StubDesk(), cards(), lambda: NOW, store,
        SignIn(Way.HUB),
    )  # fmt: skip


def pulse(seconds_ago: float, **more: object) -> Pulse:
    return Pulse.model_validate(
        {"worker": "w", "at": NOW - timedelta(seconds=seconds_ago), "isolation_ok": True,
         "isolation": "namespaces", **more}
    )  # fmt: skip


# The queue.


def queued(place: int, state: State = State.QUEUED, **more: object) -> Status:
    """A submission received `place` hours ago."""
    own = submission(place, f"metric-{place}", ("ratings",))
    return Status.model_validate(
        {"submission": own, "state": state, "since": NOW, "by": "w", **more}
    )


def test_the_queue_shows_every_submission_with_reason_and_fault() -> None:
    html = queue(context(), "")
    assert all(name in html for name in ("CLIPScore", "BLIP2-ITM", "VQAScore", "HPSv2"))
    assert "The scorer stopped on pair 12" in html
    assert "Catch the error in `score`" in html
    assert "to be mended by the submitter" in html
    assert "<img" not in html


def test_work_comes_first_then_who_is_next_then_what_is_done_newest_first() -> None:
    oldest_first = [
        queued(6, State.FAILED),
        queued(5),
        queued(4, State.SCORING),
        queued(3, State.RECEIVED),
        queued(2, State.PUBLISHED),
        queued(0),
    ]
    html = queue_table(oldest_first, [pulse(1)], {}, NOW)
    shown = re.findall(r">(In work|Waiting|Done|metric-\d)", html)
    assert shown == [
        *("In work", "metric-4"),
        *("Waiting", "metric-5", "metric-3", "metric-0"),
        *("Done", "metric-2", "metric-6"),
    ]
    assert re.findall(r"\d\w\w of \d+", html) == ["1st of 3", "2nd of 3", "3rd of 3"]


def test_in_a_rush_nothing_is_missing_without_a_word() -> None:
    statuses = [
        *(queued(place, State.PUBLISHED) for place in range(900, 850, -1)),
        *(queued(place, State.SCORING) for place in range(400, 395, -1)),
        *(queued(place) for place in range(300, 0, -1)),
    ]
    html = queue_table(statuses, [], {}, NOW, most=3)
    assert html.count("as-q-name") == 9
    for cut in ("and 2 more in work", "and 297 more waiting", "and 47 more done"):
        assert cut in html
    assert html.index("metric-400") < html.index("metric-300") < html.index("metric-298")
    assert "metric-297" not in html


def test_places_are_ordinal_numbers() -> None:
    places = (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1003)
    shown = "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th 1,003rd"
    assert " ".join(map(ordinal, places)) == shown


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([], "1st of 1: waits for a worker that isolates code; none is running"),
        ([{"isolation_ok": False}], "waits for a worker that isolates code"),
        ([{"isolation_ok": False}, {"worker": "v"}], ">1st of 1 · may begin now<"),
    ],
)
def test_a_waiting_module_says_when_no_worker_may_run_it(
    workers: list[dict[str, object]], said: str
) -> None:
    assert said in queue_table([queued(4)], [pulse(1, **w) for w in workers], {}, NOW)


def test_a_waiting_scores_file_needs_any_worker() -> None:
    scores = queued(5)
    assert scores.submission.kind is Kind.SCORES
    assert "waits for a worker; none is running" in queue_table([scores], [], {}, NOW)
    plain = queue_table([scores], [pulse(1, isolation_ok=False)], {}, NOW)
    assert "waits for a worker" not in plain


def test_a_submission_in_work_shows_progress_rate_and_what_remains() -> None:
    html = queue(context(), "")
    assert '<progress value="310" max="960"' in html
    assert "310 of 960 · 38.4/s · about 17 s left" in html


def test_a_submission_whose_worker_is_silent_says_who_takes_over() -> None:
    silent = pulse(61, submission_id="made-up-0004", stage="scoring", total=9)
    html = queue_table([queued(4, State.SCORING)], [silent], {}, NOW)
    assert "No sign of its worker for a minute or more; another one takes it over" in html
    assert "lease" not in html
    assert "<progress" not in html


@pytest.mark.parametrize("before_its_first_progress", ["", "made-up-0004", "made-up-0001"])
def test_a_worker_that_lives_is_seen_before_its_first_progress(
    before_its_first_progress: str,
) -> None:
    living = pulse(59, submission_id=before_its_first_progress)
    html = queue_table([queued(4, State.CLAIMED)], [living], {}, NOW)
    assert "No sign of its worker" not in html
    assert "has it; no progress reported yet" in html


def test_progress_is_that_of_the_worker_that_holds_it() -> None:
    """One that lost it may go on beating for a while."""
    lost = pulse(1, worker="lost", submission_id="made-up-0004", stage="old", done=1, total=9)
    mine = pulse(1, submission_id="made-up-0004", stage="new", done=5, total=9)
    html = queue_table([queued(4, State.SCORING)], [mine, lost], {}, NOW)
    assert "new · 5 of 9" in html


def test_the_history_of_a_chosen_submission_holds_its_log_as_text() -> None:
    html = one_submission(context(), "made-up-0003")
    assert html.count("<li>") == 4
    assert "Traceback (most recent call last):\n" in html
    assert "<img" not in html


def test_the_history_stays_the_same_while_nothing_happens() -> None:
    """What does not change is not drawn anew, so that an open log stays open."""
    site = context()
    later = replace(site, clock=lambda: NOW + timedelta(hours=5))
    assert one_submission(site, "made-up-0003") == one_submission(later, "made-up-0003")


def test_a_private_submission_shows_neither_name_nor_author() -> None:
    site = context()
    give(site.store, ADA)
    html = queue(site, "") + one_submission(site, HELD)
    assert "private submission" in html
    assert HELD in html
    assert "secret-metric" not in html
    assert "its author" in html


def test_flags_lead_to_what_they_are_about() -> None:
    site = context()
    give(site.store, ADA)
    assert 'href="./queue?submission=made-up-0000"><span class="as-badge as-warn"' in queue(
        site, ""
    )
    html = one_submission(site, NEW)
    assert "same scores" in html
    assert "own network namespace" in html
    assert f"./ledger?subject={NEW}" in html


def test_how_code_was_run_is_said_of_what_is_on_the_boards() -> None:
    published = queued(4, State.PUBLISHED, on_boards=True)
    layers = {published.submission.submission_id: ("own network namespace", "seccomp")}
    assert ">isolated</span>" in queue_table([published], [], {}, NOW, isolation=layers)
    loose = {published.submission.submission_id: ("unsandboxed",)}
    assert ">not isolated</span>" in queue_table([published], [], {}, NOW, isolation=loose)
    assert "isolated" not in queue_table([queued(4)], [pulse(1)], {}, NOW, isolation=layers)


def test_the_history_says_what_to_do_and_whose_fault_it_is() -> None:
    html = one_submission(context(), "made-up-0003")
    assert "The scorer stopped on pair 12" in html
    assert "Catch the error in `score`" in html
    assert "to be mended by the submitter" in html


def test_an_unknown_submission_in_a_link_is_said_and_harmless() -> None:
    html = one_submission(context(), NASTY)
    assert "There is no submission" in html
    assert "<img" not in html


def test_workers_are_alive_for_a_minute_after_a_beat() -> None:
    assert "No worker is running" in workers_line([pulse(61)], NOW)
    assert "No worker is running" in workers_line([], NOW)
    assert "namespaces" in workers_line([pulse(59)], NOW)
    assert "takes no code" in workers_line([pulse(1, isolation_ok=False)], NOW)


def test_the_legend_explains_every_state_that_can_be_met() -> None:
    html = legend()
    for state in State:
        assert f">{state.value}</span>" in html
        assert LEGEND[state].split("'")[0] in html


# Submitting.


def test_a_taken_module_answers_with_its_id_and_the_way_to_the_queue() -> None:
    desk = StubDesk()
    html = send_metric(context(desk), ADA, ModuleForm("/tmp/mine.zip"))
    assert desk.taken == ["mine.zip"]
    assert "made-up-0000" in html
    assert "./mine?submission=made-up-0000" in html


def test_code_is_refused_with_reason_and_remedy_where_it_cannot_be_isolated() -> None:
    desk = StubDesk(Gate(ok=False, reason="No namespaces here.", remedy="Install bubblewrap."))
    html = send_metric(context(desk), ADA, ModuleForm("/tmp/mine.zip"))
    assert desk.taken == []
    assert "No namespaces here." in html
    assert "Install bubblewrap." in html
    scores = send_scores(context(desk), ADA, ScoresForm("/tmp/mine.csv", "ratings", "Me"))
    assert "is in." in scores
    assert "takes no code" in gate_notice(desk.gate())
    assert gate_notice(Gate(ok=True)) == ""


@pytest.mark.parametrize(
    ("form", "code"),
    [
        (ScoresForm(None, "ratings", "Me"), "no_file"),
        (ScoresForm("/tmp/a.csv", None, "Me"), "no_benchmark"),
        (ScoresForm(f"/tmp/{NASTY}", "ratings", "Me"), "bad_file"),
    ],
)
def test_an_incomplete_or_wrong_form_is_answered_with_what_to_do(
    form: ScoresForm, code: str
) -> None:
    html = send_scores(context(), ADA, form)
    assert f"<code>{code}</code>" in html
    assert 'role="alert"' in html
    assert "<img" not in html


def test_the_answer_says_whose_fault_an_error_is() -> None:
    assert "Not accepted." in refused(SubmitterError("a", "b", "c"))
    assert "try again" in refused(TransientError("a", "b"))
    assert "our fault" in refused(PlatformError("a", "b"))


@pytest.mark.parametrize("send", ["check", "module", "scores"])
def test_a_guest_can_hand_nothing_in(send: str) -> None:
    desk = StubDesk()
    site = context(desk)
    html = {
        "check": lambda: check_metric(site, None, ModuleForm("/tmp/mine.zip")),
        "module": lambda: send_metric(site, None, ModuleForm("/tmp/mine.zip", submitter="ada")),
        "scores": lambda: send_scores(site, None, ScoresForm("/tmp/a.csv", "ratings", "ada")),
    }[send]()
    assert "<code>not_signed_in</code>" in html
    assert "Sign in with your Hugging Face account" in html
    assert desk.taken == []


def test_the_account_owns_what_it_sends_however_it_signs() -> None:
    desk = StubDesk()
    send_metric(context(desk), ADA, ModuleForm("/tmp/mine.zip", submitter=" Somebody else "))
    assert desk.sent[0]["account"] == ADA
    assert desk.sent[0]["submitter"] == "Somebody else"


def test_a_check_lists_every_problem_with_its_place_and_keeps_nothing() -> None:
    desk = StubDesk()
    problems = (
        Problem("bad_manifest", f"name is {NASTY}", "Write a name.", "assay.toml", 3),
        Problem("no_scorer", "There is no class Scorer.", "", "scorer.py"),
        Problem("too_large", "All is too large."),
    )
    desk.found = Examination(problems)
    html = check_metric(context(desk), ADA, ModuleForm("/tmp/mine.zip"))
    assert "3 problems to mend" in html
    assert "assay.toml:3" in html
    assert ">scorer.py</code>" in html
    assert html.count("<li>") == 3
    assert "<img" not in html
    assert desk.taken == ["examined mine.zip"]


def test_a_check_that_finds_nothing_says_that_it_was_not_run() -> None:
    html = examined(Examination((), NASTY, "1.0", ("ratings",), 2, 3_400, "ab" * 32))
    assert "Nothing is wrong with" in html
    assert "It was not run." in html
    assert "2 files, 3.4 kB" in html
    assert "<img" not in html


def test_a_check_tells_what_is_to_be_read_of_what_is_not_wrong() -> None:
    html = examined(Examination((), "mine", notes=("An unchanged template.", NASTY)))
    assert "<li>An unchanged template.</li>" in html and html.count("<li>") == 2
    assert "<img" not in html


def test_content_sent_before_and_notes_are_said() -> None:
    desk = StubDesk()
    desk.recognised, desk.notes = True, ("Your torch is older.", NASTY)
    html = send_metric(context(desk), ADA, ModuleForm("/tmp/mine.zip"))
    assert "is here already" in html
    assert "the very same content before" in html
    assert "<li>Your torch is older.</li>" in html
    assert "<img" not in html


def test_a_receipt_goes_along_and_a_long_one_is_refused(tmp_path: Path) -> None:
    desk, receipt = StubDesk(), tmp_path / "mine.receipt.json"
    receipt.write_bytes(b"x" * MOST_RECEIPT_BYTES)
    send_metric(context(desk), ADA, ModuleForm("/tmp/mine.zip", str(receipt)))
    assert desk.sent[0]["receipt"] == receipt.read_bytes()
    receipt.write_bytes(b"x" * (MOST_RECEIPT_BYTES + 1))
    html = send_metric(context(desk), ADA, ModuleForm("/tmp/mine.zip", str(receipt)))
    assert "<code>bad_receipt</code>" in html
    assert len(desk.sent) == 1


def test_the_allowance_is_said_before_anything_is_sent() -> None:
    site = context()
    give(site.store, ADA)
    html = standing_of(site, ADA)
    assert "3 of 10 scored, <b>6 left</b>, one is given back at" in html
    assert "1 of 3 waiting or in work" in html
    assert may_send(site, ADA)


def test_who_is_banned_reads_the_reason_and_cannot_send() -> None:
    site = context()
    ban = Ban(account=ADA.key, reason=f"Copied others. {NASTY}", by="hub:root", at=NOW)
    site.store.public.commit(
        bans_file({ADA.key: ban}), parent=site.store.public.head(), message="ban"
    )
    html = standing_of(site, ADA)
    assert "Copied others." in html
    assert "<img" not in html
    assert not may_send(site, ADA)
    assert not may_send(site, None)


def test_a_banner_warns_while_no_worker_is_running() -> None:
    assert worker_banner([pulse(5)], NOW) == ""
    assert "No worker is running" in worker_banner([pulse(90)], NOW)


def test_a_site_that_takes_nothing_says_only_that() -> None:
    site = replace(context(), live=MemoryLive())
    assert "No worker is running" in warnings(site)[0]
    closed = replace(site, sign_in=site.sign_in.reading_only("It <shows> the boards."))
    assert warnings(closed) == ("", "")
    said = who(closed.sign_in, None)
    assert "Nothing can be sent from here.</b> It &lt;shows&gt; the boards." in said
    assert "not signed in" not in said


# The site.


def test_every_measure_of_every_benchmark_is_explained() -> None:
    html = "".join(about(cards().values()))
    for card in cards().values():
        assert f'id="{card.name}"' in html
        for measure in card.measures.values():
            assert measure.title in html
            assert measure.meaning.replace("'", "&#x27;") in html


def test_pages_are_found_by_their_file_names_in_the_order_of_the_navigation() -> None:
    titles = [page.title for page in all_pages() if page.in_navigation]
    assert titles == [
        *("Overview", "Index", "Boards", "Models", "Skills", "Compare", "Items", "Submit"),
        *("My submissions", "Queue", "Ledger", "Trust", "Status", "About"),
    ]


@pytest.mark.slow
def test_building_the_site_does_not_import_torch() -> None:
    code = (
        "import sys; sys.path.insert(0, '.');"
        "from tests.leaderboard.pages.synthetic import *; from leaderboard.pages.site import create_app, launch_options;"
        "create_app(fill(memory_store()), StubDesk(), cards(), clock=lambda: NOW);"
        "launch_options(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY, timeout=120)


@pytest.mark.slow
def test_importing_the_app_does_not_import_torch_or_make_a_store(tmp_path: Path) -> None:
    code = "import sys, app; assert 'torch' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path), "PATH": ""},
        timeout=120,
    )
    assert not (tmp_path / ".assay").exists()
