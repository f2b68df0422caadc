"""The status page says what `/health` says, in words, to everybody."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from benchmarks.errors import TransientError
from leaderboard.pages.status.view import MOST_WORKERS, status_view
from leaderboard.records import Status
from leaderboard.service.health import DiskSpace, Seen
from leaderboard.service.verdict import judged, unreadable
from leaderboard.store.live.interface import Pulse

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DISK = DiskSpace(free_bytes=50 << 30, total_bytes=100 << 30)


def a_pulse(name: str, age_s: float = 5.0, **facts: object) -> Pulse:
    at = NOW - timedelta(seconds=age_s)
    given = {"isolation_ok": False, "isolation": "", **facts}
    return Pulse(worker=name, at=at, **given)  # type: ignore[arg-type]


def words_of(shown: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", shown)).split())


def seen(*statuses: Status, **facts: object) -> Seen:
    return replace(Seen("abcdef0123456789", statuses), **facts)  # type: ignore[arg-type]


def test_an_installation_in_order_says_so_first() -> None:
    told = words_of(status_view(judged(seen(pulses=(a_pulse("w1"),)), NOW, DISK)))
    assert told.startswith("Status Everything works. Looked at 2026-03-01 12:00 UTC.")
    assert "What is wrong" not in told
    assert "w1 less than a minute ago waits for work not run –" in told
    assert "50 GiB free of 100 GiB" in told
    assert "Boards built never: nothing was published so far" in told


def test_a_problem_is_told_with_what_to_do() -> None:
    full = DiskSpace(free_bytes=1 << 20, total_bytes=100 << 30)
    told = words_of(status_view(judged(seen(), NOW, full)))
    assert told.startswith("Status It cannot do its work at the moment.")
    assert "0.0 GiB of 100.0 GiB are free." in told
    assert "For operators:" in told
    assert "disk_full" in told


def test_a_silent_worker_is_marked_and_its_speed_is_not_shown() -> None:
    dead = a_pulse("gone", 3600.0, submission_id="s", rate_per_s=777.0, isolation_ok=True)
    told = words_of(status_view(judged(seen(pulses=(dead,)), NOW, DISK)))
    assert "gone 1 h 00 min ago silent isolated –" in told
    assert "777" not in told


def test_a_store_that_cannot_be_read_shows_no_figures_of_it() -> None:
    error = TransientError("store_unreachable", "It <b>does</b> not answer.", "Try again.")
    shown = status_view(unreadable(error, NOW, DISK))
    told = words_of(shown)
    assert "The store cannot be read: It <b>does</b> not answer." in told
    assert "<b>does</b>" not in shown
    assert "Workers" not in told
    assert "Ever received" not in told


def test_a_hostile_name_of_a_worker_is_text() -> None:
    shown = status_view(judged(seen(pulses=(a_pulse("<script>x</script>"),)), NOW, DISK))
    assert "<script>" not in shown


@pytest.mark.parametrize("extra", [0, 1, 7])
def test_of_many_workers_those_seen_last_are_shown_and_the_others_counted(extra: int) -> None:
    pulses = tuple(a_pulse(f"worker-{n}", float(n)) for n in range(MOST_WORKERS + extra))
    told = words_of(status_view(judged(seen(pulses=pulses), NOW, DISK)))
    assert "worker-0 " in told
    assert f"worker-{MOST_WORKERS} " not in told
    assert ("other worker" in told) is (extra > 0)
