"""People's ratings of models on GenAI-Bench and TIFA160: released ratings against known figures.

Figures of the specification of the protocols, 7.2 and 7.4; intervals against scipy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.genai_bench.protocol import CARD_1600, GenAiBench
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.statistics.multiplicity import holm
from leaderboard.models.board_types import PairTest
from leaderboard.models.people import PeopleBoard, people_boards

pytestmark = [pytest.mark.paper, pytest.mark.slow]

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
TIFA_LOWER = {
    ("mini_dalle", V1_5), ("mini_dalle", V2_1), ("vq_diffusion", V1_5), ("vq_diffusion", V2_1),
    (V1_1, V1_5), (V1_1, V2_1),
}  # fmt: skip


@pytest.fixture(scope="module")
def genai(assay_data: Path) -> PeopleBoard:
    [board] = people_boards(load_prompt_sets()["genai_prompts"], assay_data)
    return board


@pytest.fixture(scope="module")
def ratings(assay_data: Path) -> pd.DataFrame:
    """Mean ratings of GenAI-Bench, prompts by models."""
    answers = GenAiBench(CARD_1600).answers(assay_data)
    mean = np.nanmean(answers.ratings, axis=1)
    images = answers.images.assign(label=mean)
    return images.pivot(index="prompt_id", columns="model", values="label")


@pytest.fixture(scope="module")
def tifa(assay_data: Path) -> dict[str, PeopleBoard]:
    boards = people_boards(load_prompt_sets()["tifa160_prompts"], assay_data)
    return {board.gold: board for board in boards}


def pair_of(board: PeopleBoard, a: str, b: str) -> tuple[PairTest, bool]:
    """The test of two models, and whether it is of the first less the second."""
    pairs = board.overall.pairs
    return (pairs[a, b], True) if (a, b) in pairs else (pairs[b, a], False)


@pytest.mark.parametrize("skill", MEANS)
def test_means_of_genai_bench(genai: PeopleBoard, skill: str | None) -> None:
    digits = 4 if skill is None else 2
    for model, mean in zip(GENAI, MEANS[skill], strict=True):
        # DeepFloyd's overall mean, 3.35875, lies between two figures of four digits.
        assert genai.skills[skill].means[model].value == pytest.approx(
            mean, abs=0.51 * 10.0**-digits
        )


def test_genai_bench_has_every_tag_for_six_models_by_28800_ratings(genai: PeopleBoard) -> None:
    assert list(genai.skills) == [None, *CARD_1600.skills]
    assert all(set(skill.means) == set(GENAI) for skill in genai.skills.values())
    counts = {key: one.n_prompts for key, one in genai.skills.items()}
    assert (counts[None], counts["basic"], counts["advanced"], counts["negation"]) == (
        1600, 722, 871, 347,
    )  # fmt: skip
    assert genai.n_ratings == 28_800 and genai.gold == ""
    assert "2 of the released ratings" in genai.note and "7 prompts" in genai.note


def test_genai_bench_orders_all_six_models_over_all_prompts(genai: PeopleBoard) -> None:
    assert list(genai.overall.means) == list(reversed(GENAI))
    stand = [(m.rank, m.rank_low, m.rank_high, m.tier) for m in genai.overall.means.values()]
    assert stand == [(place,) * 4 for place in range(1, 7)]
    assert len(genai.overall.ahead_of) == 5


def test_no_two_models_of_genai_bench_differ_on_negation(genai: PeopleBoard) -> None:
    assert [key for key, one in genai.skills.items() if one.undecided] == ["negation"]
    assert {m.tier for m in genai.skills["negation"].means.values()} == {1}


@pytest.mark.parametrize("pair", PAIRS)
def test_neighbours_on_genai_bench_by_t_wilcoxon_and_dominance(
    genai: PeopleBoard, pair: tuple[str, str]
) -> None:
    test, forward = pair_of(genai, *pair)
    t, t_p, w, w_p, over, back = PAIRS[pair]
    assert round(test.t if forward else -test.t, 4) == t
    assert (f"{test.t_p:.3e}", test.wilcoxon_w) == (f"{t_p:.3e}", w)
    assert f"{test.wilcoxon_p:.3e}" == f"{w_p:.3e}"
    ratios = (test.dominance, test.dominance_back)
    assert (ratios if forward else ratios[::-1]) == pytest.approx((over, back), abs=5.1e-5)


def test_tests_of_genai_bench_are_those_of_scipy(genai: PeopleBoard, ratings: pd.DataFrame) -> None:
    found = genai.overall.pairs
    assert len(found) == 15
    own = {pair: stats.ttest_rel(ratings[pair[0]], ratings[pair[1]]) for pair in found}
    assert [one.t for one in found.values()] == pytest.approx([t.statistic for t in own.values()])
    corrected = holm(np.array([t.pvalue for t in own.values()]))
    assert [one.t_p_holm for one in found.values()] == pytest.approx(list(corrected), rel=1e-6)


@pytest.mark.parametrize("model", GENAI)
def test_intervals_of_genai_bench_are_those_of_scipy_but_for_chance(
    genai: PeopleBoard, ratings: pd.DataFrame, model: str
) -> None:
    own = genai.overall.means[model]
    # Ours is expanded for the number of prompts, which at 1,600 is less than a thousandth.
    other = stats.bootstrap(
        (ratings[model].to_numpy(),), np.mean, n_resamples=4000, batch=500, method="BCa", rng=1
    )
    assert own.ci_low is not None and own.ci_high is not None
    # The ends of 1,000 resamples vary by about a twelfth of a standard error.
    error = other.standard_error
    assert own.ci_low == pytest.approx(other.confidence_interval.low, abs=0.35 * error)
    assert own.ci_high == pytest.approx(other.confidence_interval.high, abs=0.35 * error)


def test_means_of_tifa160_under_both_golds(tifa: dict[str, PeopleBoard]) -> None:
    assert list(tifa) == ["dsg_likert", "human_avg"]
    found = {model: mean.value for model, mean in tifa["human_avg"].overall.means.items()}
    assert found == pytest.approx(TIFA, abs=5.1e-5)
    assert {gold: one.n_ratings for gold, one in tifa.items()} == {
        "dsg_likert": 3995,
        "human_avg": 1600,
    }
    assert list(tifa["dsg_likert"].skills) == [
        None, "coco", "partiprompt", "paintskill", "drawbench",
    ]  # fmt: skip
    assert all(set(board.models) == set(TIFA) for board in tifa.values())


def test_six_of_ten_pairs_of_tifa160_differ_by_wilcoxon_at_a_thousandth(
    tifa: dict[str, PeopleBoard],
) -> None:
    pairs = tifa["human_avg"].overall.pairs  # the higher first
    assert all(test.difference > 0 for test in pairs.values())
    lower = {(b, a) for (a, b), test in pairs.items() if test.wilcoxon_p < 0.001}
    assert lower == TIFA_LOWER and len(pairs) == 10


def test_the_two_best_of_tifa160_by_three_tests(tifa: dict[str, PeopleBoard]) -> None:
    test, forward = pair_of(tifa["human_avg"], V2_1, V1_5)
    assert forward
    assert (test.wilcoxon_w, f"{test.wilcoxon_p:.2e}") == (1432.5, "5.24e-03")
    assert (round(test.t, 4), f"{test.t_p:.2e}") == (2.8578, "4.84e-03")
    assert (test.dominance_back, test.dominance) == pytest.approx((0.2188, 0.3563), abs=5.1e-5)
