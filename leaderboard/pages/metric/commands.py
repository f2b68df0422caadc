"""The commands that compute the rows of a run again, as somebody would type them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.publication.entries import Entry
from leaderboard.records import Kind, Status

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Commands:
    """How the rows of one run are computed again.

    Attributes:
        from_store: reads rows and scores from the store and says where they differ.
        from_file: needs the published scores file alone; empty where that does not do: scores are
            not public, or the benchmark's own format holds more than a table.
        scores: path of that file in the public store.
    """

    from_store: str
    from_file: str = ""
    scores: str = ""


def commands_for(entry: Entry, card: Card, status: Status | None) -> Commands:
    """The commands of a run.

    Args:
        entry: whose run it is; its id is checked by the store.
        card: the benchmark.
        status: of the submission, which says which way its scores go; None where it is not held.
    """
    from_store = (
        f"python -m evaluator report {entry.submission_id} --benchmark {card.name} --recompute"
    )
    if not card.answers_public or (entry.kind is Kind.SCORES and status is None):
        return Commands(from_store)
    lower = status.submission.lower_is_better if status else ()
    if any(not _PLAIN.fullmatch(name) for name in lower):
        return Commands(from_store)  # A name fit for a shell is not to be made here.
    file = f"{card.name}.scores.parquet"
    turned = "".join(f" --lower-is-better {name}" for name in lower)
    return Commands(
        from_store,
        f"python -m evaluator meta {card.name} --scores {file} --skills{turned}",
        f"results/{entry.submission_id}/{file}",
    )
