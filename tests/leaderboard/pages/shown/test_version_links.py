"""From one version of a metric to the others."""

from __future__ import annotations

from leaderboard.pages.queue.queue_page import one_submission
from tests.leaderboard.pages.mine.own_submissions import ADA, HELD, NEW, OLD, QUEUED, give
from tests.leaderboard.pages.sites import site_of
from tests.leaderboard.pages.synthetic import StubDesk


def test_versions_lead_to_each_other() -> None:
    site = site_of(StubDesk())
    give(site.store, ADA)
    newer, older = one_submission(site, NEW), one_submission(site, OLD)
    assert "It took the place of" in newer
    assert f'href="./queue?submission={OLD}"' in newer
    assert "Its place was taken by" not in newer
    assert "Its place was taken by" in older
    assert f'href="./queue?submission={NEW}"' in older
    assert "It took the place of" not in older


def test_what_has_no_other_version_says_nothing_of_any() -> None:
    site = site_of(StubDesk())
    give(site.store, ADA)
    for alone in ("made-up-0004", QUEUED, HELD):
        assert "the place of" not in one_submission(site, alone)
