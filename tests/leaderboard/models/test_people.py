"""Boards of models by people's ratings, and records of metrics at ordering as people do.

Figures of the specification of the protocols, 7.2 and 7.4; intervals against scipy.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.errors import SubmitterError
from benchmarks.families.rating import RatingAnswers
from benchmarks.genai_bench.protocol import GENAI_1600
from benchmarks.model_boards import rated_models
from benchmarks.parquet import write_stored
from benchmarks.prompt_sets.prompt_set import load_prompt_sets
from benchmarks.schema import ScoreTable
from benchmarks.statistics.better_or_tied import difference_p_on_boards, least_prompts
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.resampling import seed_of
from benchmarks.tifa160.protocol import TIFA160
from leaderboard.models import people as orderings
from leaderboard.models.board_types import PairTest
from leaderboard.models.people import (
    ON_BOARD,
    ModelOrderings,
    PeopleBoard,
    model_orderings,
    people_boards,
    rated_sets,
)
from leaderboard.models.reading import ModelReader
from leaderboard.ranking.cells import Cell
from leaderboard.store.interface import transact
from tests.kit.store import memory_store
from tests.leaderboard.models.made_up_models import (
    CLIP,
    QUERY,
    VQA,
    World,
    cell,
    metric_card,
    prompt_set,
    prompts_of,
)
from tests.leaderboard.models.made_up_ratings import (
    FILE,
    RATED,
    RatedBenchmark,
    rated_again,
    rated_answers,
    rated_set,
    rating,
    ratings_of,
)

APART = {"low": 2.0, "middle": 3.0, "high": 4.0}


def board_of(monkeypatch: pytest.MonkeyPatch, answers: RatingAnswers) -> PeopleBoard:
    rating(monkeypatch, RatedBenchmark(answers))
    [found] = people_boards(rated_set(), None)
    return found


def test_models_that_differ_have_tiers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = board_of(monkeypatch, rated_answers(APART))
    assert list(found.skills) == [None, "basic", "counting"]
    for skill in found.skills.values():
        assert list(skill.means) == ["high", "middle", "low"]
        stand = [(m.rank, m.rank_low, m.rank_high, m.tier) for m in skill.means.values()]
        assert stand == [(1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)]
        assert skill.ahead_of == ("middle", "low") and not skill.undecided and not skill.note
    assert [one.n_prompts for one in found.skills.values()] == [120, 60, 60]
    assert found.n_ratings == 120 * 3 * 3
    assert found.seed == seed_of("rated", GENAI_1600.card.revision)  # the plan of the benchmark
    for mean in found.overall.means.values():
        assert (mean.ci_low or 9.0) < (mean.value or 0.0) < (mean.ci_high or 0.0)


def test_models_that_do_not_differ_share_a_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    each_ahead_as_often = np.tile([[2.0], [4.0], [4.0], [2.0]], (60, 3))
    answers = rated_again(rated_answers({"one": 3.0, "two": 3.0}), each_ahead_as_often)
    found = board_of(monkeypatch, answers).overall
    assert [(m.rank_low, m.rank_high, m.tier) for m in found.means.values()] == [(1, 2, 1)] * 2
    assert found.undecided and found.ahead_of == ()


ENOUGH = least_prompts(len(APART))


@pytest.mark.parametrize(("counting", "ordered"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_few_prompts_give_no_order(
    monkeypatch: pytest.MonkeyPatch, counting: int, *, ordered: bool
) -> None:
    found = board_of(monkeypatch, rated_answers(APART, counting=counting)).skills["counting"]
    means = found.means.values()
    assert all(m.n_prompts == counting and m.value is not None for m in means)
    assert [m.rank for m in means] == ([1, 2, 3] if ordered else [None] * 3)
    assert [m.tier is not None for m in means] == [ordered] * 3
    assert (found.note == "") is ordered and not found.undecided


def test_every_figure_is_that_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = rated_answers({"a": 3.0, "b": 3.2, "c": 3.6}, n=80)
    found = board_of(monkeypatch, answers).overall
    labels = answers.images.assign(label=ratings_of(answers).mean(axis=1)).pivot(
        index="prompt_id", columns="model", values="label"
    )
    differences = []
    for (a, b), test in found.pairs.items():
        x, y = labels[a].to_numpy(), labels[b].to_numpy()
        t, w = stats.ttest_rel(x, y), stats.wilcoxon(x, y)
        assert (test.t, test.t_p) == pytest.approx((t.statistic, t.pvalue))
        assert (test.wilcoxon_w, test.wilcoxon_p) == pytest.approx((w.statistic, w.pvalue))
        assert test.difference == pytest.approx((x - y).mean())
        assert (test.dominance, test.dominance_back) == ((x > y).mean(), (x < y).mean())
        differences.append(x - y)
    corrected = [test.t_p_holm for test in found.pairs.values()]
    assert corrected == pytest.approx(list(holm(difference_p_on_boards(np.array(differences)))))
    means = {model: mean.value for model, mean in found.means.items()}
    assert means == pytest.approx(labels.mean().to_dict())


def test_ratings_outside_the_scale_count_and_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = rated_answers(APART)
    ratings = ratings_of(answers)
    ratings[0, 0] = 41.0
    found = board_of(monkeypatch, rated_again(answers, ratings))
    assert found.note.startswith("1 of")
    first = str(answers.images["model"][0])
    of_model = (answers.images["model"] == first).to_numpy()
    assert found.overall.means[first].value == pytest.approx(ratings[of_model].mean())


def test_a_board_is_made_anew_when_ratings_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    benchmark = RatedBenchmark(rated_answers(APART))
    rating(monkeypatch, benchmark)
    (tmp_path / FILE).write_text("one")
    first = people_boards(rated_set(), tmp_path)
    assert people_boards(rated_set(), tmp_path) is first and benchmark.reads == 1
    (tmp_path / FILE).write_text("another")
    assert people_boards(rated_set(), tmp_path) is not first and benchmark.reads == 2


def test_without_ratings_there_is_no_board_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = SubmitterError("data_missing", "No ratings.json.", "Fetch it.")
    rated_by = {RATED: "absent", "here": "rated", "unrated": "", "elsewhere": "no_such_benchmark"}
    sets = {name: rated_set(by, name) for name, by in rated_by.items()}
    rating(monkeypatch, RatedBenchmark(rated_answers(APART)), RatedBenchmark(missing, "absent"))
    with pytest.raises(SubmitterError) as raised:
        people_boards(sets[RATED], None)
    assert raised.value is missing
    assert people_boards(sets["unrated"], None) == people_boards(sets["elsewhere"], None) == ()
    assert list(rated_sets(ModelReader(memory_store(), sets, None))) == ["here"]


def test_the_ratings_are_those_that_metrics_are_held_against() -> None:
    answers = rated_answers(APART)
    found = rated_models(answers)
    assert found is not None and {len(one) for one in found.skills.values()} == {60}
    assert found.people.shape == (120, 3)


# Released ratings
GENAI = ("SDXL_2_1", "SDXL_Turbo", "SDXL_Base", "DeepFloyd_I_XL_v1", "Midjourney_6", "DALLE_3")
MEANS: dict[str | None, tuple[float, ...]] = {
    None: (3.0227, 3.1981, 3.2602, 3.3588, 3.6383, 3.8196),
    "basic": (3.20, 3.50, 3.60, 3.63, 3.97, 4.29),
    "advanced": (2.87, 2.95, 2.98, 3.13, 3.36, 3.43),
    "negation": (2.91, 2.92, 2.90, 2.92, 3.00, 2.98),
}
PAIRS = {
    ("SDXL_Turbo", "SDXL_Base"): (-2.9473, 3.252e-3, 244045.5, 1.648e-3, 0.2963, 0.3588),
    ("SDXL_Base", "DeepFloyd_I_XL_v1"): (-3.7913, 1.554e-4, 302476.0, 8.712e-4, 0.3519, 0.3775),
    ("Midjourney_6", "DALLE_3"): (-6.5978, 5.659e-11, 243906.0, 6.364e-13, 0.2825, 0.4281),
}
V1_1, V1_5, V2_1 = (f"stable_diffusion_{one}" for one in ("v1_1", "v1_5", "v2_1"))
TIFA = {"mini_dalle": 3.7969, "vq_diffusion": 3.6344, V1_1: 3.6938, V1_5: 4.0625, V2_1: 4.2625}
TIFA_LOWER = {(low, high) for low in ("mini_dalle", "vq_diffusion", V1_1) for high in (V1_5, V2_1)}


@pytest.fixture(scope="module")
def genai(assay_data: Path) -> PeopleBoard:
    [board] = people_boards(load_prompt_sets()["genai_prompts"], assay_data)
    return board


def pair_of(board: PeopleBoard, a: str, b: str) -> tuple[PairTest, bool]:
    """The test of two models, and whether it is of the first less the second."""
    pairs = board.overall.pairs
    return (pairs[a, b], True) if (a, b) in pairs else (pairs[b, a], False)


@pytest.mark.paper
@pytest.mark.slow
class TestGenaiBench:
    def test_it_has_every_tag_for_six_models_by_28800_ratings(self, genai: PeopleBoard) -> None:
        assert list(genai.skills) == [None, *GENAI_1600.card.skills]
        assert all(set(skill.means) == set(GENAI) for skill in genai.skills.values())
        counts = [genai.skills[key].n_prompts for key in (None, "basic", "advanced", "negation")]
        assert counts == [1600, 722, 871, 347]
        assert (genai.n_ratings, genai.gold) == (28_800, "")
        assert genai.note.startswith("2 of") and "7 prompts" in genai.note

    @pytest.mark.parametrize("skill", MEANS)
    def test_its_means(self, genai: PeopleBoard, skill: str | None) -> None:
        # DeepFloyd's overall mean, 3.35875, lies between two figures of four digits.
        near = 0.51 * 10.0 ** (-4 if skill is None else -2)
        found = [genai.skills[skill].means[model].value for model in GENAI]
        assert found == pytest.approx(list(MEANS[skill]), abs=near)

    def test_all_models_are_ordered_but_none_on_negation(self, genai: PeopleBoard) -> None:
        assert list(genai.overall.means) == list(reversed(GENAI))
        stand = [(m.rank, m.rank_low, m.rank_high, m.tier) for m in genai.overall.means.values()]
        assert stand == [(place,) * 4 for place in range(1, 7)]
        assert (len(genai.overall.ahead_of), len(genai.overall.pairs)) == (5, 15)
        assert [key for key, one in genai.skills.items() if one.undecided] == ["negation"]
        assert {m.tier for m in genai.skills["negation"].means.values()} == {1}

    @pytest.mark.parametrize("pair", PAIRS)
    def test_neighbours_by_three_tests(self, genai: PeopleBoard, pair: tuple[str, str]) -> None:
        test, forward = pair_of(genai, *pair)
        t, t_p, w, w_p, over, back = PAIRS[pair]
        assert round(test.t if forward else -test.t, 4) == t
        p_values = f"{test.t_p:.3e}", f"{test.wilcoxon_p:.3e}"
        assert (*p_values, test.wilcoxon_w) == (f"{t_p:.3e}", f"{w_p:.3e}", w)
        ratios = (test.dominance, test.dominance_back)
        assert (ratios if forward else ratios[::-1]) == pytest.approx((over, back), abs=5.1e-5)


@pytest.fixture(scope="module")
def tifa(assay_data: Path) -> dict[str, PeopleBoard]:
    boards = people_boards(load_prompt_sets()["tifa160_prompts"], assay_data)
    return {board.gold: board for board in boards}


@pytest.mark.paper
@pytest.mark.slow
class TestTifa160:
    def test_its_means_under_both_golds(self, tifa: dict[str, PeopleBoard]) -> None:
        ratings = {gold: one.n_ratings for gold, one in tifa.items()}
        assert list(ratings.items()) == [("dsg_likert", 3995), ("human_avg", 1600)]
        found = {model: mean.value for model, mean in tifa["human_avg"].overall.means.items()}
        assert found == pytest.approx(TIFA, abs=5.1e-5)
        skills = [None, "coco", "partiprompt", "paintskill", "drawbench"]
        assert list(tifa["dsg_likert"].skills) == skills
        assert all(set(board.models) == set(TIFA) for board in tifa.values())

    def test_six_of_ten_pairs_differ_at_a_thousandth(self, tifa: dict[str, PeopleBoard]) -> None:
        pairs = tifa["human_avg"].overall.pairs  # the higher first
        assert all(test.difference > 0 for test in pairs.values())
        lower = {(b, a) for (a, b), test in pairs.items() if test.wilcoxon_p < 0.001}
        assert lower == TIFA_LOWER and len(pairs) == 10

    def test_the_two_best_by_three_tests(self, tifa: dict[str, PeopleBoard]) -> None:
        test, forward = pair_of(tifa["human_avg"], V2_1, V1_5)
        assert forward
        assert (test.wilcoxon_w, f"{test.wilcoxon_p:.2e}") == (1432.5, "5.24e-03")
        assert (round(test.t, 4), f"{test.t_p:.2e}") == (2.8578, "4.84e-03")
        ratios = (test.dominance_back, test.dominance)
        assert ratios == pytest.approx((0.2188, 0.3563), abs=5.1e-5)


# Records of metrics
def on_tifa(entry_id: str) -> Cell:
    one = TIFA160.card.headline
    place = {"measure": one.measure, "variant": one.variant, "split": one.split, "facet": one.facet}
    return cell(entry_id, None, 1, **place)  # type: ignore[arg-type]


def made_of(**boards: object) -> World:
    made = World(prompt_set(prompts_of(20)), boards)  # type: ignore[arg-type]
    scores = np.random.default_rng(1).uniform(size=(1, 20))
    made.add("a", {VQA: scores, CLIP: scores}, runs={CLIP: {"lower_is_better": True}})
    return made


def found_in(made: World, data: Path | None = None, **asked: str) -> ModelOrderings:
    reader = ModelReader(made.store, made.reader.prompt_sets, data)
    return model_orderings(reader, made.view, replace(QUERY, **asked))  # type: ignore[arg-type]


def test_counts_of_a_board_that_counts_itself_are_taken_from_it() -> None:
    note = "of 6 pairs of models; no SxS; no paired test: in steps"
    counted = [
        cell(VQA, measure=ON_BOARD, variant=variant, split=split, value=value, n_items=6, note=note)
        for variant, split, value in (
            ("direction_only", "rel", 6.0), ("paper", "r_rel", 4.0), ("paper", "rel", 5.0),
        )
    ]  # fmt: skip
    (one,) = found_in(made_of(rated=(metric_card(), [cell(VQA, None, 1), *counted]))).found
    found = (one.entry_id, one.right, one.of, one.reversed, one.note)
    assert found == (VQA, 5, 6, None, "no SxS")


def test_what_is_not_here_the_page_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_in(made_of(tifa160=(TIFA160.card, [on_tifa(VQA)])))
    assert not found.found and "scores" in found.missing["tifa160"]

    def without(_: object) -> None:
        raise SubmitterError("data_missing", "No table.", "")

    monkeypatch.setattr(orderings, "readers", lambda: {"tifa160": without})
    found = found_in(made_of(tifa160=(TIFA160.card, [on_tifa(VQA)])))
    assert not found.found and "machine" in found.missing["tifa160"]


def test_published_scores_are_held_against_the_ratings(assay_data: Path) -> None:
    made = made_of(tifa160=(TIFA160.card, [on_tifa(VQA), on_tifa(CLIP)]))
    for judge in ("vqa", "clip"):  # scores that are not published are named
        unread = found_in(made, assay_data, judge=f"{judge}/{judge}")
        assert judge in unread.missing["tifa160"] and not unread.found
    images = TIFA160.answers(assay_data).images
    gold = images["human_avg"].to_numpy()
    files = {}
    for entry, scores in (("vqa", gold), ("clip", -gold)):
        table = ScoreTable(pd.DataFrame({entry: scores}, index=pd.Index(images["pair_id"])))
        content = write_stored(table, submission_id=entry, benchmark="tifa160", revision="1")
        files[f"results/{entry}/tifa160.scores.parquet"] = content
    transact(made.store.public, lambda: dict(files), "scores")
    by_metric = {one.entry_id: one for one in found_in(made, assay_data).found}
    assert {(one.right, one.of, one.reversed) for one in by_metric.values()} == {(10, 10, 0)}
    assert sum(pair.people != 0 for pair in by_metric[VQA].pairs) == 6
