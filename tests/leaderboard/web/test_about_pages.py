"""Status, errata and methods: what is known of this service and its figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.errata import Erratum, ErratumCell, errata
from benchmarks.errors import TransientError
from benchmarks.published import papers
from leaderboard.service.health import DiskSpace, Seen, judged, unreadable
from leaderboard.store.live.interface import Pulse
from leaderboard.web.pages.docs_page import errata_view, methods_view
from leaderboard.web.pages.status_page import MOST_WORKERS, status_view
from tests.leaderboard.web.parsed import Node, harmless, read
from tests.leaderboard.web.synthetic import NOW, cards, pulse

DISK = DiskSpace(free_bytes=50 << 30, total_bytes=100 << 30)


# Status: what `/health` says, in words.


def status(*pulses: Pulse, disk: DiskSpace = DISK) -> Node:
    html = status_view(judged(replace(Seen("abcdef0123456789", ()), pulses=pulses), NOW, disk))
    harmless(html)
    return read(html)


def test_the_state_of_the_installation_comes_first_with_what_to_do() -> None:
    right = status(pulse(5, worker="w1", isolation_ok=False))
    assert right.text.startswith("Status Everything works.") and "is wrong" not in right
    assert "50 GiB free of 100 GiB" in right and "not run" in right.row("w1")
    full = status(disk=DiskSpace(free_bytes=1 << 20, total_bytes=100 << 30))
    assert "disk_full" in full and "0.0 GiB of 100.0 GiB" in full
    assert not full.text.startswith(right.text[:20])
    assert "For operators" in full


def test_a_silent_worker_is_marked_and_its_speed_is_not_shown() -> None:
    dead = pulse(3600.0, worker="<script>x</script>", submission_id="s", rate_per_s=777.0)
    page = status(dead)
    row = page.row("<script>x</script>")
    assert all(words in row for words in ("1 h 00 min", "silent", "isolated")) and "777" not in page


def test_a_store_that_cannot_be_read_shows_no_figures_of_it() -> None:
    error = TransientError("store_unreachable", "It <b>does</b> not answer.", "Try again.")
    page = read(status_view(unreadable(error, NOW, DISK)))
    assert "It <b>does</b> not answer." in page
    assert "Workers" not in page and "Ever received" not in page


@pytest.mark.parametrize("extra", [0, 1, 7])
def test_of_many_workers_those_seen_last_are_shown_and_the_others_counted(extra: int) -> None:
    page = status(*(pulse(n, worker=f"worker-{n}") for n in range(MOST_WORKERS + extra)))
    assert "worker-0 " in page.text and f"worker-{MOST_WORKERS} " not in page.text
    assert ("other worker" in page) is (extra > 0)


# Errata and measures.


def test_every_erratum_stands_below_its_paper_with_its_figures_and_how_it_is_decided() -> None:
    page = read(errata_view(errata()))
    for entry in errata():
        article = page.one(f"[id={entry.id}]")
        assert entry.title in article and page.all(f"[id={entry.paper}]")
        assert {cell.printed for cell in entry.cells} <= set(article.texts("td"))
        assert ("benchmarks.errata" in article.text) is entry.recompute
    unknown = Erratum(
        id="made-up", paper=next(iter(papers())), where="Table <1>", title="A figure is wrong.",
        why="It cannot be.", kind="inconsistent", cells=(ErratumCell(label="cell", printed="1"),),
    )  # fmt: skip
    page = read(errata_view([unknown]))  # What nobody can say is a dash and no empty cell.
    assert "–" in page.texts("b") and "Table <1>" in page


def test_every_benchmark_leads_to_its_page_from_the_place_that_links_named() -> None:
    page = read(methods_view(cards().values()))
    for name in cards():
        assert page.one(f"#{name}").links("") == [f"./benchmark?name={name}"]
