"""PERM-BOTH of missing, constant and unusable input: each has a documented outcome."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from benchmarks.statistics.permutation.pair_nulls import Statistic
from benchmarks.statistics.permutation.perm_both import perm_both
from tests.benchmarks.statistics.permutation.hybrids import table

STATISTICS = get_args(Statistic)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_missing_scores_leave_items_out_for_their_pairs_only(statistic: Statistic) -> None:
    scores, gold = table()
    clusters = np.arange(60) % 20
    whole = perm_both(scores, gold, statistic, clusters=clusters)
    missing = scores.copy()
    missing[[5, 17], 1] = np.nan
    found = perm_both(missing, gold, statistic, clusters=clusters)
    others = np.ix_([0, 2, 3], [0, 2, 3])
    np.testing.assert_array_equal(found.p_values[others], whole.p_values[others])
    kept = np.delete(np.arange(60), [5, 17])
    alone = perm_both(scores[kept][:, :2], gold[kept], statistic, clusters=clusters[kept])
    assert found.differences[0, 1] == pytest.approx(alone.differences[0, 1], abs=1e-12)
    assert found.p_values[0, 1] == alone.p_values[0, 1]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_constant_metrics_have_no_difference_and_a_reason(statistic: Statistic) -> None:
    scores, gold = table()
    scores[:, 2] = 0.1
    found = perm_both(scores, gold, statistic)
    assert np.isnan(found.differences[2]).all()
    assert np.isnan(found.p_values[:, 2]).all()
    assert np.isfinite(np.delete(np.delete(found.p_values, 2, 0), 2, 1)).all()
    assert set(found.reasons) == {(0, 2), (1, 2), (2, 2), (2, 3)}
    assert found.reasons[0, 2] == "a metric has constant scores"


@pytest.mark.parametrize("statistic", STATISTICS)
def test_constant_gold_and_single_clusters_have_reasons(statistic: Statistic) -> None:
    scores, gold = table()
    constant = perm_both(scores, np.ones_like(gold), statistic)
    assert np.isnan(constant.p_values).all()
    assert "gold is constant" in constant.reasons[0, 1]
    single = perm_both(scores, gold, statistic, clusters=np.zeros(60))
    assert np.isnan(single.p_values).all()
    assert "fewer than two clusters" in single.reasons[0, 1]
    lonely = perm_both(scores, gold, statistic, groups=np.arange(60))
    assert "gold is constant" in lonely.reasons[0, 1]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_equal_metrics_never_differ(statistic: Statistic) -> None:
    scores, gold = table(ties=True)
    scores[:, 1] = scores[:, 0]
    for found in (perm_both(scores, gold, statistic), perm_both(scores[:9], gold[:9], statistic)):
        assert found.differences[0, 1] == 0.0
        assert found.p_values[0, 1] == 1.0


@pytest.mark.parametrize("statistic", STATISTICS)
def test_one_metric_or_none_has_no_pairs(statistic: Statistic) -> None:
    scores, gold = table(30, 1)
    found = perm_both(scores, gold, statistic)
    assert (found.differences.tolist(), found.p_values.tolist()) == ([[0.0]], [[1.0]])
    assert not found.reasons
    assert perm_both(scores[:, :0], gold, statistic).p_values.shape == (0, 0)
    assert math.isnan(perm_both(scores[:0], gold[:0], statistic).p_values[0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[1.0], [np.inf]]}, "infinite"),
        ({"gold": [1.0, np.nan]}, "not finite"),
        ({"gold": [1.0]}, "are not"),
        ({"statistic": "tau"}, "none of"),
        ({"clusters": [1]}, "one for each"),
        ({"groups": [1]}, "one for each"),
        ({"n_draws": 0}, "at least 1 draw"),
    ],
)
def test_unusable_arguments_are_named(change: dict[str, object], message: str) -> None:
    arguments = {"scores": [[1.0], [2.0]], "gold": [1.0, 2.0], "statistic": "pearson", **change}
    with pytest.raises(ValueError, match=message):
        perm_both(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_no_items_in_no_groups_are_no_test(statistic: Statistic) -> None:
    scores, gold = table()
    found = perm_both(scores[:0], gold[:0], statistic, groups=np.empty(0, np.intp))
    assert np.isnan(found.p_values).all()
    assert "gold is constant" in found.reasons[0, 1]
