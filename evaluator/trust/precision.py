"""Deviation of scores of a faster precision, or of another device, from the reference."""

from __future__ import annotations

import numpy as np

from benchmarks.schema import Questions
from evaluator.scoring.asking import AskerSource
from evaluator.trust.checks import Scores, canonical_items, scores_of
from leaderboard.trust import PrecisionBand


def precision_band(found: Scores, reference: AskerSource, questions: Questions) -> PrecisionBand:
    """Compare scores with those of the reference.

    Args:
        found: scores of the scorer as it is run, by pair_id.
        reference: the same scorer in float32 on the CPU; opened here, and closed again.
        questions: the same pairs (`sampling.sampled`).

    Raises:
        AssayError: the reference failed for good.
    """
    with reference.open() as exact:
        return band(found, scores_of(exact, canonical_items(questions)), exact.environment)


def band(found: Scores, expected: Scores, environment: dict[str, str]) -> PrecisionBand:
    """The difference of two sets of scores.

    Args:
        found: pair_id to score; NaN where there is none.
        expected: of the same pairs.
        environment: of the reference.
    """
    ours = np.array(list(found.values()))
    theirs = np.array([expected[pair] for pair in found])
    both = ~(np.isnan(ours) | np.isnan(theirs))
    off = np.abs(ours[both] - theirs[both])
    return PrecisionBand(
        n_pairs=len(found),
        mean=float(off.mean()) if off.size else None,
        largest=float(off.max()) if off.size else None,
        n_lost=int((np.isnan(ours) != np.isnan(theirs)).sum()),
        reference=environment,
    )
