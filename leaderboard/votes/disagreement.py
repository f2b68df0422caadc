"""Prompts on which the metrics that judge a prompt set disagree about two models."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from benchmarks.errors import SubmitterError
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import selection
from leaderboard.publication.reader import View


def disagreements(
    reader: ModelReader, view: View, prompt_set: str, first: str, second: str
) -> Collection[str]:
    """Prompts on which one qualified metric sides with the first model and another with the second.

    Metrics whose scores are the very same are one. There are none where fewer than two qualified
    metrics scored both models, or where the prompts are not on this machine.
    """
    try:
        chosen = selection(reader, view, BoardQuery(prompt_set))
    except SubmitterError:
        return ()
    models = [one.submission_id for one in chosen.entries]
    if first not in models or second not in models:
        return ()
    a, b = models.index(first), models.index(second)
    columns = [chosen.columns(one) for one in chosen.distinct(chosen.judging(None))]
    if len(columns) < 2:
        return ()
    margins = np.array([one.values[:, a] - one.values[:, b] for one in columns])
    both = (margins > 0).any(axis=0) & (margins < 0).any(axis=0)
    return frozenset(chosen.slices.ids[place] for place in np.flatnonzero(both))
