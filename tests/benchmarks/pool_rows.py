"""What the rows of a protocol that are correlations of one pool have in common."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.pooled import CORRELATIONS
from benchmarks.rows import Measured
from evaluator.commands.compare_metrics import STATISTICS


def check_pools(measured: Measured) -> None:
    """Each such row, and no other, has a pool, and its value is the correlation of that."""
    assert STATISTICS.keys() == CORRELATIONS.keys()
    correlated = {i for i, row in enumerate(measured.rows) if row.measure in CORRELATIONS}
    assert set(measured.pools) == correlated
    for i in correlated:
        row, sample = measured.rows[i], measured.pools[i]()
        scored = np.isfinite(sample.scores)
        assert np.isfinite(sample.ratings).all()
        assert (row.n_items, row.n_clusters) == (
            scored.sum(),
            np.unique(sample.clusters[scored]).size,
        )
        if not math.isnan(row.value):
            found = CORRELATIONS[row.measure][0](sample.scores[scored], sample.ratings[scored])
            assert row.value == pytest.approx(found, abs=1e-12)
