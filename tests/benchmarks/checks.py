"""Checks that tests of benchmarks share: an error by its code, one row of many, cases by scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import Comparisons
from benchmarks.errors import SubmitterError
from benchmarks.rows import Measured, Row


@contextmanager
def refused(code: str, *says: str) -> Iterator[pytest.ExceptionInfo[SubmitterError]]:
    """The block ends in an error of this code, whose message holds these words."""
    with pytest.raises(SubmitterError) as caught:
        yield caught
    assert caught.value.code == code
    assert [part for part in says if part not in caught.value.message] == [], caught.value.message


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
