"""What moved between two revisions, as the page says it."""

from __future__ import annotations

import csv
import io
import re

import pytest

from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.boards.boards_page import PAGE as BOARDS
from leaderboard.pages.moved.marks import dumbbell, moved_axis
from leaderboard.pages.moved.moved_page import banner, comparison, progress_of
from leaderboard.pages.moved.query import Comparison, MovedQuery, moved_address
from leaderboard.pages.moved.view import moved_csv, moved_view
from leaderboard.pages.page import Context, all_pages
from leaderboard.pages.queue.queue_page import one_submission
from leaderboard.records import Event
from leaderboard.states import State
from tests.leaderboard.pages.moved.moved_fixture import BEFORE, DONE, moved_site, own
from tests.leaderboard.pages.synthetic import METRICS, NASTY, NOW


@pytest.fixture(scope="module")
def site() -> Context:
    return moved_site()


def found(site: Context, **asked: str) -> Comparison:
    compared = comparison(site, MovedQuery("ratings", **asked))
    assert compared is not None
    return compared


def html_of(site: Context, **asked: str) -> str:
    shown = found(site, **asked)
    return moved_view(shown, progress_of(site, "ratings", shown.then.tag))


def test_the_page_is_there_and_not_in_the_navigation() -> None:
    (page,) = [page for page in all_pages() if page.path == "moved"]
    assert not page.in_navigation
    assert BOARDS in all_pages()


def test_every_metric_on_both_boards_has_its_line_with_both_values(site: Context) -> None:
    moved = found(site).movement
    assert moved is not None
    assert len(moved.moved) == DONE
    html = html_of(site)
    assert html.count("as-dumbbell") == DONE
    first = moved.moved[0]
    line = html[html.index(f"<bdi>{first.after.metric}</bdi>") :]
    line = line[: line.index("</tr>")]
    assert f"{first.then.value:.3f}" in line
    assert f"{first.now.value:.3f}" in line
    assert f"{first.then.rank_low}–{first.then.rank_high} → " in line


def test_it_says_how_far_the_re_evaluation_is_and_who_must_send_scores(site: Context) -> None:
    html = html_of(site)
    assert "<b>8 of 11 re-evaluated.</b>" in html
    assert "2 metrics in the queue" in html
    assert "For 1 metric only scores were sent" in html


def test_nothing_is_said_of_progress_once_all_is_done() -> None:
    site = moved_site(done=len(METRICS) - 1)
    assert "re-evaluated.</b>" not in html_of(site)
    link = banner(site, "ratings")
    assert "What moved since" in link
    assert "as-notice" not in link


def test_who_waits_is_told_from_who_left_and_who_came(site: Context) -> None:
    moved = found(site).movement
    assert moved is not None
    assert {entry.metric for entry in moved.left} == {"withdrawn-metric"}
    assert {entry.metric for entry in moved.waiting} == {"TIFA", "DSG", NASTY}
    assert [entry.metric for entry in moved.came] == ["always-half"]
    html = html_of(site)
    assert html.index("Came") < html.index("Not here yet") < html.index("<b>Left</b>")


def test_the_whole_earlier_board_is_on_the_page(site: Context) -> None:
    html = html_of(site)
    below = html[html.index('id="earlier"') :]
    assert f"The board of {BEFORE}" in below
    assert below.count('class="as-range') == 12
    assert f"report SUBMISSION --revision {BEFORE}" in below
    assert "withdrawn-metric" in below
    assert "200 resamples" in below
    assert "published without" not in below


def test_what_an_operator_hid_is_on_no_earlier_board_either() -> None:
    site = moved_site()
    hidden = own(0)
    assert f"<bdi>{hidden.name}</bdi>" in html_of(site)
    event = Event(at=NOW, state=State.HIDDEN, by="hub:olga", reason="A name that insults.")
    Ledger(site.store).append(hidden.submission_id, [event])
    before = found(site).then
    assert not [name for name in before.entries if name.startswith(hidden.submission_id)]
    html = html_of(site)
    assert f"<bdi>{hidden.name}</bdi>" not in html[html.index('id="earlier"') :]


def test_a_board_leads_to_its_earlier_one_and_says_what_is_missing(site: Context) -> None:
    said = banner(site, "ratings")
    assert "8 of 11 re-evaluated" in said
    assert f'href="./moved?benchmark=ratings&amp;from={BEFORE}#earlier"' in said
    assert banner(site, "graphs") == ""
    assert banner(site, "nothing") == ""


def test_nothing_of_a_stranger_is_markup(site: Context) -> None:
    html = html_of(site)
    assert "<img" not in html
    assert "\u202e" not in html
    assert "{{7*7}}" not in html


def test_a_link_with_what_does_not_exist_shows_what_does(site: Context) -> None:
    shown = found(site, since="../../x", until="nothing", skill="<b>", measure="what")
    assert (shown.query.since, shown.query.until, shown.query.skill) == (BEFORE, "", "")
    assert shown.selector == site.cards["ratings"].headline
    assert comparison(site, MovedQuery("graphs")) is None
    assert "Nothing to compare" in moved_view(None, None)


def test_a_skill_and_a_measure_come_with_the_link_and_go_into_it(site: Context) -> None:
    asked = found(site, skill="counting", measure="accuracy~assay").query
    assert asked.to_query() == (
        f"?benchmark=ratings&from={BEFORE}&skill=counting&measure=accuracy~assay"
    )
    assert moved_address("ratings", BEFORE) == f"./moved?benchmark=ratings&from={BEFORE}"


def test_a_submission_leads_to_its_old_results() -> None:
    site = moved_site()
    old = f"results/made-up-0000/at/{BEFORE}/ratings.json"
    public = site.store.public
    public.commit({old: b"{}"}, parent=public.head(), message="old")
    html = one_submission(site, "made-up-0000")
    assert "Earlier results" in html
    assert f'href="./moved?benchmark=ratings&amp;from={BEFORE}"' in html
    assert f"report made-up-0000 --revision {BEFORE}" in html
    assert "Earlier results" not in one_submission(site, "made-up-0001")


def test_two_earlier_boards_can_be_compared_with_each_other(site: Context) -> None:
    same = found(site, until=BEFORE).movement
    assert same is not None
    assert same.kendall == pytest.approx(1.0)
    assert {one.difference for one in same.moved} == {0.0}
    assert (same.came, same.left, same.waiting) == ((), (), ())


def test_then_and_now_differ_by_shape_and_are_said_in_words(site: Context) -> None:
    moved = found(site).movement
    assert moved is not None
    row = moved.moved[0]
    mark = dumbbell(row, moved_axis(moved.moved, 0.0))
    assert mark.count("<circle") == 2
    assert 'class="as-ring"' in mark
    assert 'class="as-dot"' in mark
    label = re.search(r'aria-label="then ([^"]*), now ([^"]*)"', mark)
    assert label is not None
    assert label[1].startswith(f"{row.then.value:.3f}")
    assert label[2].startswith(f"{row.now.value:.3f}")


def test_the_file_has_what_is_on_screen(site: Context) -> None:
    shown = found(site)
    lines = list(csv.DictReader(io.StringIO(moved_csv(shown))))
    assert len(lines) == DONE
    assert shown.movement is not None
    first = shown.movement.moved[0]
    assert float(lines[0]["value_then"]) == first.then.value
    assert float(lines[0]["value_now"]) == first.now.value
    assert lines[0]["from"] == BEFORE
