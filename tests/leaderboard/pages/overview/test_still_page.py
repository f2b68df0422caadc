"""The page that stays when the service does not: small, without scripts, always the same."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from leaderboard.pages.overview.still import MOST_ROWS, still_page
from leaderboard.publication.snapshot import Snapshot, build_snapshot
from tests.leaderboard.pages.synthetic import METRICS, NOW, cards, snapshot


def test_it_shows_headlines_with_intervals_and_ranks_as_of_the_snapshot() -> None:
    made = snapshot()
    page = still_page(made).decode()
    assert f'<time datetime="{NOW.isoformat()}">2026-03-01 12:00 UTC</time>' in page
    board = made.boards["ratings"]
    for cell in board.slice(board.card.headline, None):
        if cell.value is not None:
            assert f"{cell.value:.3f}".replace("-", "−") in page
    assert page.index('id="graphs"') < page.index('id="ratings"')  # Simulated ones come last.
    assert "Ratings on this board are simulated." in page
    assert "Unused" in page and 'id="unused"' not in page


def test_nothing_in_it_runs_and_nothing_is_fetched() -> None:
    page = still_page(snapshot()).decode()
    assert "<script" not in page and "<img" not in page and "\u202e" not in page
    assert re.findall(r'(?:src|href)="(?!#)', page) == []
    assert not re.search(r"<[^>]+ on\w+=", page)
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_equal_snapshots_make_equal_bytes_and_others_do_not() -> None:
    one, other = snapshot(), snapshot()
    assert still_page(one) == still_page(other)
    later = replace(one, built_at=one.built_at + timedelta(hours=1))
    assert still_page(later) != still_page(one)


def test_it_stays_small_however_many_there_are() -> None:
    page = still_page(snapshot(120))
    assert len(page) < 120_000
    assert page.decode().count('<th scope="row">') <= 3 * MOST_ROWS + len(cards())
    assert f"The first {MOST_ROWS} of 120." in page.decode()


def test_a_store_without_results_has_a_page_too() -> None:
    empty: Snapshot = build_snapshot([], cards(), NOW)
    page = still_page(empty).decode()
    assert "0 metrics" in page and "<section" not in page
    assert all(name not in page for name in METRICS[:5])
