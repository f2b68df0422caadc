"""The submit page takes a repository of the Hub where it takes an archive."""

from __future__ import annotations

import pytest

from leaderboard.desk import Gate
from leaderboard.governance.bans import Ban, bans_file
from leaderboard.pages.mine.mine_page import Asked, mine
from leaderboard.pages.queue.queue_page import one_submission
from leaderboard.pages.submit.submitting import ModuleForm, check_metric, send_metric
from tests.leaderboard.pages.mine.own_submissions import ADA
from tests.leaderboard.pages.sites import site_of
from tests.leaderboard.pages.synthetic import NASTY, NOW, StubDesk

NAMED = "ada/grey@main"


def test_a_repository_is_checked_without_a_file() -> None:
    desk = StubDesk()
    html = check_metric(site_of(desk), ADA, ModuleForm(None, repository=f" {NAMED} "))
    assert desk.taken == [f"examined {NAMED}"]
    assert "Nothing is wrong with" in html


def test_a_repository_is_sent_with_all_that_the_form_says() -> None:
    desk = StubDesk()
    form = ModuleForm(None, None, " A group ", private=True, repository=NAMED)
    html = send_metric(site_of(desk), ADA, form)
    assert "is in." in html
    assert desk.sent == [
        {"account": ADA, "submitter": "A group", "receipt": None,
         "source": f"hub:ada/grey@{'0' * 40}"}
    ]  # fmt: skip


@pytest.mark.parametrize("act", [check_metric, send_metric])
@pytest.mark.parametrize(
    ("path", "repository", "code"),
    [
        ("/tmp/mine.zip", NAMED, "two_sources"),
        (None, "", "no_file"),
        (None, "  ", "no_file"),
        (None, None, "no_file"),
    ],
)
def test_one_of_the_two_is_wanted(
    act: object, path: str | None, repository: str | None, code: str
) -> None:
    desk = StubDesk()
    assert callable(act)
    html = act(site_of(desk), ADA, ModuleForm(path, repository=repository))
    assert f"<code>{code}</code>" in html
    assert desk.taken == []


def test_nothing_is_fetched_for_guests_or_who_is_banned_or_where_no_code_is_taken() -> None:
    desk = StubDesk()
    site = site_of(desk)
    form = ModuleForm(None, repository=NAMED)
    assert "not_signed_in" in check_metric(site, None, form)
    assert "not_signed_in" in send_metric(site, None, form)
    ban = Ban(account=ADA.key, reason=f"Copied others. {NASTY}", by="hub:root", at=NOW)
    site.store.public.commit(
        bans_file({ADA.key: ban}), parent=site.store.public.head(), message="ban"
    )
    html = check_metric(site, ADA, form)
    assert "<code>banned</code>" in html
    assert "<img" not in html
    assert desk.taken == []
    shut = StubDesk(Gate(ok=False, reason="No namespaces here.", remedy="Install bubblewrap."))
    assert "No namespaces here." in send_metric(site_of(shut), ADA, form)
    assert shut.taken == []


def test_its_commit_stands_in_the_history_for_the_author_and_for_everyone() -> None:
    site = site_of(StubDesk(), keeps=True)
    send_metric(site, ADA, ModuleForm(None, repository=NAMED))
    commit = f"<code>hub:ada/grey@{'0' * 40}</code>"
    assert commit in one_submission(site, "sent-000001")
    assert commit in mine(site, ADA, Asked("sent-000001")).parts[1]
