"""Trust, status, errata and methods: what is known of metrics, this service and its figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.errata import Erratum, ErratumCell, errata
from benchmarks.errors import TransientError
from benchmarks.published import papers
from leaderboard.pages.about.errata_page import errata_view
from leaderboard.pages.about.methods import methods_view
from leaderboard.pages.status.view import MOST_WORKERS, status_view
from leaderboard.pages.trust.cards import PER_PAGE, trust_page
from leaderboard.publication.snapshot import build_snapshot
from leaderboard.records import FindingExample, Findings
from leaderboard.service.health import DiskSpace, Seen
from leaderboard.service.verdict import judged, unreadable
from leaderboard.store.live.interface import Pulse
from tests.leaderboard.pages.parsed import Node, harmless, read
from tests.leaderboard.pages.synthetic import METRICS, NASTY, NOW, cards, pulse, runs_of, trust

DISK = DiskSpace(free_bytes=50 << 30, total_bytes=100 << 30)
TIFA = METRICS[8]
_FINDINGS = Findings(
    pairs=480, scored=477, unscored={"image_unreadable": 3},
    counts={"image_unreadable": 1, "text_truncated": 2},
    examples=tuple(
        FindingExample(code="image_unreadable", item="image", item_id=f"{n}-{NASTY}",
                       message="The image cannot be read.", scored=False)
        for n in range(9)
    ),
)  # fmt: skip


# Trust and costs.


def trusted(update: dict[str, Any], *names: str) -> Node:
    """The page, with other results of some metrics."""
    runs = [
        replace(run, result=run.result.model_copy(update=update))
        if run.submission.name in names else run
        for run in runs_of()
    ]  # fmt: skip
    html = trust_page(build_snapshot(runs, cards(), NOW).entries.values(), cards())
    harmless(html)
    return read(html)


def test_metrics_that_failed_come_first_with_the_check_the_pair_and_what_was_found() -> None:
    page = trusted({"trust": trust("ratings", fails=True), "findings": _FINDINGS}, TIFA)
    failed, passed = page.all("section")[:2]
    assert TIFA in failed.one("h2") and "not ranked" in failed and "every check" in passed
    (row,) = (r for r in failed.all("tr") if "reverse order" in r)
    assert all(words in row for words in ("differs", "0.400 → 0.610", "162 % of sd"))
    pixel = next(r for r in failed.all("tr") if "raised by one" in r)
    assert "measured" in pixel and "1 % of sd" in pixel
    for words in ("3 of 480", "1 × image unreadable, 2 × text truncated"):
        assert words in failed
    assert failed.text.count("The image cannot be read.") == 5
    first = next(one for one in page.all("section") if "CLIPScore" in one.one("h2"))
    assert "26.0" in first.texts("td")  # 12.5 s for 480 pairs
    assert not any("BLIP2-ITM" in one for one in page.texts("h2")) and "nothing was run" in page


def test_a_report_of_no_pair_is_no_passed_check() -> None:
    none = trust("ratings").model_copy(update={"n_pairs": 0, "n_images": 0})
    page = trusted({"trust": none}, *METRICS)
    assert "nothing could" in page and "every check" not in page
    assert not read(trust_page([], cards())).all("section table")


def test_many_metrics_are_shown_page_by_page_and_none_is_lost() -> None:
    one = next(iter(build_snapshot(runs_of(), cards(), NOW).entries.values()))
    many = [
        one.model_copy(update={"submission_id": f"s{n}", "metric": f"metric-{n:03d}"})
        for n in range(2 * PER_PAGE + 1)
    ]
    pages = [read(trust_page(many, cards(), number)) for number in (0, 1, 2, 3, 999)]
    names = [[title.split()[0] for title in page.texts("h2")] for page in pages]
    found = [[name for name in of if name.startswith("metric-")] for of in names]
    assert found[0] == found[1] and found[3] == found[4]
    assert [len(of) for of in found[1:4]] == [PER_PAGE, PER_PAGE, 1]
    assert sorted(found[1] + found[2] + found[3]) == [entry.metric for entry in many]
    assert {"./trust?page=1", "./trust?page=3"} <= set(pages[2].links())


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


def test_every_measure_of_every_benchmark_is_explained() -> None:
    page = read(methods_view(cards().values()))
    for card in cards().values():
        assert page.all(f"#{card.name}")
        for measure in card.measures.values():
            assert measure.title in page and measure.meaning in page
