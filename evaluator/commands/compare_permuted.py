"""PERM-BOTH on raw scores beside the test of the boards, for correlations over one pool.

Deutsch, Dror and Roth (2021), TACL 9, section 5; see `statistics.permutation.perm_both`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.arrays import BoolArray
from benchmarks.comparison import Compared, p_words
from benchmarks.rows import PooledSample
from benchmarks.schema import Selector
from evaluator.commands.compare_files import Field, Pools, SliceKey

if TYPE_CHECKING:
    from benchmarks.statistics.perm_both import Statistic
    from benchmarks.statistics.permutation import PermutationTests

N_DRAWS = 9999
"""Patterns of swaps where there are too many clusters to look at all; the least p is 0.0001."""
STATISTICS: dict[str, Statistic] = {"srcc": "spearman", "krcc": "kendall", "pearson": "pearson"}
"""Measures of rows that may have pools, to their names in `statistics.permutation`."""
NO_POOL = "not the SRCC, KRCC or Pearson correlation of one pool of images"
OF_SEVERAL = "a mean over several skills is not the correlation of one pool of images"
NO_VALUE = "one of the metrics has no value here"


@dataclass(frozen=True)
class Permuted:
    """PERM-BOTH of one pair of metrics on one slice.

    Attributes:
        p_value: two-sided, not corrected; NaN where there is no test, and then `note` says why.
        n_draws: patterns of swaps looked at; 0 without a test.
        exact: whether these are all patterns.
        note: why there is no test, or what it leaves out; empty as a rule.
    """

    p_value: float = math.nan
    n_draws: int = 0
    exact: bool = False
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """For the record of the row: null for what a row without a test does not have."""
        tested = math.isfinite(self.p_value)
        return {
            "permute_scores_p": self.p_value if tested else None,
            "permute_scores_draws": self.n_draws if tested else None,
            "permute_scores_exact": self.exact if tested else None,
            "permute_scores_note": self.note,
        }


@dataclass(frozen=True)
class _Tested:
    """All pairs of a slice, and which images each metric scored, shape (n, M)."""

    tests: PermutationTests
    scored: BoolArray

    def pair(self, a: int, b: int) -> Permuted:
        p = float(self.tests.p_values[a, b])
        if math.isnan(p):
            return Permuted(note=self.tests.reasons[min(a, b), max(a, b)])
        both = int((self.scored[:, a] & self.scored[:, b]).sum())
        fewer = both < int(self.scored[:, [a, b]].sum(axis=0).max())
        note = f"tested on the {both:,} images that both have scores for" if fewer else ""
        return Permuted(p, self.tests.n_draws, self.tests.exact, note)


def permuted(rows: Sequence[Compared], field: Field, seed: int) -> tuple[Permuted, ...]:
    """PERM-BOTH for each comparison whose value is the correlation of one pool.

    The null hypothesis is that the two metrics, once standardised, are exchangeable on every
    cluster. The metrics are swapped cluster by cluster in `N_DRAWS` drawn patterns, or in all
    where there are few clusters.

    Args:
        rows: comparisons of contenders of the field.
        field: what they were measured by.
        seed: of the draws.

    Returns:
        One for each row, in their order.

    Raises:
        ValueError: the samples of a slice are not of the same images.
    """
    place = {name: i for i, name in enumerate(field.names.values())}
    found: dict[SliceKey, _Tested] = {}
    result = []
    for row in rows:
        key = _key(row)
        if key not in field.pools:
            result.append(Permuted(note=NO_POOL if key in field.slices else OF_SEVERAL))
            continue
        if key not in found:
            found[key] = _tested(row.measure, field.pools[key], seed)
        one = found[key].pair(place[row.metric_a], place[row.metric_b])
        # Two images may be permuted, but are too few for a value.
        no_value = math.isnan(row.difference) and math.isfinite(one.p_value)
        result.append(Permuted(note=NO_VALUE) if no_value else one)
    return tuple(result)


def _key(row: Compared) -> SliceKey:
    selector = Selector(measure=row.measure, split=row.split, variant=row.variant, facet=row.facet)
    return selector, row.skill


def _tested(measure: str, pools: Pools, seed: int) -> _Tested:
    # It takes two seconds to import, and no other command needs it.
    from benchmarks.statistics.perm_both import perm_both  # noqa: PLC0415

    samples = [sample() for sample in pools]
    first = samples[0]
    if not all(_same_images(first, other) for other in samples[1:]):
        raise ValueError(f"the metrics were not measured on the same images by {measure}")
    scores = np.column_stack([sample.scores for sample in samples])
    tests = perm_both(
        scores,
        first.ratings,
        STATISTICS[measure],
        clusters=first.clusters,
        n_draws=N_DRAWS,
        seed=seed,
    )
    return _Tested(tests, np.isfinite(scores))


def _same_images(one: PooledSample, other: PooledSample) -> bool:
    return np.array_equal(one.ratings, other.ratings) and np.array_equal(
        one.clusters, other.clusters
    )


# In words -----------------------------------------------------------------------------------


def permuted_words(found: Permuted, cluster: str) -> str:
    """The test in one line, or why there is none."""
    name = "PERM-BOTH on raw scores"
    if math.isnan(found.p_value):
        return f"{name}: not tested, {found.note}"
    patterns = "all {:,} patterns" if found.exact else "{:,} draws"
    how = f"standardised scores swapped by {cluster}, {patterns.format(found.n_draws)}"
    return f"{name}: {p_words(found.p_value)} ({'; '.join(filter(None, (how, found.note)))})"


def column_words(labels: Sequence[str], found: Sequence[Permuted], cluster: str) -> str:
    """What stands in a column `p (scores)`: the test, and what must be known of single rows.

    Args:
        labels: what the rows are called.
        found: their tests, in the same order.
        cluster: what a cluster is called.
    """
    drawn = {(one.n_draws, one.exact) for one in found if math.isfinite(one.p_value)}
    patterns = [f"{'all ' if exact else ''}{n:,}" for n, exact in sorted(drawn)]
    of_test = f", {' or '.join(patterns)} patterns of swaps" if patterns else ""
    said = [
        f"p (scores): PERM-BOTH, standardised scores swapped by {cluster}{of_test}; not corrected."
    ]
    for note in dict.fromkeys(one.note for one in found if one.note):
        noted = [label for label, one in zip(labels, found, strict=True) if one.note == note]
        said.append(f"{', '.join(dict.fromkeys(noted))}: {note}.")
    return " ".join(said)
