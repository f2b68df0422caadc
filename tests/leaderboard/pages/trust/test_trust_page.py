"""The page of trust checks and costs."""

from __future__ import annotations

import re
from dataclasses import replace

from leaderboard.pages.trust.cards import PER_PAGE, trust_page
from leaderboard.publication.snapshot import build_snapshot
from leaderboard.records import FindingExample, Findings
from tests.leaderboard.pages.synthetic import METRICS, NASTY, NOW, cards, runs_of, trust

_MADE_UP = {
    "trust": trust("ratings", fails=True),
    "findings": Findings(
        pairs=480,
        scored=477,
        unscored={"image_unreadable": 3},
        counts={"image_unreadable": 1, "text_truncated": 2},
        examples=tuple(
            FindingExample(
                code="image_unreadable",
                item="image",
                item_id=f"{n}-{NASTY}",
                message="The image cannot be read.",
                scored=False,
            )
            for n in range(9)
        ),
    ),
}


def shown() -> str:
    """With one metric that failed: TIFA."""
    runs = [
        replace(run, result=run.result.model_copy(update=_MADE_UP))
        if run.submission.name == METRICS[8]
        else run
        for run in runs_of()
    ]
    return trust_page(build_snapshot(runs, cards(), NOW).entries.values(), cards())


def test_metrics_that_failed_come_first_with_the_check_and_the_pair_that_shows_it() -> None:
    html = shown()
    assert html.index("not ranked: score depends on the order") < html.index("passed every check")
    row = html[html.index("the same pairs in reverse order") :]
    assert row.index("differs") < row.index("</tr>")
    assert "0.400 → 0.610" in row[: row.index("</tr>")]
    assert "162 % of sd" in row[: row.index("</tr>")]


def test_many_metrics_are_shown_page_by_page_and_none_is_lost() -> None:
    one = next(iter(build_snapshot(runs_of(), cards(), NOW).entries.values()))
    many = [
        one.model_copy(
            update={"submission_id": f"s{n}", "metric": f"metric-{n:03d}", "name": f"n{n}"}
        )
        for n in range(2 * PER_PAGE + 1)
    ]
    pages = [trust_page(many, cards(), number) for number in (1, 2, 3)]
    found = [re.findall(r"<h2>(metric-[0-9]{3})", html) for html in pages]
    assert [len(names) for names in found] == [PER_PAGE, PER_PAGE, 1]
    assert sorted(name for names in found for name in names) == [
        f"metric-{n:03d}" for n in range(2 * PER_PAGE + 1)
    ]
    assert "Page 2 of 3, 51 metrics" in pages[1]
    assert './trust?page=1"' in pages[1]
    assert './trust?page=3"' in pages[1]
    assert trust_page(many, cards(), 999) == pages[2]
    assert trust_page(many, cards(), 0) == pages[0]


def test_the_one_pixel_change_is_shown_as_measured() -> None:
    row = shown().split("every channel value raised by one")[1]
    assert "measured" in row[: row.index("</tr>")]
    assert "1 % of sd" in row[: row.index("</tr>")]


def test_a_report_of_no_pair_is_no_passed_check() -> None:
    none = trust("ratings", fails=False).model_copy(update={"n_pairs": 0, "n_images": 0})
    runs = [replace(run, result=run.result.model_copy(update={"trust": none})) for run in runs_of()]
    html = trust_page(build_snapshot(runs, cards(), NOW).entries.values(), cards())
    assert "nothing could be checked" in html
    assert "passed every check" not in html


def test_scores_files_are_not_shown_as_checked() -> None:
    assert "BLIP2-ITM" not in shown()
    assert "nothing was run, so nothing was checked" in shown()


def test_costs_are_those_of_each_benchmark() -> None:
    html = shown()
    assert "Seconds per 1,000 pairs" in html
    assert "<td>26.0</td>" in html  # 12.5 s for 480 pairs


def test_what_was_found_about_items_is_counted_and_a_few_are_named() -> None:
    html = shown()
    assert "3 of 480 without a score" in html
    assert "1 × image unreadable, 2 × text truncated" in html
    assert html.count("The image cannot be read.") == 5


def test_names_and_ids_of_strangers_do_no_harm() -> None:
    assert "<img" not in shown()
    assert NASTY not in shown()


def test_without_runs_it_says_so() -> None:
    assert "No metric has been run yet." in trust_page([], cards())
