"""The item browser as it answers links: what exists, what does not, and what is withheld."""

from __future__ import annotations

import re
from functools import partial
from html import unescape

import pytest

from leaderboard.pages.items.case_view import mark, picture_address
from leaderboard.pages.items.items_page import Items
from leaderboard.pages.items.query import ItemsQuery
from leaderboard.pages.items.reading import ItemReader, Kept
from leaderboard.pages.items.tiles import Came
from leaderboard.pages.page import Context
from leaderboard.pages.shown.addresses import items_address
from leaderboard.store.interface import Repository
from tests.leaderboard.pages.items.looked_at import (
    LACKS,
    N_PROMPTS,
    NOISY,
    RIGHT,
    TURNED,
    context,
    entry_id,
    filled,
)


@pytest.fixture(scope="module")
def site() -> Context:
    return context()


@pytest.fixture(scope="module")
def items(site: Context) -> Items:
    return Items(site)


def shown(items: Items, **asked: str) -> str:
    return items.answer(ItemsQuery.from_params({"benchmark": "ratings", **asked}))


def listed_cases(page: str) -> list[str]:
    return re.findall(r'aria-label="Case (p\d+)"', page)


def test_a_link_leads_to_the_state_it_was_made_of() -> None:
    address = items_address("ratings", skill="text", a="s/m", b="t/n", show="all", case="p 1&2")
    query = address.partition("?")[2]
    params = dict(part.split("=", 1) for part in query.split("&"))
    assert set(params) == {"benchmark", "skill", "a", "b", "show", "case"}
    asked = ItemsQuery("ratings", "text", "", "s/m", "t/n", "all", "p 1&2")
    assert asked.to_link() == address
    assert asked.to_link(page=3).endswith("&page=3")


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 30, "१", ""])
def test_a_page_that_is_no_number_is_the_first(page: str) -> None:
    assert ItemsQuery.from_params({"page": page}).page == 1


def test_failures_of_a_metric_are_listed_worst_first(items: Items) -> None:
    page = shown(items, a=entry_id(TURNED))
    assert "Where it fails, worst first" in page
    assert len(listed_cases(page)) == 12
    assert "all 6 wrong" in page
    assert "prefers image 4" in page
    assert "Page 1 of 3" in page


def test_pages_divide_all_cases_among_them(items: Items) -> None:
    found = [
        case
        for number in ("1", "2", "3")
        for case in listed_cases(shown(items, a=entry_id(TURNED), show="all", page=number))
    ]
    assert sorted(found) == sorted(f"p{k}" for k in range(N_PROMPTS))
    last = shown(items, a=entry_id(TURNED), show="all", page="99")
    assert "Page 3 of 3" in last


def test_two_metrics_are_shown_where_they_disagree(items: Items) -> None:
    page = shown(items, a=entry_id(NOISY), b=entry_id(RIGHT))
    assert "Where the two disagree" in page
    assert "Difference" in page
    assert page.count("all 6 right") >= 12


def test_a_metric_that_is_always_right_has_no_failures(items: Items) -> None:
    page = shown(items, a=entry_id(RIGHT))
    assert "No failure here" in page
    assert not listed_cases(page)


def test_missing_scores_are_in_sight(items: Items) -> None:
    page = shown(items, a=entry_id(LACKS))
    assert "no score" in page
    assert "4 missing scores" in page
    assert "112 pairs" in page


def test_a_metric_without_a_file_of_scores_lacks_all(items: Items) -> None:
    page = shown(items, a="made-up-0004/HPSv2")
    assert "120 pairs" in page


def test_a_case_by_itself_says_which_metrics_failed_on_it(items: Items) -> None:
    page = shown(items, a=entry_id(NOISY), case="p7")
    assert listed_cases(page) == ["p7"]
    assert "Which metrics failed here" in page
    rows = re.findall(r'<th scope="row" class="as-name">(.*?)</th>', page)
    names = [unescape(re.sub("<[^>]*>", "", row)) for row in rows]
    assert names[0].startswith("PickScore"), "the one that is upside down"
    assert "Back to the list" in page


def test_what_does_not_exist_is_said_and_something_else_is_shown(items: Items) -> None:
    page = shown(items, skill="no", split="no", a="no/no", show="no", case="no")
    for what in ("skill “no", "split “no", "metric “no/no", "case “no"):
        assert f"There is no {what}”" in page
    assert listed_cases(page) or "No failure here" in page
    other = items.answer(ItemsQuery(benchmark="nobody"))
    assert "There is no benchmark “nobody” here." in other


def test_disagreements_need_a_second_metric_other_than_the_first(items: Items) -> None:
    alone = shown(items, a=entry_id(NOISY), show="disagreements")
    assert "Disagreements need a second metric" in alone
    same = shown(items, a=entry_id(NOISY), b=entry_id(NOISY))
    assert "not held against itself" in same


def test_hostile_prompts_and_names_stay_text(items: Items) -> None:
    page = shown(items, a=entry_id(TURNED), case="p3")
    assert "<img src=x" not in page
    assert "{{7*7}}" not in page
    assert "\u202e" not in page


def test_nothing_of_pairs_is_shown_where_answers_are_withheld() -> None:
    page = shown(Items(context(withheld=True)), a=entry_id(TURNED), case="p3")
    assert "Answers are withheld" in page
    assert "of 5" not in page
    assert "<img" not in page
    assert not listed_cases(page)


def test_a_benchmark_whose_cases_are_not_published_yet_says_so() -> None:
    page = shown(Items(context(filled(with_cases=False))))
    assert "No cases published yet" in page


def test_without_images_there_is_a_place_for_each_that_says_so(items: Items) -> None:
    page = shown(items, a=entry_id(TURNED))
    assert "<img" not in page
    assert page.count("not on this machine") == 12 * 4
    assert 'role="img" aria-label="Image 1: a cup' in page


def test_every_control_has_a_name(items: Items) -> None:
    page = shown(items)
    selects = re.findall(r"<label><span>([^<]+)</span><select", page)
    assert selects == ["Benchmark", "Skill", "Split", "Metric A", "Metric B", "Show"]
    assert page.count("<select") == len(selects)


@pytest.mark.parametrize(
    ("came", "said"),
    [
        (Came(1, 0, 0), "✓ right"),
        (Came(0, 2, 0), "✗ both wrong"),
        (Came(0, 0, 5), "= all 5 tied"),
        (Came(3, 1, 2), "◐ 3 of 6 right, 2 tied"),
        (Came(0, 0, 0), "– not compared"),
    ],
)
def test_how_comparisons_came_out_is_told_by_sign_and_word(came: Came, said: str) -> None:
    assert re.sub("<[^>]*>", "", mark(came)) == said


def test_an_image_id_is_quoted_whole_in_its_address() -> None:
    found = picture_address("croc_hum", "../a b|orig?x#y")
    assert found == "./v1/images/croc_hum/..%2Fa%20b%7Corig%3Fx%23y?w=320"


class Counting:
    """A repository that counts what is read of it."""

    def __init__(self, inner: Repository) -> None:
        self._inner = inner
        self.read_paths: list[str] = []

    def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        return self._inner.read(path)


def test_cases_and_scores_are_read_once(site: Context) -> None:
    counting = Counting(site.store.public)
    reader = ItemReader(counting)  # type: ignore[arg-type]
    view = site.reader.view()
    for _ in range(3):
        cases = reader.cases(view.boards["ratings"].card)
        assert cases is not None
        reader.standings([view.entries[entry_id(p)] for p in (RIGHT, NOISY)], cases, {})
    assert len(counting.read_paths) == len(set(counting.read_paths)) == 3


def test_where_less_is_better_scores_are_turned_round(site: Context) -> None:
    reader, view = ItemReader(site.store.public), site.reader.view()
    cases = reader.cases(view.boards["ratings"].card)
    assert cases is not None
    entry = view.entries[entry_id(TURNED)]
    (plain,) = reader.standings([entry], cases, {})
    (turned,) = reader.standings([entry], cases, {entry.submission_id: (entry.metric,)})
    assert plain.share.max() == 0.0
    assert turned.share.min() == 1.0


def test_what_is_kept_stays_within_its_bytes() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name

    kept = Kept(10)
    for name in ("a", "b", "a", "c", "b"):
        kept.get(name, partial(make, name), lambda _: 5)
    assert made == ["a", "b", "c", "b"], "b was looked at longest ago when c came"
