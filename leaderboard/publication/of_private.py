"""Publication of a private submission by its author."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.schema import Card
from leaderboard.ledger.submission_files import submission_file
from leaderboard.publication.archive import held_archive
from leaderboard.publication.published import Published
from leaderboard.publication.results import held_results, with_draws
from leaderboard.records import RunResult, Submission
from leaderboard.store.interface import Store, transact
from leaderboard.store.overlay import Overlay


@dataclass(frozen=True)
class Publication:
    """What a commit makes public.

    Attributes:
        records: the whole record of what is published, by id.
        files: its results and its record, as public files.
        runs: its results, for the boards.
    """

    records: Mapping[str, Submission] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    runs: Sequence[Published] = ()


def publication(store: Store, held: Submission, cards: Mapping[str, Card]) -> Publication:
    """Prepare the publication of a private submission.

    What must stay private of its results (where a benchmark's answers are) is copied to its place
    there first: the boards read it from the moment of the public commit. Without that commit
    nothing reads it.

    Args:
        store: where its results are held.
        held: the whole record.
        cards: the benchmarks that have boards.

    Raises:
        PlatformError: `unknown_benchmark`.
    """
    record = held.model_copy(update={"private": False})
    files, old = held_results(store, held, cards), held_archive(store, held, cards)
    private = {**files.private, **old.private}
    if private:
        message = f"draws of private answers of {held.submission_id}"
        transact(store.private, lambda: private, message)
    later = Store(Overlay(store.public, files.public), store.private, store.live)
    results = [
        RunResult.model_validate_json(content)
        for path, content in files.public.items()
        if path.endswith(".json")
    ]
    return Publication(
        records={held.submission_id: record},
        files={**files.public, **old.public, **submission_file(record)},
        runs=[with_draws(later, record, result, cards) for result in results],
    )
