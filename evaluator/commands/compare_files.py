"""The metrics that `compare` is given: which columns of which files, and what they measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.rows import Measured, PooledSample, Row
from benchmarks.schema import Answers, Benchmark, ScoreTable, Selector
from benchmarks.scores import read_scores
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws, stacked
from leaderboard.ranking.slices import Slice

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
    """What all contenders were measured by.

    Attributes:
        slices: every measure on every slice that all of them have, with their cells and draws in
            one order.
        names: entry id of a cell to the name of its metric, in that order.
        facts: of the resampling, for the record: benchmark, revision, seed and so on.
        pools: of slices whose value is the correlation of one pool, what makes the sample of each
            contender, in the same order.
    """

    slices: dict[SliceKey, Slice]
    names: dict[str, str]
    facts: dict[str, Any]
    pools: dict[SliceKey, Pools] = field(default_factory=dict)


def contenders(
    paths: Sequence[Path],
    wanted: tuple[str | None, str | None],
    benchmark: Benchmark,
    answers: Answers,
    lower_is_better: Sequence[str] = (),
) -> tuple[Contender, ...]:
    """The metrics of one scores file or of several.

    Args:
        paths: scores files; each metric of each takes part unless some are named.
        wanted: the one metric of the first file and the one of the second that are compared;
            of a single file, both are its own. They name an unnamed column `score` too.
        benchmark: whose they are.
        answers: of that benchmark.
        lower_is_better: metrics for which lower scores are better, by column or by printed name.

    Raises:
        SubmitterError: what `read_scores` raises; `unknown_metric`, `same_metric` or `no_pair`.
    """
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

    Raises:
        SubmitterError: `nothing_in_common`: there is no measure that all of them have.
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


def _key(row: Row) -> SliceKey:
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
