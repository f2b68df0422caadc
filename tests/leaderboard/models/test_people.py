"""Boards of models by people's ratings: made-up ratings whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.errors import SubmitterError
from benchmarks.model_boards.rated_models import rated_models
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.resampling import seed_of
from leaderboard.models.people import PeopleBoard, people_boards, rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from leaderboard.store.memory import memory_store
from tests.leaderboard.models.made_up_ratings import (
    FILE,
    RATED,
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)

APART = {"low": 2.0, "middle": 3.0, "high": 4.0}


def board(
    monkeypatch: pytest.MonkeyPatch, means: dict[str, float], *, n: int = 60, counting: int = 30
) -> PeopleBoard:
    benchmark = RatedBenchmark(rated_answers(means, n, counting))
    rating(monkeypatch, benchmark)
    [found] = people_boards(rated_set(), None)
    return found


def test_models_that_differ_are_in_order_each_in_a_tier_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = board(monkeypatch, APART)
    assert list(found.skills) == [None, "basic", "counting"]
    for skill in found.skills.values():
        assert list(skill.means) == ["high", "middle", "low"]
        stand = [(m.rank, m.rank_low, m.rank_high, m.tier) for m in skill.means.values()]
        assert stand == [(1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)]
        assert skill.ahead_of == ("middle", "low") and not skill.undecided and not skill.note
    assert [one.n_prompts for one in found.skills.values()] == [60, 30, 30]
    assert found.n_ratings == 60 * 3 * 3


def test_models_that_do_not_differ_share_a_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = rated_answers({"one": 3.0, "two": 3.0})
    answers.ratings[:] = np.tile([[2.0], [4.0], [4.0], [2.0]], (30, 3))  # each ahead as often
    rating(monkeypatch, RatedBenchmark(answers))
    [board] = people_boards(rated_set(), None)
    found = board.overall
    assert [(m.rank_low, m.rank_high, m.tier) for m in found.means.values()] == [(1, 2, 1)] * 2
    assert found.undecided and found.ahead_of == ()


@pytest.mark.parametrize(("counting", "ordered"), [(MIN_CLUSTERS - 1, False), (MIN_CLUSTERS, True)])
def test_too_few_prompts_give_means_but_no_order(
    monkeypatch: pytest.MonkeyPatch, counting: int, *, ordered: bool
) -> None:
    found = board(monkeypatch, APART, counting=counting).skills["counting"]
    assert [m.n_prompts for m in found.means.values()] == [counting] * 3
    assert all(m.value is not None for m in found.means.values())
    assert [m.rank for m in found.means.values()] == ([1, 2, 3] if ordered else [None] * 3)
    assert [m.tier is not None for m in found.means.values()] == [ordered] * 3
    assert (found.note == "") is ordered
    assert not found.undecided


def test_every_figure_is_that_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = rated_answers({"a": 3.0, "b": 3.2, "c": 3.6}, n=80)
    benchmark = RatedBenchmark(answers)
    rating(monkeypatch, benchmark)
    [found] = people_boards(rated_set(), None)
    labels = answers.images.assign(label=answers.labels).pivot(
        index="prompt_id", columns="model", values="label"
    )
    p_values = []
    for (a, b), test in found.overall.pairs.items():
        x, y = labels[a].to_numpy(), labels[b].to_numpy()
        t, w = stats.ttest_rel(x, y), stats.wilcoxon(x, y)
        assert (test.t, test.t_p) == pytest.approx((t.statistic, t.pvalue))
        assert (test.wilcoxon_w, test.wilcoxon_p) == pytest.approx((w.statistic, w.pvalue))
        assert test.difference == pytest.approx((x - y).mean())
        assert (test.dominance, test.dominance_back) == ((x > y).mean(), (x < y).mean())
        p_values.append(t.pvalue)
    corrected = [test.t_p_holm for test in found.overall.pairs.values()]
    assert corrected == pytest.approx(list(holm(np.array(p_values))))
    for model, mean in found.overall.means.items():
        assert mean.value == pytest.approx(labels[model].mean())


def test_intervals_rest_on_the_plan_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = RatedBenchmark(rated_answers(APART))
    rating(monkeypatch, benchmark)
    [found] = people_boards(rated_set(), None)
    assert found.seed == seed_of(benchmark.name, benchmark.card.revision)
    for mean in found.overall.means.values():
        assert mean.value is not None and mean.ci_low is not None and mean.ci_high is not None
        assert mean.ci_low < mean.value < mean.ci_high


def test_ratings_outside_the_scale_count_as_released_and_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = rated_answers(APART)
    answers.ratings[0, 0] = 41.0
    rating(monkeypatch, RatedBenchmark(answers))
    [found] = people_boards(rated_set(), None)
    assert "1 of the released ratings" in found.note
    first = str(answers.images["model"][0])
    of_model = (answers.images["model"] == first).to_numpy()
    assert found.overall.means[first].value == pytest.approx(answers.ratings[of_model].mean())


def test_a_board_is_made_again_only_when_the_ratings_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    benchmark = RatedBenchmark(rated_answers(APART))
    rating(monkeypatch, benchmark)
    (tmp_path / FILE).write_text("one")
    first = people_boards(rated_set(), tmp_path)
    assert people_boards(rated_set(), tmp_path) is first and benchmark.reads == 1
    (tmp_path / FILE).write_text("another")
    assert people_boards(rated_set(), tmp_path) is not first and benchmark.reads == 2


def test_without_ratings_at_hand_there_is_no_board_and_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = SubmitterError("data_missing", "rated needs ratings.json.", "Fetch it.")
    sets = {
        RATED: rated_set("absent"),
        "here": rated_set("rated", "here"),
        "unrated": rated_set("", "unrated"),
        "elsewhere": rated_set("no_such_benchmark", "elsewhere"),
    }
    rating(monkeypatch, RatedBenchmark(rated_answers(APART)), RatedBenchmark(missing, "absent"))
    with pytest.raises(SubmitterError) as raised:
        people_boards(sets[RATED], None)
    assert raised.value is missing
    assert people_boards(sets["unrated"], None) == people_boards(sets["elsewhere"], None) == ()
    assert list(rated_sets(ModelReader(memory_store(), sets, None))) == ["here"]


def test_the_ratings_are_those_that_metrics_are_held_against() -> None:
    answers = rated_answers(APART)
    found = rated_models(answers)
    assert found is not None and found.skills == answers.skills
    assert found.people.shape == (60, 3)
