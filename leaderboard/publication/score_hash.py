"""A hash of scores: what two entries share here is one metric under two names."""

from __future__ import annotations

import hashlib
import math

import pandas as pd

SIGNIFICANT_DIGITS = 6
"""More would tell apart what only a machine's rounding does."""


def scores_sha256(series: pd.Series[float]) -> str:
    """Hash scores, rounded to six significant digits, in the order of their pair ids.

    A missing score counts as missing, and -0 as 0. Rounding makes most of what machines do
    differently vanish, not all: a score in the middle between two roundings may fall either way.

    Args:
        series: one metric on one benchmark; index `pair_id`, each once, NaN where there is none.
    """
    digest = hashlib.sha256()
    scores = {str(pair_id): float(score) for pair_id, score in series.items()}
    for pair_id in sorted(scores):
        name = pair_id.encode()
        digest.update(b"%d:%b:%b\n" % (len(name), name, _rounded(scores[pair_id])))
    return digest.hexdigest()


def _rounded(score: float) -> bytes:
    if math.isnan(score):
        return b"none"
    return f"{score + 0.0:.{SIGNIFICANT_DIGITS - 1}e}".encode()
