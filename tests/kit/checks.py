"""What tests of benchmarks share: rows, pools, cases, cards of small copies, commands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import Comparisons
from benchmarks.pooled import CORRELATIONS
from benchmarks.rows import Measured, Row
from benchmarks.schema import Card
from evaluator.commands.compare_metrics import STATISTICS


def row_of(measured: Measured, **wanted: object) -> Row:
    """The one row with these fields; all skills and variant `paper` where nothing is said."""
    fields = {"skill": None, "variant": "paper", **wanted}
    found = [r for r in measured.rows if all(getattr(r, k) == v for k, v in fields.items())]
    assert len(found) == 1, found
    return found[0]


def agreement(cases: pd.DataFrame, scores: pd.Series) -> pd.DataFrame:
    """`Comparisons.agreement` of scores by pair id."""
    score = scores.reindex(cases["pair_id"]).to_numpy(np.float64)
    return Comparisons.of(cases).agreement(score)


# A command of the benchmarks.


@dataclass
class Command:
    """Calls `main` with options; keeps what it printed."""

    main: Callable[[], int]
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __call__(self, *words: object) -> int:
        self.monkeypatch.setattr("sys.argv", ["command", *map(str, words)])
        try:
            code = self.main()
        except SystemExit as end:
            code = int(end.code or 0)
        self.out, self.err = self.capsys.readouterr()
        return code


# Cards of small copies.


AnyCard = TypeVar("AnyCard", bound=Card)


def trial_card(card: AnyCard, **counts: int) -> AnyCard:
    """The card of a small copy: no hash is pinned, and it must hold these counts only."""
    files = tuple(file.model_copy(update={"sha256": ""}) for file in card.files)
    return card.model_copy(update={"files": files, "counts": counts})


# Rows that are correlations of one pool.


def check_pools(measured: Measured) -> None:
    """Each such row, and no other, has a pool, and its value is the correlation of that."""
    assert STATISTICS.keys() == CORRELATIONS.keys()
    correlated = {i for i, row in enumerate(measured.rows) if row.measure in CORRELATIONS}
    assert set(measured.pools) == correlated
    for i in correlated:
        row, sample = measured.rows[i], measured.pools[i]()
        scored = np.isfinite(sample.scores)
        assert np.isfinite(sample.ratings).all()
        # Few missing scores count as most wrong, and are items that the metric did not give.
        assert scored.sum() in (row.n_items, row.n_items + row.n_missing)
        assert row.n_clusters == np.unique(sample.clusters[scored]).size
        if not math.isnan(row.value):
            found = CORRELATIONS[row.measure][0](sample.scores[scored], sample.ratings[scored])
            assert row.value == pytest.approx(found, abs=1e-12)
