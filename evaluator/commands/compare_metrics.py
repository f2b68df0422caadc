"""The metrics that `compare` is given, what they measure, and PERM-BOTH on their raw scores.

PERM-BOTH: Deutsch, Dror and Roth (2021), TACL 9, section 5; see `statistics.permutation.perm_both`.
It stands beside the test of the boards, for correlations over one pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmarks.arrays import BoolArray
from benchmarks.comparison import Compared, p_words
from benchmarks.errors import SubmitterError
from benchmarks.rows import Measured, PooledSample, Row
from benchmarks.schema import Answers, Benchmark, ScoreTable, Selector
from benchmarks.scores import read_scores
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws, stacked
from leaderboard.ranking.slices import Slice

if TYPE_CHECKING:
    from benchmarks.statistics.perm_both import Statistic
    from benchmarks.statistics.permutation import PermutationTests


SliceKey = tuple[Selector, str | None]
Pools = tuple[Callable[[], PooledSample], ...]
_UNNAMED = "score"


@dataclass(frozen=True)
class Contender:
    """One metric that takes part: its name in what is printed, its file, and all scores of that."""

    label: str
    path: Path
    metric: str
    scores: ScoreTable


@dataclass(frozen=True)
class Field:
    """What all contenders were measured by."""

    # every measure on every slice that all of them have, with their cells and draws in one order
    slices: dict[SliceKey, Slice]
    names: dict[str, str]  # entry id of a cell to the name of its metric, in that order
    facts: dict[str, Any]  # of the resampling, for the record: benchmark, revision, seed and so on
    # of slices whose value is the correlation of one pool, what makes the sample of each
    # contender, in the same order
    pools: dict[SliceKey, Pools] = field(default_factory=dict)


def contenders(
    paths: Sequence[Path],
    wanted: tuple[str | None, str | None],
    benchmark: Benchmark,
    answers: Answers,
    lower_is_better: Sequence[str] = (),
) -> tuple[Contender, ...]:
    """The metrics of one scores file or of several."""
    one_file = len({path.resolve() for path in paths}) == 1 and (len(paths) == 1 or all(wanted))
    files = [(paths[0], wanted)] if one_file else _of_files(paths, wanted)
    found: list[Contender] = []
    for path, names in files:
        given = [name for name in names if name is not None]
        table = read_scores(path, benchmark, answers, metric=given[0] if given else _UNNAMED)
        for metric in given or table.metrics:
            if metric not in table.metrics:
                raise _unknown(metric, path.name, table.metrics)
            found.append(Contender(metric, path, metric, table))
    _check_pair(found, paths)
    return _directed(_labelled(found), lower_is_better)


def measured_field(found: Sequence[Contender], benchmark: Benchmark, answers: Answers) -> Field:
    """Measure the contenders, each file at once and as it is, as the judge does.

    A metric's figures do not depend on what stands beside it but for the last bits, which would
    depend on how sums are grouped; so they are those of the published file.
    """
    of_file = {one.path: one.scores for one in found}
    measured = {path: benchmark.evaluate(scores, answers) for path, scores in of_file.items()}
    runs = [measured[one.path] for one in found]
    places = [
        {_key(row): i for i, row in enumerate(run.rows) if row.metric == one.metric}
        for one, run in zip(found, runs, strict=True)
    ]
    common = [key for key in places[0] if all(key in others for others in places)]
    if not common:
        raise SubmitterError(
            "nothing_in_common",
            f"{benchmark.name} has no measure that all of these metrics have.",
            "See what each has with `python -m evaluator meta`.",
        )
    ids = [f"{place}/{one.metric}" for place, one in enumerate(found)]
    slices = {key: _slice(runs, ids, [of_run[key] for of_run in places]) for key in common}
    first = runs[0].rows[places[0][common[0]]]
    facts = {
        name: getattr(first, name)
        for name in ("benchmark", "revision", "seed", "n_resamples", "plan", "versions")
    }
    names = dict(zip(ids, (one.label for one in found), strict=True))
    pools = {key: _pools(runs, [of_run[key] for of_run in places]) for key in common}
    return Field(slices, names, facts, {key: of_all for key, of_all in pools.items() if of_all})


def _of_files(
    paths: Sequence[Path], wanted: tuple[str | None, str | None]
) -> list[tuple[Path, tuple[str | None, ...]]]:
    names = [(name,) for name in wanted]
    return [(path, names[i] if i < len(names) else ()) for i, path in enumerate(paths)]


def _check_pair(found: Sequence[Contender], paths: Sequence[Path]) -> None:
    seen: set[tuple[Path, str]] = set()
    for one in found:
        key = (one.path.resolve(), one.metric)
        if key in seen:
            raise SubmitterError(
                "same_metric",
                f"Metric {one.metric!r} of {one.path.name} is given twice.",
                "Compare two different metrics.",
            )
        seen.add(key)
    if len(found) < 2:
        raise SubmitterError(
            "no_pair",
            f"{paths[0].name} holds one metric only, {found[0].metric!r}: there is nothing to "
            "compare it with.",
            "Give a second scores file, or a file with several columns of scores.",
        )


def _labelled(found: Sequence[Contender]) -> list[Contender]:
    """With names that tell them apart: an unnamed column is called by its file."""
    plain = [one.path.stem if one.metric == _UNNAMED else one.metric for one in found]
    named = [
        f"{name} ({one.path.name})" if plain.count(name) > 1 else name
        for name, one in zip(plain, found, strict=True)
    ]
    whole = [
        f"{name} ({one.path})" if named.count(label) > 1 else label
        for name, label, one in zip(plain, named, found, strict=True)
    ]
    return [replace(one, label=label) for one, label in zip(found, whole, strict=True)]


def _directed(found: Sequence[Contender], lower_is_better: Sequence[str]) -> tuple[Contender, ...]:
    known = [name for one in found for name in (one.metric, one.label)]
    for name in lower_is_better:
        if name not in known:
            labels = [one.label for one in found]
            raise _unknown(name, "What is compared", labels)
    turned: dict[Path, dict[str, Literal[1, -1]]] = {one.path: {} for one in found}
    for one in found:
        if {one.metric, one.label} & set(lower_is_better):
            turned[one.path][one.metric] = -1
    return tuple(
        replace(
            one,
            scores=replace(one.scores, directions={**one.scores.directions, **turned[one.path]}),
        )
        for one in found
    )


def _unknown(metric: str, where: str, known: Sequence[str]) -> SubmitterError:
    return SubmitterError(
        "unknown_metric",
        f"{where} has no metric {metric!r}.",
        f"Its metrics: {', '.join(known)}.",
    )


def _key(row: Row | Compared) -> SliceKey:
    selector = Selector(measure=row.measure, split=row.split, variant=row.variant, facet=row.facet)
    return selector, row.skill


def _pools(runs: Sequence[Measured], rows: Sequence[int]) -> Pools:
    """What makes the sample of each; empty where one has none."""
    found = [run.pools.get(row) for run, row in zip(runs, rows, strict=True)]
    pools = tuple(make for make in found if make is not None)
    return pools if len(pools) == len(found) else ()


def _slice(runs: Sequence[Measured], ids: Sequence[str], rows: Sequence[int]) -> Slice:
    cells = tuple(
        Cell.of(entry_id, row, run.rows[row])
        for entry_id, row, run in zip(ids, rows, runs, strict=True)
    )
    draws = Draws(
        resamples=stacked([run.resamples[row] for run, row in zip(runs, rows, strict=True)]),
        contributions=stacked(
            [np.asarray(run.contributions[row]) for run, row in zip(runs, rows, strict=True)]
        ),
    )
    return Slice(cells, draws)


N_DRAWS = 9999
"""Patterns of swaps where there are too many clusters to look at all; the least p is 0.0001."""
STATISTICS: dict[str, Statistic] = {"srcc": "spearman", "krcc": "kendall", "pearson": "pearson"}
"""Measures of rows that may have pools, to their names in `statistics.permutation`."""
NO_POOL = "not the SRCC, KRCC or Pearson correlation of one pool of images"
OF_SEVERAL = "a mean over several skills is not the correlation of one pool of images"
NO_VALUE = "one of the metrics has no value here"


@dataclass(frozen=True)
class Permuted:
    """PERM-BOTH of one pair of metrics on one slice."""

    # two-sided, not corrected; NaN where there is no test, and then `note` says why
    p_value: float = math.nan
    n_draws: int = 0  # patterns of swaps looked at; 0 without a test
    exact: bool = False  # whether these are all patterns
    note: str = ""  # why there is no test, or what it leaves out; empty as a rule

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
    """What stands in a column `p (scores)`: the test, and what must be known of single rows."""
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
