"""Validity of a metric against the release date of generators, as the API tells it."""

from __future__ import annotations

from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import EntryId, as_of, entry_of
from leaderboard.publication.metric_facts import metric_in_words
from leaderboard.tables import Table
from leaderboard.views.addresses import metric_address
from leaderboard.views.drift import drift_of, drift_sentence, drift_table

router = TableRouter()


@router.table("/drift/{entry_id:path}")
def drift(source: Source, entry_id: EntryId) -> Table:
    """Validity of one metric against the release date of generators; `about.sentence` says it in words.

    The headline on the images of each generator, a slope over their dates for each benchmark, and one
    over benchmarks with the p-value corrected for all metrics.
    """
    view = source.reader.view()
    entry = entry_of(view, entry_id)
    found = drift_of(view, entry)
    about = {
        "as_of": as_of(view),
        "entry_id": entry_id,
        "page": f"{metric_address(entry_id)}#drift",
        "sentence": drift_sentence(found, metric_in_words(entry)),
    }
    return drift_table(found, about)
