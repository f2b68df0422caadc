"""Two models compared by every metric, over their seeds, and beside a one-pixel change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.statistics.better_or_tied import difference_p_on_boards
from benchmarks.statistics.concordance import seed_stability
from benchmarks.statistics.multiplicity import holm
from leaderboard.models.board_types import PairReport, PairTest, SeedReport
from leaderboard.models.pair import pair_matrix, pair_report
from leaderboard.models.variation import robustness, seed_report
from tests.leaderboard.models.made_up_models import CLIP, DSG, QUERY, VQA, World, world

N = 90


@pytest.fixture(name="made", scope="module")
def _made() -> World:
    rng = np.random.default_rng(1)
    made = world(N, metrics=(VQA, CLIP, DSG))
    for model, mean in (("a", 0.50), ("b", 0.55), ("c", 0.60)):
        scores = {m: mean + 0.15 * rng.standard_normal((2, N)) for m in (VQA, CLIP, DSG)}
        made.add(model, scores)
    return made


def report_of(made: World, first: int = 0, second: int = 1) -> PairReport:
    ids = list(made.entries)
    return pair_report(made.reader, made.view, ids[first], ids[second], QUERY)


def of_judge(report: PairReport, judge: str = VQA, skill: str | None = None) -> PairTest:
    return next(t for t in report.tests if (t.judge, t.skill) == (judge, skill))


def means(made: World, model: str, judge: str) -> FloatArray:
    """Of its seeds, prompt by prompt."""
    prompts = [p.prompt_id for p in made.prompts]
    found = made.reader.scores.of(made.entries[model], judge, prompts)
    assert found is not None
    return np.asarray(found.scores.mean(axis=0))


def two_models(first: FloatArray, second: FloatArray) -> PairReport:
    made = world(40, VQA)
    for name, scores in (("a", first), ("b", second)):
        made.add(name, {VQA: scores})
    return report_of(made)


# Two models
def test_the_tests_are_those_of_scipy_and_corrected_over_the_trusted_metrics(made: World) -> None:
    first, second, third = made.entries
    report = report_of(made)
    test = of_judge(report)
    a, b = (means(made, model, VQA) for model in (first, second))
    t, w = stats.ttest_rel(a, b), stats.wilcoxon(a, b)
    found = [test.t, test.t_p, test.wilcoxon_w, test.wilcoxon_p]
    assert found == pytest.approx([t.statistic, t.pvalue, w.statistic, w.pvalue])
    ratios = test.dominance, test.dominance_back, test.difference
    assert ratios == pytest.approx(((a > b).mean(), (a < b).mean(), (a - b).mean()))
    assert test.ci_low < test.difference < test.ci_high
    pairs = [(first, second), (first, third), (second, third)]

    def family(*judges: str) -> float:
        differences = [
            means(made, x, judge) - means(made, y, judge) for judge in judges for x, y in pairs
        ]
        return float(holm(difference_p_on_boards(np.array(differences)))[0])

    assert test.t_p_holm == pytest.approx(family(VQA, CLIP))
    assert of_judge(report, DSG).t_p_holm == pytest.approx(family(DSG))


@pytest.mark.slow
def test_the_corrected_p_values_are_what_the_board_orders_by(made: World) -> None:
    for skill, found in made.board().skills.items():
        for first, second in ((a, b) for a in found.standings for b in found.standings if a != b):
            report = pair_report(made.reader, made.view, first, second, QUERY)
            told = {
                np.sign(t.difference)
                for t in report.tests
                if t.skill == skill and t.judge in (VQA, CLIP) and t.t_p_holm < 0.05
            }
            assert (second in found.standings[first].better_than) == (told == {1.0})


def test_the_other_way_round_every_sign_is_turned(made: World) -> None:
    one, other = report_of(made), report_of(made, 1, 0)
    for a, b in zip(one.tests, other.tests, strict=True):
        assert (a.judge, a.skill, a.t_p, a.t_p_holm) == (b.judge, b.skill, b.t_p, b.t_p_holm)
        turned = [-b.difference, -b.t, b.dominance_back, -b.ci_high]
        assert [a.difference, a.t, a.dominance, a.ci_low] == pytest.approx(turned)


def test_the_prompts_that_decide_come_in_order_and_add_up(made: World) -> None:
    report = report_of(made)
    assert set(report.deciding) == {VQA, CLIP}
    found = report.deciding[VQA]
    differences = [one.first - one.second for one in found]
    assert differences == sorted(differences, reverse=True) and len(found) == N
    assert sum(one.share for one in found) == pytest.approx(1.0)


def test_a_prompt_without_a_score_comes_last_and_identical_models_differ_in_nothing() -> None:
    scores = np.random.default_rng(2).uniform(size=(1, 40))
    report = two_models(np.where(np.arange(40) == 7, np.nan, scores), scores / 2)
    last, test = report.deciding[VQA][-1], of_judge(report)
    assert last.prompt_id == "p7" and np.isnan([last.first, last.share]).all()
    assert (test.n_prompts, test.n_missing, math.isfinite(test.t_p_holm)) == (39, 1, True)
    same = two_models(scores, scores)
    nothing = same.tests[0]
    assert (nothing.t_p, nothing.wilcoxon_p, nothing.dominance) == (1.0, 1.0, 0.0)
    assert math.isnan(same.deciding[VQA][0].share)


def test_the_unit_of_a_score_has_no_say_in_the_tests() -> None:
    a, b = np.random.default_rng(2).uniform(size=(2, 1, 40))
    one, other = (two_models(unit * a, unit * b).tests[0] for unit in (1.0, 2.0**700))
    assert (one.t_p, one.wilcoxon_p) == (other.t_p, other.wilcoxon_p)
    assert other.ci_low / 2.0**700 == pytest.approx(one.ci_low)


def test_the_matrix_agrees_with_the_pairs(made: World) -> None:
    matrix = pair_matrix(made.reader, made.view, QUERY, "count", CLIP)
    assert matrix.models == tuple(made.board().skills["count"].standings)
    first, _, third = matrix.models
    report = pair_report(made.reader, made.view, first, third, QUERY)
    test = of_judge(report, CLIP, "count")
    found = matrix.dominance[0, 2], matrix.t_p_holm[0, 2], matrix.wilcoxon_p[2, 0]
    assert found == pytest.approx((test.dominance, test.t_p_holm, test.wilcoxon_p))


def test_who_is_not_on_the_board_cannot_be_compared(made: World) -> None:
    first, *_ = made.entries
    for other, match in (("nobody", "nobody"), (first, "itself")):
        with pytest.raises(SubmitterError, match=match):
            pair_report(made.reader, made.view, first, other, QUERY)
    with pytest.raises(SubmitterError, match="gone/gone"):
        pair_matrix(made.reader, made.view, QUERY, None, "gone/gone")


def test_rounding_over_seeds_makes_no_prompt_better_than_another() -> None:
    rng = np.random.default_rng(3)
    made = world(N, metrics=(VQA, CLIP, DSG))
    scores, of_prompts = rng.choice([1 / 3, 2 / 3, 0.1, 0.7], size=(6, N)), rng.uniform(size=N)
    for model, given in (("a", scores), ("b", scores[:1]), ("c", rng.permuted(scores, axis=0))):
        blind = {CLIP: np.tile(of_prompts, (len(given), 1)), DSG: np.full((len(given), N), 0.1)}
        made.add(model, {VQA: given, **blind})
    for judge in (CLIP, DSG):  # blind to the images: the same scores, with six seeds and with one
        found = of_judge(report_of(made), judge)
        assert (found.difference, found.t_p, found.wilcoxon_p) == (0.0, 1.0, 1.0), judge
        assert (found.dominance, found.dominance_back) == (0.0, 0.0)
    same = of_judge(report_of(made, 0, 2))
    assert (same.difference, same.dominance, same.dominance_back) == (0.0, 0.0, 0.0)


# Seeds
def seeds_of(made: World, **asked: object) -> SeedReport:
    return seed_report(made.reader, made.view, replace(QUERY, **asked))  # type: ignore[arg-type]


def test_far_models_are_stable_and_near_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    far, near = world(40, VQA), world(40, VQA)
    for i in range(4):
        noise = 0.1 * rng.standard_normal((3, 40))
        far.add(f"m{i}", {VQA: i + noise})
        near.add(f"m{i}", {VQA: noise})
    one, other = (seeds_of(made).judges[0].stability for made in (far, near))
    assert one is not None and other is not None
    assert (one.over_seeds.stable, one.over_seeds.tau_mean) == (True, 1.0)
    assert not other.over_seeds.stable and other.over_seeds.swapped > 0


def test_the_kth_seed_of_each_model_is_compared_and_one_seed_is_none() -> None:
    rng, made = np.random.default_rng(2), world(40, VQA)
    scores = [rng.uniform(size=(n, 40)) for n in (2, 3, 1)]
    ids = [made.add(name, {VQA: of}) for name, of in zip("abc", scores, strict=True)]
    report = seeds_of(made)
    (judge,) = report.judges
    assert judge.stability is not None and judge.stability.models == tuple(ids[:2])
    expected = seed_stability(np.array([[of[k].mean() for of in scores[:2]] for k in range(2)]))
    assert judge.stability.over_seeds == expected
    assert "2 seeds" in judge.note and "1 model" in judge.note
    assert (report.one_seed, len(judge.scores)) == ((ids[2],), 4)


def test_variation_is_of_all_seeds_of_a_model_on_the_prompts_asked_for() -> None:
    made = world(40, VQA)
    scores = np.random.default_rng(3).uniform(size=(4, 40))
    made.add("a", {VQA: scores})
    (one,) = seeds_of(made).judges[0].variation
    assert one.means == pytest.approx(tuple(scores.mean(axis=1)))
    assert one.spread == pytest.approx(scores.mean(axis=1).std(ddof=1))
    assert one.within == pytest.approx(math.sqrt(scores.var(axis=0, ddof=1).mean()))
    assert one.between == pytest.approx(scores.mean(axis=0).std(ddof=1))
    colors = seeds_of(made, skills=("color",))
    assert colors.n_prompts == 20
    of_skill = colors.judges[0].variation[0].means
    assert of_skill == pytest.approx(tuple(scores[:, 1::2].mean(axis=1)))
    nothing = seeds_of(made, words="unicorn")
    assert (nothing.n_prompts, nothing.judges[0].stability) == (0, None)
    assert math.isnan(nothing.judges[0].variation[0].spread)


# A one-pixel change
def test_the_change_is_set_against_spread_and_smallest_gap() -> None:
    rng, made = np.random.default_rng(1), world(100, VQA)
    scores = [mean + 0.05 * rng.standard_normal((1, 100)) for mean in (0.2, 0.5, 0.6)]
    for i, of in enumerate(scores):
        run = {"perturbed": 10 * (i + 1), "mean_change": 0.01 * (i + 1), "max_change": 0.1 * i}
        made.add(f"m{i}", {VQA: of, CLIP: of * 0}, runs={VQA: run})
    by_judge = {one.judge.entry_id: one for one in robustness(made.reader, made.view, QUERY)}
    one, silent = by_judge[VQA], by_judge[CLIP]
    mean_change = (10 * 0.01 + 20 * 0.02 + 30 * 0.03) / 60
    gap = scores[2].mean() - scores[1].mean()
    assert (one.n_images, one.mean_change, one.max_change) == pytest.approx((60, mean_change, 0.2))
    assert one.spread == pytest.approx(np.concatenate(scores, axis=None).std(ddof=1))
    assert (one.smallest_gap, one.in_gaps) == pytest.approx((gap, mean_change / gap))
    assert (silent.n_images, silent.mean_change, silent.smallest_gap, silent.in_spreads) == (
        0, None, None, None,
    )  # fmt: skip
