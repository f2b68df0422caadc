"""What stands beside the forms: structure, links, and that nothing submitted becomes markup."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from leaderboard.accounts import Account
from leaderboard.records import Kind
from leaderboard.store.live.interface import MemoryLive
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
from tests.kit.boards import NASTY, NOW, StubDesk, fill, site_of
from tests.kit.html import Node, harmless, read
from tests.kit.store import memory_store
from tests.leaderboard.web import own_submissions as sent

SECRET_WORDS = ("batch 59", "careful")
OWN, CHOSEN, QUEUE, QUOTA = range(4)


@pytest.fixture
def site() -> Context:
    return site_of(sent.run_one(sent.give(fill(memory_store()), sent.ADA), sent.ADA))


def parts(site: Context, account: Account | None, ident: str = "") -> Parts:
    found = submit_parts(site, account, SubmitQuery(Kind.SCORES, ident))
    for html in found.html:
        harmless(html)
    return found


def part(site: Context, which: int, account: Account | None = sent.ADA, ident: str = "") -> Node:
    return read(parts(site, account, ident).html[which])


def test_forms_are_links_guests_are_told_how_to_sign_in_and_operators_have_their_page(
    site: Context,
) -> None:
    for kind in Kind:
        page = read(head(site, sent.ADA, kind))
        assert page.links("./submit?kind=") == [f"./submit?kind={one.value}" for one in Kind]
        assert page.one("a[aria-current]")["href"] == f"./submit?kind={kind.value}"
    assert "not signed in" in read(head(site, None, Kind.METRIC))
    found = parts(site, None, sent.HELD)
    assert "Sign in" in read(found.html[OWN]) and (found.html[QUOTA], found.actions) == ("", ())
    assert not any("secret-metric" in html for html in found.html)
    assert not part(site, OWN, sent.GRACE).all("table")  # Has submitted nothing.
    for account in (sent.ADA, sent.OPERATOR):
        linked = "./operators" in read(head(site, account, Kind.METRIC)).links()
        assert linked is account.operator is ("Only operators" not in operators_head(site, account))


def test_one_s_own_are_a_table_that_leads_to_each_and_keeps_the_form(site: Context) -> None:
    own = part(site, OWN, ident=sent.RUNNING)
    assert len(own.all("tbody tr")) == 6
    assert f"./submit?kind=scores&id={sent.RUNNING}" in own.links()
    (current,) = own.all("tr[aria-current]")
    assert "running-metric" in current and "40%" in current
    assert "private" in own and "secret-metric" in own


def test_the_open_one_shows_its_step_progress_attempts_and_to_its_author_its_log(
    site: Context,
) -> None:
    page = part(site, CHOSEN, ident=sent.RUNNING)
    assert page.one("[aria-current=step]").text == "scoring"
    assert page.one("progress[max=4800]")["value"] == "1920"
    for words in (
        sent.WORKER,
        "2 of 3",
        sent.SILENT,
        "1,920 of 4,800 · 81.3/s",
        "<img src=x",
        *SECRET_WORDS,
    ):
        assert words in page, words
    assert page.all("[data-follow=running]") and page.one("#chosen")["data-final"] == "no"
    for account in (sent.GRACE, None):
        found = submit_parts(site, account, SubmitQuery(submission_id=sent.RUNNING))
        assert not any(words in "".join(found.html) for words in SECRET_WORDS)
        assert sent.SILENT in read(found.html[CHOSEN])
    of_operator = read(operator_parts(site, sent.OPERATOR, sent.RUNNING).html[0])
    assert all(words in of_operator for words in SECRET_WORDS)


def test_a_failure_has_its_code_and_its_log_as_text_and_held_results_have_intervals(
    site: Context,
) -> None:
    page = part(site, CHOSEN, ident=sent.FAILED)
    note = page.one("[role=status]")
    assert "Not charged." in note and note.texts("code") == ["scorer_failed"]
    assert "=1+2|cmd" in page.one(".as-history pre")
    assert page.one("#chosen")["data-final"] == "yes"
    held = part(site, CHOSEN, ident=sent.HELD)
    assert {"0.630", "[0.525, 0.733]"} <= set(held.texts("td")) and "All 13 rows" in held


def test_flags_and_versions_lead_to_what_they_are_about(site: Context) -> None:
    links = {
        ident: part(site, CHOSEN, ident=ident).links()
        for ident in (sent.NEW, sent.OLD, sent.QUEUED)
    }
    assert (
        f"./submit?id={sent.OLD}" in links[sent.NEW]
        and f"./submit?id={sent.NEW}" in links[sent.OLD]
    )
    assert "./submit?id=made-up-0000" in links[sent.NEW]  # The same scores.
    assert "./submit?id=made-up-0000" in links[sent.QUEUED]  # The same content.
    assert (
        f"./ledger?subject={sent.NEW}" in links[sent.NEW]
        and f"./metric?id={sent.NEW}" in links[sent.NEW]
    )


def test_the_commit_of_a_repository_is_shown_to_everyone() -> None:
    store = fill(memory_store())
    site = site_of(store, StubDesk(store=store))
    ident = send(site, sent.ADA, ModuleForm(None, "ada/grey@main")).submission_id
    for account in (sent.ADA, None):
        assert f"hub:ada/grey@{'0' * 40}" in part(site, CHOSEN, account, ident).texts("code")


def test_the_queue_says_progress_reasons_faults_and_flags_and_hides_what_is_private(
    site: Context,
) -> None:
    page = part(site, QUEUE, None)
    assert "310 of 960 · 38.4/s" in page and page.one("progress[max=960]")["value"] == "310"
    assert page.all("a[href=./submit?id=made-up-0000] .as-warn")  # The same content.
    failed = part(site, CHOSEN, None, "made-up-0003")
    everybody = read(operator_parts(site, sent.OPERATOR, "").html[1])
    assert "on pair 12" in failed and "on pair 12" in everybody
    assert "Traceback" in failed.one(".as-history pre") and "by the submitter" in everybody
    assert f"./operators?id={sent.RUNNING}" in everybody.links()
    html = parts(site, None).html[QUEUE]
    assert not any(words in html for words in ("secret-metric", *SECRET_WORDS))
    private = part(site, CHOSEN, None, sent.HELD)
    assert "private submission" in private and "secret-metric" not in private


def test_an_empty_queue_missing_workers_and_a_wait_for_commits_are_said() -> None:
    empty, store = site_of(memory_store()), fill(memory_store())
    for site, words in (
        (empty, "Nothing is waiting."), (empty, "None was ever seen"),
        (site_of(replace(store, live=MemoryLive())), "No worker is running."),
        (site_of(replace(store, next_commit_s=lambda: 600.0)), "next in 10 min"),
    ):  # fmt: skip
        assert words in part(site, QUEUE, None)
        assert words not in part(site_of(store), QUEUE, None)
    assert not parts(empty, None).busy


def test_nothing_changes_while_nothing_happens_and_only_the_log_when_it_grows(
    site: Context,
) -> None:
    later = replace(site, clock=lambda: NOW + timedelta(seconds=20))
    assert parts(site, sent.ADA, sent.FAILED).digests == parts(later, sent.ADA, sent.FAILED).digests
    before = parts(site, sent.ADA, sent.RUNNING)
    site.live.set_log(sent.RUNNING, "another batch\n")
    after = parts(site, sent.ADA, sent.RUNNING)
    changed = [a != b for a, b in zip(before.digests, after.digests, strict=True)]
    assert changed == [False, True, False, False, False]


def test_what_is_nobody_s_is_unknown_and_named_as_text(site: Context) -> None:
    page = part(site, CHOSEN, ident=NASTY)
    assert "There is no submission" in page and page.links() == ["./submit?kind=scores"]
