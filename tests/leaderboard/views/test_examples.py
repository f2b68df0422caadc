"""Examples: which cases are listed, what they add up to, and what is withheld or not here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import SCHEMA, cases_path, write_cases
from benchmarks.parquet import write_stored
from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from benchmarks.sources.folder import DataFile
from leaderboard.publication.item_scores import CaseSet, CaseSummary, ItemReader
from leaderboard.publication.reader import View
from leaderboard.service.pictures import Pictures
from leaderboard.store.interface import Store
from leaderboard.tables import to_csv
from leaderboard.views.addresses import params_of
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.examples import (
    Came,
    ExampleList,
    ExampleSources,
    case_shown,
    difference,
    first_failures,
    image_address,
    list_examples,
    listed,
    seek_failures,
    summary,
    table_of,
)
from leaderboard.web.page import Context
from tests.kit.boards import REVISION, cards, keep, site_of
from tests.kit.checks import agreement
from tests.kit.store import Counting
from tests.leaderboard.api.asking import asking
from tests.leaderboard.slow_making import Slow
from tests.leaderboard.views.example_fixture import (
    LACKS,
    N_PROMPTS,
    NOISY,
    RIGHT,
    TURNED,
    MadeUpImages,
    behind_of,
    case_set,
    context,
    entry_id,
    filled,
    rated,
    scores_of,
    withheld,
)

AT_ONCE = 6


# Which cases in what order, and what they add up to.


@pytest.fixture(scope="module")
def cases() -> CaseSet:
    return case_set()


def standing(cases: CaseSet, place: int) -> CaseSummary:
    return CaseSummary.of(entry_id(place), cases, scores_of(cases.frame, place).to_numpy())


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
    shown = case_shown(cases, 0, (CaseSummary.of("e", cases, score),), most=4)
    assert (shown.n_images, len(shown.tiles)) == (16, 4)
    (tile,) = (tile for tile in shown.tiles if tile.image_id == "q5")
    assert [pair.prompt for pair in tile.pairs] == [0, 1] and shown.mistake is not None
    assert {shown.mistake.above[0], shown.mistake.below[0]} <= {t.number for t in shown.tiles}


@pytest.fixture(scope="module")
def site() -> Context:
    return context()


# A page of examples.


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def view(store: Store) -> View:
    return site_of(store, cards_=cards()).reader.view()


def listing(
    view: View, sources: ExampleSources, a: int | str = "", b: int | str = "", **asked: Any
) -> ExampleList:
    of = [entry_id(one) if isinstance(one, int) else one for one in (a, b)]
    found = list_examples(CompareQuery(**{"benchmark": "ratings", **asked}, a=of[0], b=of[1]),
                          view, sources)  # fmt: skip
    assert found is not None
    return found


def ids(found: ExampleList) -> list[str]:
    return [one.case_id for one in found.examples]


def test_the_address_in_the_api_says_which_examples_are_listed() -> None:
    asked = CompareQuery(
        benchmark="ratings", skill="text", a="s/m", b="t/n", show="all", case="p 1&2", page=3
    )
    assert CompareQuery.from_params(params_of(asked.to_items())) == replace(asked, page=1)


def test_pages_together_hold_every_case_once(view: View, store: Store) -> None:
    sources = behind_of(store)
    pages = [listing(view, sources, TURNED, show="all", page=k) for k in (1, 2, 3)]
    assert [one.pages for one in pages] == [3, 3, 3] and len(ids(pages[0])) == 12
    found = [case for one in pages for case in ids(one)]
    assert sorted(found) == sorted(f"p{k}" for k in range(N_PROMPTS))
    assert listing(view, sources, TURNED, show="all", page=99).page == 3


def test_two_metrics_have_a_paired_difference_and_are_listed_where_they_differ(
    view: View, store: Store
) -> None:
    found = listing(view, behind_of(store), NOISY, RIGHT)
    assert found.choice.show == "disagreements" and found.gap is not None
    assert [one.entry_id for one in found.summaries] == [entry_id(NOISY), entry_id(RIGHT)]
    assert found.gap.value == found.summaries[0].right.value - found.summaries[1].right.value
    alone = listing(view, behind_of(store), NOISY, show="disagreements")
    assert alone.choice.show == "failures" and len(alone.choice.remarks) == 1
    same = listing(view, behind_of(store), NOISY, NOISY)
    assert same.choice.b == "" and len(same.choice.remarks) == 1


def test_a_case_by_itself_says_which_metrics_fail_on_it_the_worst_first(
    view: View, store: Store
) -> None:
    found = listing(view, behind_of(store), NOISY, case="p7")
    assert ids(found) == ["p7"] and found.every_entry[0].entry_id == entry_id(TURNED)
    shares = [one.came.share for one in found.every_entry if one.came.compared]
    assert shares == sorted(shares)
    assert {one.entry_id for one in found.every_entry} == set(found.choice.entries)
    last = found.every_entry[-1]
    assert last.came.compared == 0 and last.n_missing == 4


def test_missing_scores_are_counted(view: View, store: Store) -> None:
    found = listing(view, behind_of(store), LACKS)
    assert found.summaries[0].n_missing == 112
    assert found.examples[0].verdicts[0].n_missing == 4
    nothing = listing(view, behind_of(store), "made-up-0004/HPSv2")  # It has no file of scores.
    assert nothing.summaries[0].n_missing == 120


def test_what_does_not_exist_is_said_and_something_else_is_shown(view: View, store: Store) -> None:
    asked = {"skill": "no", "split": "no", "show": "no", "case": "no"}
    found = listing(view, behind_of(store), "no/no", **asked)
    said = " ".join(found.choice.remarks)
    for what in ("skill “no", "split “no", "metric “no/no", "case “no", "“no” to show"):
        assert what in said
    assert found.choice.a == found.choice.entries[0]
    other = list_examples(CompareQuery(benchmark="nobody"), view, behind_of(store))
    assert other is not None and "“nobody”" in other.choice.remarks[0]


@pytest.mark.parametrize(
    ("with_cases", "here", "missing"), [(True, withheld(), "withheld"), (False, None, "no_cases")]
)
def test_nothing_of_pairs_is_read_where_answers_are_withheld_or_not_published(
    with_cases: bool, here: Any, missing: str
) -> None:
    store = filled(with_cases=with_cases)
    view = site_of(store, cards_=cards()).reader.view()
    for query in ({"show": "failures"}, {"case": "p3"}, {"show": "all"}):
        found = listing(view, behind_of(store, here), TURNED, **query)
        assert found.missing == missing
        assert (found.examples, found.summaries, found.every_entry) == ((), (), ())


# The first benchmark on which a metric fails.


GRAPHS = cards()["graphs"].revision


def test_failures_are_those_of_the_first_benchmark_that_has_some(view: View, store: Store) -> None:
    sources = behind_of(store)
    here = first_failures(CompareQuery(benchmark="ratings", a=entry_id(TURNED)), view, sources)
    assert here is not None and (here.benchmark, here.show) == ("ratings", "failures")
    right = CompareQuery(benchmark="ratings", a=entry_id(RIGHT), show="failures")
    assert first_failures(right, view, sources) is None, "it fails on none"
    skilled = first_failures(
        CompareQuery(benchmark="ratings", skill="counting", a=entry_id(NOISY)), view, sources
    )
    assert skilled is not None and skilled.skill == "counting"
    closed = behind_of(store, withheld())
    assert (
        first_failures(CompareQuery(benchmark="ratings", a=entry_id(TURNED)), view, closed) is None
    )


def test_where_a_metric_has_no_failure_the_list_names_the_benchmark_that_has() -> None:
    store = filled()
    cases, own = rated(), "made-up-0000"
    table = ScoreTable(scores_of(cases, TURNED).set_axis(cases["pair_id"]).rename(
        entry_id(RIGHT).split("/")[1]).to_frame())  # fmt: skip
    stored = write_stored(table, submission_id=own, benchmark="graphs", revision=GRAPHS)
    keep(store, {cases_path("graphs", GRAPHS): write_cases(cases),
                 f"results/{own}/graphs.scores.parquet": stored})  # fmt: skip
    view, sources = site_of(store, cards_=cards()).reader.view(), behind_of(store)
    assert listing(view, sources, RIGHT).elsewhere is None, "simulated ratings stand apart"
    ratings = view.boards["ratings"]
    ratings.card = ratings.card.model_copy(update={"simulated": False})
    found = listing(view, sources, RIGHT)
    assert (found.total, found.sought) == (0, True)
    assert found.elsewhere is not None
    assert (found.elsewhere.benchmark, found.elsewhere.a) == ("graphs", entry_id(RIGHT))
    there = list_examples(found.elsewhere, view, sources)
    assert there is not None and there.total == N_PROMPTS
    seeking = CompareQuery(benchmark="ratings", a=entry_id(RIGHT), show="failures")
    assert seek_failures(seeking, view, sources) == found.elsewhere
    every = replace(seeking, show="all")
    assert seek_failures(every, view, sources) == every
    only = filled()
    alone = listing(site_of(only, cards_=cards()).reader.view(), behind_of(only), RIGHT)
    assert alone.sought and alone.elsewhere is None


# Images and prompts that are here.


@pytest.mark.parametrize(("here", "drawn"), [(0, False), (1, False), (2, True), (4, True)])
def test_where_fewer_than_half_of_the_images_are_here_no_tiles_are_drawn(
    view: View, store: Store, here: int, drawn: bool
) -> None:
    case = listing(view, behind_of(store), TURNED, case="p7").examples[0]
    names = [tile.image_id for tile in case.tiles[:here]]
    (example,) = listing(
        view, behind_of(store, images=MadeUpImages(names)), TURNED, case="p7"
    ).examples
    assert (example.n_available, example.drawn) == (here, drawn)
    assert example.images[here:] == ("",) * (4 - here)
    assert all(src.startswith("./v1/images/ratings/") for src in example.images[:here])


def test_an_image_id_is_quoted_whole_in_its_address() -> None:
    found = image_address("croc_hum", "../a b|orig?x#y")
    assert found == "./v1/images/croc_hum/..%2Fa%20b%7Corig%3Fx%23y?w=320"


def test_prompts_are_shown_as_soon_as_they_are_here_and_nothing_else_moves() -> None:
    store = filled(with_cases=False)
    files = (DataFile(path="ratings/answers.csv", role="answers", repo="owner/ratings"),)
    here = {**cards(), "ratings": cards()["ratings"].model_copy(update={"files": files})}
    keep(store, {cases_path("ratings", REVISION): write_cases(rated().assign(prompt=""))})
    view = site_of(store, cards_=here).reader.view()
    without = listing(view, behind_of(store, here), TURNED)
    assert without.absent == ("prompts", "images")
    assert {prompt for one in without.examples for prompt in one.prompts} == {""}
    images = MadeUpImages(prompts={f"p{k}": f"a cup, p{k}" for k in range(30)})
    found = listing(view, behind_of(store, here, images=images), TURNED)
    assert found.absent == ("images",) and ids(found) == ids(without)
    for one in found.examples:
        assert one.prompts == (f"a cup, {one.case_id}",)
    assert found.summaries[0].right == without.summaries[0].right
    own = filled()  # Cases that have prompts keep them.
    images = MadeUpImages(prompts={"p1": "another prompt"})
    kept = listing(site_of(own, cards_=cards()).reader.view(), behind_of(own, images=images),
                   RIGHT, show="all")  # fmt: skip
    assert kept.examples[1].prompts == ("a cup, p1",)


def test_where_less_is_better_scores_are_turned_round(site: Context) -> None:
    reader, view = ItemReader(site.store.public), site.reader.view()
    cases = reader.cases(view.boards["ratings"].card)
    assert cases is not None
    entry = view.entries[entry_id(TURNED)]
    (plain,) = reader.summaries([entry], cases, {})
    (turned,) = reader.summaries([entry], cases, {entry.submission_id: (entry.metric,)})
    assert (plain.share.max(), turned.share.min()) == (0.0, 1.0)


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
    public: Any = Counting(site.store.public)
    reader, view = ItemReader(public), site.reader.view()
    for _ in range(3):
        cases = reader.cases(view.boards["ratings"].card)
        assert cases is not None
        reader.summaries([view.entries[entry_id(p)] for p in (RIGHT, NOISY)], cases, {})
    assert len(public.paths) == len(set(public.paths)) == 3


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
