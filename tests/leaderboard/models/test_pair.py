"""Two models compared by every metric."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.errors import SubmitterError
from benchmarks.statistics.multiplicity import holm
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.pair import pair_matrix, pair_report
from tests.leaderboard.models.made_up_models import World, prompt_set, prompts_of, trusting

VQA, CLIP, DSG = "vqa/vqa", "clip/clip", "dsg/dsg"
QUERY = BoardQuery("drawn")
N = 90


@pytest.fixture(name="made")
def _made() -> World:
    rng = np.random.default_rng(1)
    made = World(prompt_set(prompts_of(N)), trusting(VQA, CLIP), metrics=(VQA, CLIP, DSG))
    for model, mean in (("a", 0.50), ("b", 0.55), ("c", 0.60)):
        made.add(
            model,
            {m: mean + 0.15 * rng.standard_normal((2, N)) for m in (VQA, CLIP, DSG)},
        )
    return made


def ids(made: World) -> list[str]:
    return list(made.entries)


def test_the_tests_are_those_of_scipy(made: World) -> None:
    first, second, third = ids(made)
    report = pair_report(made.reader, made.view, first, second, QUERY)
    test = next(t for t in report.tests if t.judge == VQA and t.skill is None)
    prompts = [p.prompt_id for p in made.prompts]

    def values(model: str, judge: str) -> np.ndarray:
        found = made.reader.scores.of(made.entries[model], judge, prompts)
        assert found is not None
        return np.asarray(found.scores.mean(axis=0))

    a, b = values(first, VQA), values(second, VQA)
    t, w = stats.ttest_rel(a, b), stats.wilcoxon(a, b)
    found = [test.t, test.t_p, test.wilcoxon_w, test.wilcoxon_p]
    assert found == pytest.approx([t.statistic, t.pvalue, w.statistic, w.pvalue])
    assert test.dominance == pytest.approx((a > b).mean())
    assert test.dominance_back == pytest.approx((a < b).mean())
    assert test.difference == pytest.approx((a - b).mean())
    assert test.ci_low < test.difference < test.ci_high
    pairs = [(first, second), (first, third), (second, third)]
    family = [
        stats.ttest_rel(values(x, judge), values(y, judge)).pvalue
        for judge in (VQA, CLIP)
        for x, y in pairs
    ]
    assert test.t_p_holm == pytest.approx(holm(family)[0])
    untrusted = next(t for t in report.tests if t.judge == DSG and t.skill is None)
    own = [stats.ttest_rel(values(x, DSG), values(y, DSG)).pvalue for x, y in pairs]
    assert untrusted.t_p_holm == pytest.approx(holm(own)[0])


@pytest.mark.slow
def test_the_corrected_p_values_are_what_the_board_orders_by(made: World) -> None:
    board = model_board(made.reader, made.view, QUERY)
    for skill, found in board.skills.items():
        for first in found.standings:
            for second in found.standings:
                if first == second:
                    continue
                report = pair_report(made.reader, made.view, first, second, QUERY)
                told = {
                    np.sign(t.difference)
                    for t in report.tests
                    if t.skill == skill and t.judge in (VQA, CLIP) and t.t_p_holm < 0.05
                }
                better = second in found.standings[first].better_than
                assert better == (told == {1.0})


def test_the_other_way_round_every_sign_is_turned(made: World) -> None:
    first, second, _ = ids(made)
    one = pair_report(made.reader, made.view, first, second, QUERY)
    other = pair_report(made.reader, made.view, second, first, QUERY)
    for a, b in zip(one.tests, other.tests, strict=True):
        assert (a.judge, a.skill, a.t_p, a.t_p_holm) == (b.judge, b.skill, b.t_p, b.t_p_holm)
        turned = [-b.difference, -b.t, b.dominance_back, -b.ci_high]
        assert [a.difference, a.t, a.dominance, a.ci_low] == pytest.approx(turned)


def test_the_prompts_that_decide_come_in_order_and_add_up(made: World) -> None:
    first, second, _ = ids(made)
    report = pair_report(made.reader, made.view, first, second, QUERY)
    assert set(report.deciding) == {VQA, CLIP}
    found = report.deciding[VQA]
    differences = [one.first - one.second for one in found]
    assert differences == sorted(differences, reverse=True) and len(found) == N
    assert sum(one.share for one in found) == pytest.approx(1.0)


def test_a_prompt_without_a_score_comes_last() -> None:
    made = World(prompt_set(prompts_of(40)), trusting(VQA))
    scores = np.random.default_rng(2).uniform(size=(1, 40))
    first = made.add("a", {VQA: np.where(np.arange(40) == 7, np.nan, scores)})
    second = made.add("b", {VQA: scores / 2})
    report = pair_report(made.reader, made.view, first, second, QUERY)
    last = report.deciding[VQA][-1]
    assert last.prompt_id == "p7" and math.isnan(last.first) and math.isnan(last.share)
    test = next(t for t in report.tests if t.skill is None)
    assert (test.n_prompts, test.n_missing) == (39, 1)
    assert math.isfinite(test.t_p_holm)


def test_identical_models_differ_in_nothing() -> None:
    made = World(prompt_set(prompts_of(40)), trusting(VQA))
    scores = np.random.default_rng(2).uniform(size=(1, 40))
    first, second = made.add("a", {VQA: scores}), made.add("b", {VQA: scores})
    report = pair_report(made.reader, made.view, first, second, QUERY)
    test = report.tests[0]
    assert (test.t_p, test.wilcoxon_p, test.dominance) == (1.0, 1.0, 0.0)
    assert math.isnan(report.deciding[VQA][0].share)


def test_who_is_not_on_the_board_cannot_be_compared(made: World) -> None:
    first, *_ = ids(made)
    with pytest.raises(SubmitterError, match="no model on this board"):
        pair_report(made.reader, made.view, first, "nobody", QUERY)
    with pytest.raises(SubmitterError, match="itself"):
        pair_report(made.reader, made.view, first, first, QUERY)


def test_the_matrix_agrees_with_the_pairs(made: World) -> None:
    matrix = pair_matrix(made.reader, made.view, QUERY, "count", CLIP)
    board = model_board(made.reader, made.view, QUERY).skills["count"]
    assert matrix.models == tuple(board.standings)
    report = pair_report(made.reader, made.view, matrix.models[0], matrix.models[2], QUERY)
    test = next(t for t in report.tests if t.judge == CLIP and t.skill == "count")
    assert matrix.dominance[0, 2] == test.dominance
    assert matrix.t_p_holm[0, 2] == pytest.approx(test.t_p_holm)
    assert matrix.wilcoxon_p[2, 0] == pytest.approx(test.wilcoxon_p)
    with pytest.raises(SubmitterError, match="no metric on the boards"):
        pair_matrix(made.reader, made.view, QUERY, None, "gone/gone")


def test_the_unit_of_a_score_has_no_say_in_the_tests() -> None:
    scores = np.random.default_rng(2).uniform(size=(2, 1, 40))
    reports = []
    for unit in (1.0, 2.0**700):
        made = World(prompt_set(prompts_of(40)), trusting(VQA))
        first, second = (
            made.add(name, {VQA: unit * of}) for name, of in zip("ab", scores, strict=True)
        )
        reports.append(pair_report(made.reader, made.view, first, second, QUERY).tests[0])
    assert reports[0].t_p == reports[1].t_p and reports[0].wilcoxon_p == reports[1].wilcoxon_p
    assert reports[1].ci_low / 2.0**700 == pytest.approx(reports[0].ci_low)


def test_rounding_over_seeds_makes_no_prompt_better_than_another() -> None:
    rng = np.random.default_rng(3)
    made = World(prompt_set(prompts_of(N)), trusting(VQA), metrics=(VQA, CLIP, DSG))
    scores = rng.choice([1 / 3, 2 / 3, 0.1, 0.7], size=(6, N))
    of_prompts = rng.uniform(size=N)
    for model, n in (("a", 6), ("b", 1)):
        given = scores if n == 6 else scores[:1]
        made.add(model, {VQA: given, CLIP: np.tile(of_prompts, (n, 1)), DSG: np.full((n, N), 0.1)})
    shuffled = rng.permuted(scores, axis=0)
    made.add("c", {VQA: shuffled, CLIP: np.tile(of_prompts, (6, 1)), DSG: np.full((6, N), 0.1)})
    first, second, third = ids(made)
    by = {
        t.judge: t
        for t in pair_report(made.reader, made.view, first, second, QUERY).tests
        if t.skill is None
    }
    for judge in (CLIP, DSG):  # blind to the images: the same scores, with six seeds and with one
        found = by[judge]
        assert (found.difference, found.t_p, found.wilcoxon_p) == (0.0, 1.0, 1.0), judge
        assert (found.dominance, found.dominance_back) == (0.0, 0.0)
    report = pair_report(made.reader, made.view, first, third, QUERY)
    same = next(t for t in report.tests if t.judge == VQA and t.skill is None)
    assert (same.difference, same.dominance, same.dominance_back) == (0.0, 0.0, 0.0)
