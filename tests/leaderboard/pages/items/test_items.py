"""The item browser: which cases are listed, what they add up to, and what is withheld or not here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import SCHEMA, cases_path, write_cases
from benchmarks.errors import TransientError
from benchmarks.registry import load_registry
from benchmarks.sources.folder import DataFile
from leaderboard.pages.items.case_view import mark, picture_address
from leaderboard.pages.items.items_page import Items
from leaderboard.pages.page import Context
from leaderboard.publication.item_scores import CaseSet, ItemReader, Kept, Standing
from leaderboard.service.pictures import Pictures
from leaderboard.tables import to_csv
from leaderboard.views.addresses import items_address
from leaderboard.views.examples import (
    Came,
    ItemsQuery,
    case_shown,
    difference,
    listed,
    summary,
    table_of,
)
from tests.benchmarks.checks import agreement
from tests.leaderboard.api.asking import asking
from tests.leaderboard.pages.items.looked_at import (
    LACKS,
    N_PROMPTS,
    NOISY,
    RIGHT,
    TURNED,
    case_set,
    context,
    entry_id,
    filled,
    rated,
    scores_of,
)
from tests.leaderboard.pages.parsed import Node, harmless, named, read
from tests.leaderboard.pages.synthetic import REVISION, cards, keep, site_of

AT_ONCE = 6


# Which cases in what order, and what they add up to.


@pytest.fixture(scope="module")
def cases() -> CaseSet:
    return case_set()


def standing(cases: CaseSet, place: int) -> Standing:
    return Standing.of(entry_id(place), cases, scores_of(cases.frame, place).to_numpy())


def ordered(show: Any, cases: CaseSet, *places: int, within: Any = None) -> np.ndarray:
    chosen = np.ones(cases.size, bool) if within is None else within
    return listed(show, cases, tuple(standing(cases, place) for place in places), chosen)


def test_failures_are_the_cases_with_a_mistake_or_without_scores_worst_first(
    cases: CaseSet,
) -> None:
    share = standing(cases, NOISY).share
    order = ordered("failures", cases, NOISY)
    assert list(share[order]) == sorted(share[order])
    assert set(order) == set(np.flatnonzero(share < 1))
    assert not ordered("failures", cases, RIGHT).size
    lacking = ordered("failures", cases, LACKS)
    assert len(lacking) == cases.size - 2, "the first two cases have all scores, and are right"
    assert np.isnan(standing(cases, LACKS).share[lacking]).all()


def test_disagreements_come_with_the_greatest_difference_first(cases: CaseSet) -> None:
    order = ordered("disagreements", cases, NOISY, RIGHT)
    gaps = np.abs(standing(cases, NOISY).share - standing(cases, RIGHT).share)[order]
    assert list(gaps) == sorted(gaps, reverse=True) and gaps.min() > 0
    assert not ordered("disagreements", cases, RIGHT, RIGHT).size
    table = table_of(cases, (standing(cases, NOISY), standing(cases, RIGHT)), order)
    ids = [cases.comparisons.case_ids[case] for case in order]
    assert [row["case_id"] for row in table.rows] == ids
    assert table.rows[0]["a_share"] == standing(cases, NOISY).share[order[0]]
    assert {row["b_share"] for row in table.rows} == {1.0} and table.about["a"] == entry_id(NOISY)
    assert to_csv(table).count("\n") == len(order) + 1


def test_only_cases_with_the_skill_and_the_split_are_listed(cases: CaseSet) -> None:
    order = ordered("all", cases, within=cases.within("counting", "real"))
    assert list(order) == sorted(order) and 0 < len(order) < cases.size
    assert {(cases.skills[case], cases.splits[case]) for case in order} == {
        (("counting",), ("real",))
    }


def test_a_summary_pools_the_comparisons_and_a_difference_is_paired(cases: CaseSet) -> None:
    every = np.ones(cases.size, bool)
    noisy, right = standing(cases, NOISY), standing(cases, RIGHT)
    found = summary(cases, noisy, every)
    mine = agreement(cases.frame, scores_of(cases.frame, NOISY))
    assert found.right.value == pytest.approx(mine["n_right"].sum() / mine["n_compared"].sum())
    assert found.right.low < found.right.value < found.right.high
    assert found.bins.sum() == found.n_cases == cases.size
    assert found.n_all_right == (mine["share"] == 1).sum()
    lacking = summary(cases, standing(cases, LACKS), every)
    assert (lacking.n_missing, lacking.right.value) == (120 - 8, 1.0)
    few = summary(cases, noisy, np.arange(cases.size) < 5).right  # Too few for an interval.
    assert np.isfinite(few.value) and np.isnan([few.low, few.high]).all()
    paired = difference(cases, noisy, right, every)
    alone = np.array([found.right.value, found.right.low, found.right.high])
    assert (paired.value, paired.low, paired.high) == pytest.approx(tuple(alone - 1.0))
    same = difference(cases, noisy, noisy, every)
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)


def test_an_image_tells_how_its_comparisons_came_out_and_the_gravest_mistake(
    cases: CaseSet,
) -> None:
    turned, right = standing(cases, TURNED), standing(cases, RIGHT)
    shown = case_shown(cases, 0, (turned, right))
    said = ["5.0 of 5", "4.0 of 5", "2.5 of 5", "1.0 of 5"]
    assert [(tile.number, tile.pairs[0].said) for tile in shown.tiles] == [*enumerate(said, 1)]
    came = {tuple(one.came for one in tile.pairs[0].scored) for tile in shown.tiles}
    assert came == {(Came(0, 3, 0), Came(3, 0, 0))}
    assert [one.came for one in shown.verdicts] == [Came(0, 6, 0), Came(6, 0, 0)]
    mistake = case_shown(cases, 0, (turned,)).mistake  # Where people are most sure.
    assert mistake is not None
    assert (mistake.above[:3], mistake.below[:3]) == ((4, 0, "1.0 of 5"), (1, 0, "5.0 of 5"))
    assert case_shown(cases, 0, (right,)).mistake is None


def test_of_many_images_those_are_shown_that_are_misjudged_most() -> None:
    rows = [
        ("x", "x", "", "", f"{side}{k}|{text}", f"{side}{k}", text, float(side == text), "said")
        for side in "pq" for k in range(8) for text in "pq"
    ]  # fmt: skip
    cases = case_set(pd.DataFrame(rows, columns=SCHEMA.names))
    score = cases.frame["expected"].to_numpy().copy()
    wrong = (cases.frame["image_id"] == "q5").to_numpy()
    score[wrong] = 1 - score[wrong]
    shown = case_shown(cases, 0, (Standing.of("e", cases, score),), most=4)
    assert (shown.n_images, len(shown.tiles)) == (16, 4)
    (tile,) = (tile for tile in shown.tiles if tile.image_id == "q5")
    assert [pair.prompt for pair in tile.pairs] == [0, 1] and shown.mistake is not None
    assert {shown.mistake.above[0], shown.mistake.below[0]} <= {t.number for t in shown.tiles}


# The page.


@pytest.fixture(scope="module")
def site() -> Context:
    return context()


@pytest.fixture(scope="module")
def items(site: Context) -> Items:
    return Items(site)


def shown(items: Items, a: int | str = "", b: int | str = "", **asked: str) -> Node:
    of = {"a": a, "b": b}
    named_ = {k: entry_id(v) if isinstance(v, int) else v for k, v in of.items()}
    query = ItemsQuery.from_params({"benchmark": "ratings", **named_, **asked})
    html = items.answer(query)
    harmless(html)
    return read(html)


def listed_cases(page: Node) -> list[str]:
    return [one["aria-label"].removeprefix("Case ") for one in page.all("[aria-label=Case p]")]


def test_a_link_leads_to_the_state_it_was_made_of() -> None:
    asked = ItemsQuery("ratings", "text", "", "s/m", "t/n", "all", "p 1&2")
    address = items_address("ratings", skill="text", a="s/m", b="t/n", show="all", case="p 1&2")
    params = dict(part.split("=", 1) for part in address.partition("?")[2].split("&"))
    assert set(params) == {"benchmark", "skill", "a", "b", "show", "case"}
    assert asked.to_link() == address and asked.to_link(page=3).endswith("&page=3")
    for page in ("0", "-1", "x", "9" * 30, "१", ""):
        assert ItemsQuery.from_params({"page": page}).page == 1


def test_failures_are_listed_page_by_page_with_what_the_metric_prefers(items: Items) -> None:
    page = shown(items, TURNED)
    named(page)
    assert len(listed_cases(page)) == 12
    for words in ("worst first", "all 6 wrong", "prefers image 4", "Page 1 of 3"):
        assert words in page
    pages = [shown(items, TURNED, show="all", page=number) for number in ("1", "2", "3")]
    found = [case for one in pages for case in listed_cases(one)]
    assert sorted(found) == sorted(f"p{k}" for k in range(N_PROMPTS))
    assert "Page 3 of 3" in shown(items, TURNED, show="all", page="99")
    assert not listed_cases(shown(items, RIGHT)) and "No failure" in shown(items, RIGHT)


def test_two_metrics_are_shown_where_they_disagree(items: Items) -> None:
    page = shown(items, NOISY, RIGHT)
    assert "disagree" in page and "Difference" in page and page.text.count("all 6 right") >= 12
    assert "second metric" in shown(items, NOISY, show="disagreements")
    assert "against itself" in shown(items, NOISY, NOISY)


def test_missing_scores_are_in_sight(items: Items) -> None:
    page = shown(items, LACKS)
    assert all(words in page for words in ("no score", "4 missing", "112 pairs"))
    assert "120 pairs" in shown(items, "made-up-0004/HPSv2")  # It has no file of scores.


def test_a_case_by_itself_says_which_metrics_failed_on_it(items: Items) -> None:
    page = shown(items, NOISY, case="p7")
    assert listed_cases(page) == ["p7"] and "Back to" in page
    assert page.texts("th.as-name")[0].startswith("PickScore"), "the one that is upside down"
    assert "<img src=x" in shown(items, TURNED, case="p3").text  # A hostile prompt.


def test_what_does_not_exist_is_said_and_something_else_is_shown(items: Items) -> None:
    page = shown(items, "no/no", skill="no", split="no", show="no", case="no")
    for what in ("skill “no", "split “no", "metric “no/no", "case “no"):
        assert what in page
    assert listed_cases(page) or "No failure" in page
    assert "“nobody”" in read(items.answer(ItemsQuery(benchmark="nobody")))


def test_nothing_of_pairs_is_shown_where_answers_are_withheld_or_not_published() -> None:
    page = shown(Items(context(withheld=True)), TURNED, case="p3")
    assert "withheld" in page and "of 5" not in page
    assert not page.all("img") and not listed_cases(page)
    assert "No cases" in shown(Items(context(filled(with_cases=False))))


def test_images_that_are_not_here_have_a_place_and_every_control_a_name(items: Items) -> None:
    page = shown(items, TURNED)
    assert not page.all("img") and page.text.count("not on this machine") == 12 * 4
    assert page.all("[role=img][aria-label=Image 1: a cup]")
    labels = [label.one("span").text for label in page.all("label") if label.all("select")]
    assert labels == ["Benchmark", "Skill", "Split", "Metric A", "Metric B", "Show"]
    assert len(page.all("select")) == len(labels)


@pytest.mark.parametrize(
    ("came", "said"),
    [(Came(1, 0, 0), "✓ right"), (Came(0, 2, 0), "✗ both wrong"), (Came(0, 0, 5), "= all 5 tied"),
     (Came(3, 1, 2), "◐ 3 of 6 right, 2 tied"), (Came(0, 0, 0), "– not compared")],
)  # fmt: skip
def test_how_comparisons_came_out_is_told_by_sign_and_word(came: Came, said: str) -> None:
    assert read(mark(came)).text == said


def test_an_image_id_is_quoted_whole_in_its_address() -> None:
    found = picture_address("croc_hum", "../a b|orig?x#y")
    assert found == "./v1/images/croc_hum/..%2Fa%20b%7Corig%3Fx%23y?w=320"


def test_where_less_is_better_scores_are_turned_round(site: Context) -> None:
    reader, view = ItemReader(site.store.public), site.reader.view()
    cases = reader.cases(view.boards["ratings"].card)
    assert cases is not None
    entry = view.entries[entry_id(TURNED)]
    (plain,) = reader.standings([entry], cases, {})
    (turned,) = reader.standings([entry], cases, {entry.submission_id: (entry.metric,)})
    assert (plain.share.max(), turned.share.min()) == (0.0, 1.0)


# Prompts that are not published with their cases.


class Texts(Pictures):
    """The prompts of a folder of data that a test fills."""

    def __init__(self, here: Mapping[str, str]) -> None:
        super().__init__({}, None)
        self.here = here

    def texts(self, benchmark: str) -> Mapping[str, str]:
        return self.here


def test_prompts_are_shown_as_soon_as_they_are_here_and_nothing_else_moves() -> None:
    store = filled(with_cases=False)
    files = (DataFile(path="ratings/answers.csv", role="answers", repo="owner/ratings"),)
    shown_ = {**cards(), "ratings": cards()["ratings"].model_copy(update={"files": files})}
    keep(store, {cases_path("ratings", REVISION): write_cases(rated().assign(prompt=""))})
    texts = Texts({})
    items = Items(site_of(store, cards_=shown_, pictures=texts))
    absent = "prompt is not"
    without = shown(items, TURNED)
    assert "benchmarks fetch ratings" in without and without.text.count(absent) == 12
    texts.here = {f"p{k}": f"a cup, p{k}" for k in range(30)}
    found = shown(items, TURNED)
    assert "a cup, p7" in found and absent not in found
    assert without.one("table").text == found.one("table").text
    assert listed_cases(without) == listed_cases(found)
    own = Items(replace(context(), pictures=Texts({"p1": "another prompt"})))
    page = shown(own, RIGHT, show="all")  # Cases that have prompts keep them.
    assert "a cup, p1" in page and "another prompt" not in page


@pytest.mark.paper
@pytest.mark.parametrize(
    ("name", "prompts"), [("ts2", 165), ("tifa160", 160), ("genai_1600", 1600)]
)
def test_prompts_of_a_bundled_benchmark_come_from_the_folder_of_data(
    assay_data: Path, name: str, prompts: int
) -> None:
    registry = load_registry()
    assert Pictures(registry, None).texts(name) == {}
    pictures = Pictures(registry, assay_data)
    found = pictures.texts(name)
    assert len(found) == prompts and pictures.texts(name) is found
    assert set(found) == set(registry[name].answers(None).clusters)


# What many ask for at once is read once; what cannot be read is told to all and tried again.


def test_cases_and_scores_are_read_once(site: Context) -> None:
    paths: list[str] = []
    public = site.store.public

    class Counting:
        def read(self, path: str) -> bytes:
            paths.append(path)
            return public.read(path)

    reader, view = ItemReader(Counting()), site.reader.view()  # type: ignore[arg-type]
    for _ in range(3):
        cases = reader.cases(view.boards["ratings"].card)
        assert cases is not None
        reader.standings([view.entries[entry_id(p)] for p in (RIGHT, NOISY)], cases, {})
    assert len(paths) == len(set(paths)) == 3


def test_what_is_kept_stays_within_its_bytes() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name

    kept = Kept(10)
    for name in ("a", "b", "a", "c", "b"):
        kept.get(name, partial(make, name), lambda _: 5)
    assert made == ["a", "b", "c", "b"], "b was looked at longest ago when c came"


class Slow:
    """Makes something once it is let go, and counts how often."""

    def __init__(self, result: Callable[[], Any]) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.times = 0
        self._result = result

    def __call__(self) -> Any:
        self.times += 1
        self.begun.set()
        assert self.go.wait(60)
        return self._result()


@pytest.mark.parametrize("fails", [False, True])
def test_what_many_ask_for_at_once_is_made_once_and_an_error_reaches_all(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    waits = threading.Semaphore(0)

    class Counted(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.release()
            return super().result(timeout)

    monkeypatch.setattr("leaderboard.together.Future", Counted)

    def make() -> list[int]:
        if fails:
            raise TransientError("store_down", "The store does not answer.", "Wait.")
        return [1, 2]

    kept, slow = Kept(100), Slow(make)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(kept.get, "key", slow, len) for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE - 1):
            assert waits.acquire(timeout=60)
        slow.go.set()
    if fails:
        assert all(isinstance(one.exception(), TransientError) for one in asked)
    else:
        assert len({id(one.result()) for one in asked}) == 1
    assert slow.times == 1
    assert kept.get("key", lambda: [3], len) == ([3] if fails else [1, 2])  # No error is kept.


def test_another_key_does_not_wait() -> None:
    kept, slow = Kept(100), Slow(lambda: [1])
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(kept.get, "slow", slow, len)
        assert slow.begun.wait(60)
        assert kept.get("quick", lambda: [2], len) == [2]
        slow.go.set()
        assert first.result() == [1]


def test_cold_requests_parse_the_cases_once_and_hold_no_turn_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = asking()
    read_cases = api.source.items._read_cases
    card = api.source.reader.view().boards["ratings"].card
    slow = Slow(lambda: read_cases(card, {}))
    monkeypatch.setattr(api.source.items, "_read_cases", lambda *_: slow())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(api.client.get, "/v1/items?benchmark=ratings") for _ in range(AT_ONCE)]
        assert slow.begun.wait(60)
        with api.source.turn(), api.source.turn():  # Both are free.
            pass
        slow.go.set()
        answers = [one.result() for one in asked]
    assert slow.times == 1
    # Their turns wait for 0.2 s only here; who got none was told so.
    assert {answer.status_code for answer in answers} <= {200, 503}
    assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
