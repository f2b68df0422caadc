"""Recent activity: publications, benchmarks evaluated again, and what was taken off."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leaderboard.ledger.audit_log import FIRST, Line
from leaderboard.ledger.editions import ANNOUNCED
from leaderboard.publication.reader import View, view_of
from leaderboard.ranking.orders import Orders
from leaderboard.rendering import render
from leaderboard.views.audit_log import Activity, recent_activity
from tests.kit import boards as synthetic
from tests.kit.boards import NASTY, NOW, cards
from tests.kit.html import harmless, read
from tests.kit.store import memory_store


@pytest.fixture(scope="module")
def empty() -> View:
    return view_of(None, cards(), Orders(memory_store()))


def line(n: int, action: str, subject: str, reason: str = "", minutes: int = 0) -> Line:
    return Line(
        n=n, at=NOW - timedelta(minutes=minutes), by="olga", action=action, subject=subject,
        reason=reason, record=FIRST, before=FIRST,
    )  # fmt: skip


def links(one: Activity) -> dict[str, str]:
    return dict(one.links)


def test_nothing_published_has_no_activity_and_a_publication_names_board_and_submitter(
    empty: View,
) -> None:
    assert recent_activity(empty, (), ()) == ()
    view = synthetic.view()
    found = recent_activity(view, (), (), 50)
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
    first = next(one for one in found if one.subject == "CLIPScore")
    assert (
        "Ratings" in first.said and first.more.startswith("by ") and "Metric page" in links(first)
    )


def test_what_was_taken_off_is_said_with_its_reason_the_newest_first(empty: View) -> None:
    lines = [
        line(1, "withdrawn", "grey-0123456789", minutes=5),
        line(2, "hidden", "green-0123456789", f"It is a copy. {NASTY}{'x' * 400}", minutes=1),
    ]
    hidden, withdrawn = recent_activity(empty, lines, ())
    assert (hidden.subject, hidden.said) == ("green-0123456789", "hidden")
    assert (withdrawn.subject, "withdrawn" in withdrawn.said) == ("grey-0123456789", True)
    assert links(hidden)["Audit log"] == "./ledger?subject=green-0123456789"
    many = [line(n, "hidden", f"green-{n:010}", minutes=20 - n) for n in range(1, 11)]
    newest = [one.subject for one in recent_activity(empty, many, (), 4)]
    assert newest == [f"green-{n:010}" for n in (10, 9, 8, 7)]
    html = render("metrics/activity.html", lines=(hidden, withdrawn), now=NOW)
    harmless(html)
    assert "x" * 200 not in html and "a copy. <img" in read(html)


@pytest.mark.parametrize(
    ("earlier", "leads"), [((), False), (("ratings",), True), (("graphs",), False)]
)
def test_a_benchmark_evaluated_again_leads_to_its_changes_where_they_are_kept(
    earlier: tuple[str, ...], leads: bool
) -> None:
    again = line(1, ANNOUNCED, "ratings", "A wrong image was replaced.")
    first = recent_activity(synthetic.view(), [again], earlier)[0]
    assert (first.subject, first.said, first.more) == ("Ratings", "re-evaluated", again.reason)
    assert ("Changes" in links(first)) is leads


def test_other_lines_are_left_to_the_audit_log() -> None:
    others = [
        line(1, "queued", "grey-0123456789"), line(2, "ban", "hub:eve", "Sent miners."),
        line(3, "policy", "policy"), line(4, ANNOUNCED, "gone", "It is gone."),
    ]  # fmt: skip
    view = synthetic.view()
    assert recent_activity(view, others, (), 50) == recent_activity(view, [], (), 50)
