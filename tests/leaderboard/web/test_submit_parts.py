"""What stands beside the forms: structure, links, and that nothing submitted becomes markup."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from leaderboard.accounts import Account
from leaderboard.records import Kind
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.memory import memory_store
from leaderboard.views.submit import SubmitQuery
from leaderboard.web.page import Context
from leaderboard.web.submission_controls import (
    Parts,
    head,
    operator_parts,
    operators_head,
    submit_parts,
)
from leaderboard.web.submitting import ModuleForm, send
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
    SILENT,
    WORKER,
    give,
    run_one,
)
from tests.leaderboard.web.parsed import Node, harmless, read
from tests.leaderboard.web.synthetic import NASTY, NOW, StubDesk, fill, site_of

SECRET_WORDS = ("batch 59", "careful")
OWN, CHOSEN, QUEUE, QUOTA = range(4)


@pytest.fixture
def site() -> Context:
    return site_of(run_one(give(fill(memory_store()), ADA), ADA))


def parts(site: Context, account: Account | None, ident: str = "") -> Parts:
    found = submit_parts(site, account, SubmitQuery(Kind.SCORES, ident))
    for html in found.html:
        harmless(html)
    return found


def part(site: Context, which: int, account: Account | None = ADA, ident: str = "") -> Node:
    return read(parts(site, account, ident).html[which])


def test_the_three_forms_are_links_and_the_open_one_is_named(site: Context) -> None:
    for kind in Kind:
        page = read(head(site, ADA, kind))
        assert page.links("./submit?kind=") == [f"./submit?kind={one.value}" for one in Kind]
        (current,) = page.all("a[aria-current]")
        assert current["href"] == f"./submit?kind={kind.value}"


def test_a_guest_is_told_how_to_sign_in_and_shown_nothing_of_anybody(site: Context) -> None:
    assert "not signed in" in read(head(site, None, Kind.METRIC))
    found = parts(site, None, HELD)
    assert "Sign in" in read(found.html[OWN]) and found.html[QUOTA] == ""
    assert not any("secret-metric" in html for html in found.html)
    assert (found.actions, "Operators" in head(site, None, Kind.METRIC)) == ((), False)


def test_who_has_submitted_nothing_is_told_so(site: Context) -> None:
    own = part(site, OWN, GRACE)
    assert "You have not submitted anything yet." in own and not own.all("table")


def test_one_s_own_are_a_table_that_leads_to_each_and_keeps_the_form(site: Context) -> None:
    own = part(site, OWN, ident=RUNNING)
    assert len(own.all("tbody tr")) == 6
    assert f"./submit?kind=scores&id={RUNNING}" in own.links()
    (current,) = own.all("tr[aria-current]")
    assert "running-metric" in current and "40%" in current
    assert "private" in own and "secret-metric" in own


def test_the_open_one_shows_steps_progress_attempts_and_its_log(site: Context) -> None:
    page = part(site, CHOSEN, ident=RUNNING)
    (now,) = page.all("[aria-current=step]")
    assert now.text == "scoring"
    (bar,) = page.all("progress[max=4800]")
    assert bar["value"] == "1920"
    for words in (WORKER, "lease until", "2 of 3", "Attempt 1 by gpu-1", SILENT,
                  "1,920 of 4,800 · 81.3/s · about 13 min", "<img src=x", *SECRET_WORDS):  # fmt: skip
        assert words in page, words
    assert page.all("[data-follow=running]") and page.one("#chosen")["data-final"] == "no"
    others = (submit_parts(site, GRACE, SubmitQuery(submission_id=RUNNING)),
              submit_parts(site, None, SubmitQuery(submission_id=RUNNING)))  # fmt: skip
    for found in others:
        assert not any(words in "".join(found.html) for words in SECRET_WORDS)
        assert SILENT in read(found.html[CHOSEN])
    of_operator = read(operator_parts(site, OPERATOR, RUNNING).html[0])
    assert all(words in of_operator for words in SECRET_WORDS)


def test_a_failure_says_in_whose_code_what_it_cost_and_shows_the_log_as_text(
    site: Context,
) -> None:
    page = part(site, CHOSEN, ident=FAILED)
    note = page.one("[role=status]")
    for words in ("failed in your code.", "Not charged.", "in `score`"):
        assert words in note
    assert note.texts("code") == ["scorer_failed"] and "./submit?kind=metric" in note.links()
    assert "=1+2|cmd" in page.one(".as-history pre")
    assert page.one("#chosen")["data-final"] == "yes"


def test_results_that_are_held_have_intervals_and_are_said_to_be_private(site: Context) -> None:
    page = part(site, CHOSEN, ident=HELD)
    assert "0.630" in page.texts("td") and "[0.525, 0.733]" in page.texts("td")
    for words in ("All 13 rows", "own network namespace", "only you"):
        assert words in page


def test_flags_and_versions_lead_to_what_they_are_about(site: Context) -> None:
    links = {ident: part(site, CHOSEN, ident=ident).links() for ident in (NEW, OLD, QUEUED)}
    assert f"./submit?id={OLD}" in links[NEW] and f"./submit?id={NEW}" in links[OLD]
    assert "./submit?id=made-up-0000" in links[NEW]  # The same scores.
    assert "./submit?id=made-up-0000" in links[QUEUED]  # The same content.
    assert f"./ledger?subject={NEW}" in links[NEW] and f"./metric?id={NEW}" in links[NEW]


def test_the_commit_of_a_repository_is_shown_to_everyone() -> None:
    store = fill(memory_store())
    site = site_of(store, StubDesk(store=store))
    ident = send(site, ADA, ModuleForm(None, "ada/grey@main")).submission_id
    for account in (ADA, None):
        assert f"hub:ada/grey@{'0' * 40}" in part(site, CHOSEN, account, ident).texts("code")


def test_the_queue_says_progress_reasons_faults_and_flags_and_hides_what_is_private(
    site: Context,
) -> None:
    page = part(site, QUEUE, None)
    for words in ("BLIP2-ITM", "VQAScore", "310 of 960 · 38.4/s · about 17 s"):
        assert words in page, words
    failed = part(site, CHOSEN, None, "made-up-0003")
    everybody = read(operator_parts(site, OPERATOR, "").html[1])
    for words in ("on pair 12", "in `score`"):
        assert words in failed and words in everybody
    assert "by the submitter" in everybody and "Traceback" in failed.one(".as-history pre")
    (bar,) = page.all("progress[max=960]")
    assert bar["value"] == "310"
    html = parts(site, None).html[QUEUE]
    assert "secret-metric" not in html and not any(words in html for words in SECRET_WORDS)
    private = part(site, CHOSEN, None, HELD)
    assert "private submission" in private and "secret-metric" not in private
    assert page.all("a[href=./submit?id=made-up-0000] .as-warn")  # The same content.
    wide = read(operator_parts(site, OPERATOR, "").html[1])
    assert "Error graphs" in wide and f"./operators?id={RUNNING}" in wide.links()


def test_an_empty_queue_and_missing_workers_are_said() -> None:
    empty = site_of(memory_store())
    page = part(empty, QUEUE, None)
    assert "Nothing is waiting." in page and "None was ever seen" in page
    assert not parts(empty, None).busy
    idle = replace(site_of(fill(memory_store())), live=MemoryLive())
    assert "No worker is running." in part(idle, QUEUE, None)


def test_the_queue_says_when_what_is_to_be_written_can_be() -> None:
    store = fill(memory_store())
    waits = site_of(replace(store, next_commit_s=lambda: 600.0))
    page = part(waits, QUEUE, None)
    assert "Waits for commits." in page and "next in 10 min" in page
    assert "Waits for commits." not in part(site_of(store), QUEUE, None)


def test_nothing_changes_while_nothing_happens_and_only_the_log_when_it_grows(
    site: Context,
) -> None:
    later = replace(site, clock=lambda: NOW + timedelta(seconds=20))
    assert parts(site, ADA, FAILED).digests == parts(later, ADA, FAILED).digests
    before = parts(site, ADA, RUNNING)
    site.live.say(RUNNING, "another batch\n")
    after = parts(site, ADA, RUNNING)
    changed = [a != b for a, b in zip(before.digests, after.digests, strict=True)]
    assert changed == [False, True, False, False, False]


def test_what_is_nobody_s_is_unknown_and_named_as_text(site: Context) -> None:
    page = part(site, CHOSEN, ident=NASTY)
    assert "There is no submission" in page and page.links() == ["./submit?kind=scores"]


def test_the_operators_page_is_linked_for_operators_alone(site: Context) -> None:
    assert "./operators" in read(head(site, OPERATOR, Kind.METRIC)).links()
    assert "./operators" not in read(head(site, ADA, Kind.METRIC)).links()
    assert "Only operators" in operators_head(site, ADA)
    assert "Only operators" not in operators_head(site, OPERATOR)
