"""Agreement of the author's own check with the run's scores: a finding, never a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from benchmarks.schema import Benchmark
from evaluator.submission.checking.drawn import USUAL_PAIRS, Drawn
from evaluator.submission.checking.dry_run import JOINED
from leaderboard.publication.origins import scores_sha256
from leaderboard.records import Receipt


def agreement(
    receipt: Receipt,
    scores: Mapping[str, pd.Series[float]],
    registry: Mapping[str, Benchmark],
    data: Path | None,
) -> str:
    """A sentence on whether the scores agree; empty where that cannot be said.

    It can be where the check asked what it usually does, or everything: a receipt does not say
    which pairs it is of, but those can be drawn again.

    Args:
        receipt: of the check.
        scores: benchmark to the scores of the run, by pair id.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
    """
    names = receipt.benchmark.split(JOINED)
    if any(name not in scores or name not in registry for name in names):
        return ""
    benchmarks = [registry[name] for name in names]
    for share in (None, max(1, USUAL_PAIRS // len(names))):
        drawn = [Drawn(one, data, share) for one in benchmarks]
        if sum(one.n_pairs for one in drawn) == receipt.pairs:
            same = _hash(drawn, scores) == receipt.scores_sha256
            gave = "the same scores" if same else "other scores, to six significant digits,"
            return f"The author's own check gave {gave} on its {receipt.pairs} pairs."
    return ""


def _hash(drawn: Sequence[Drawn], scores: Mapping[str, pd.Series[float]]) -> str:
    """As the check made it: over all its benchmarks together."""
    columns = []
    for one in drawn:
        asked = [pair.pair_id for pair in one.questions(None).pairs]
        columns.append(scores[one.name].loc[asked].add_prefix(f"{one.name}/"))
    return scores_sha256(pd.concat(columns))
