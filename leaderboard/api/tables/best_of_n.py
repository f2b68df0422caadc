"""Best-of-N gains of a metric, by ratings of people and by other metrics, as the API tells them."""

from __future__ import annotations

from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import EntryId, as_of, entry_of
from leaderboard.tables import Table
from leaderboard.views.addresses import metric_address
from leaderboard.views.best_of_n import best_of_n as gains_of
from leaderboard.views.best_of_n import best_of_n_table
from leaderboard.views.metric import MetricOnBoards, others_of

router = TableRouter()


@router.table("/best-of-n/{entry_id:path}", of_snapshot=False)
def best_of_n(source: Source, entry_id: EntryId) -> Table:
    """What choosing the best of n images by one metric gains; `about.sentences` says it in words.

    Under people's ratings, on every benchmark that publishes those of several images of a prompt,
    and under the other qualified metrics, on the images of every prompt set.
    """
    view, statuses = source.reader.view(), source.reader.statuses()
    entry = entry_of(view, entry_id)
    shown = MetricOnBoards(entry, None, others_of(entry, view))
    with source.turn():
        found = gains_of(
            shown, view, items=source.items, models=source.model_reader, here=source.cards,
            statuses=statuses,
        )  # fmt: skip
    about = {"as_of": as_of(view), "entry_id": entry_id, "page": metric_address(entry_id)}
    return best_of_n_table(found, about)
