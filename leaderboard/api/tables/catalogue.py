"""Catalogue: benchmarks with their measures, entries with all of their results, gains and drift."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from benchmarks.schema import KINDS, Selector
from benchmarks.statistics.resampling import seed_of
from leaderboard.api.replies import bad_query
from leaderboard.api.schemas import Paged, Parameters
from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import Benchmark, EntryId, as_of, entry_of, of_benchmark
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import in_order, info, skill_title, title, token
from leaderboard.publication.metric_facts import metric_in_words
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.ranking.cells import Cell
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.addresses import metric_address
from leaderboard.views.best_of_n import best_of_n as gains_of
from leaderboard.views.best_of_n import best_of_n_table
from leaderboard.views.drift import drift_of, drift_sentence, drift_table
from leaderboard.views.metric import MetricOnBoards, on_boards, others_of
from leaderboard.views.parameters import text

_BENCHMARKS = (
    "name", "title", "family", "kind", "summary", "revision", "protocol", "simulated",
    "answers_public", "cluster", "headline", "headline_title", "chance", "ceiling", "licence",
    "n_entries", "seed",
)  # fmt: skip
_MEASURES = (
    "measure", "token", "title", "variant", "split", "facet", "skill", "skill_title", "meaning",
    "higher_is_better", "low", "high", "chance", "headline", "n_entries",
)  # fmt: skip
_ENTRIES = (
    "entry_id", "submission_id", "metric", "version", "kind", "submitter", "account", "description",
    "trained_on", "flops_per_pair", "template", "released_with", "benchmarks", "received_at", "published_at",
)  # fmt: skip
_RESULTS = (
    "benchmark", "revision", "measure", "variant", "split", "facet", "skill", "value", "ci_low",
    "ci_high", "ci_method", "n_items", "n_clusters", "n_missing", "rank_low", "rank", "rank_high",
    "best_share", "tier", "why_unranked", "note",
    "entry_id", "kind",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "chance ceiling low high value ci_low ci_high best_share flops_per_pair",
    Type.COUNT: "protocol n_entries seed n_items n_clusters n_missing rank_low rank rank_high tier",
    Type.FLAG: "simulated answers_public higher_is_better headline",
}
_HEADLINE_TYPES = {Type.NUMBER: "chance ceiling", Type.COUNT: "protocol n_entries seed",
                   Type.FLAG: "simulated answers_public"}  # fmt: skip
_MEANINGS = {
    "simulated": "Ratings do not come from people.",
    "cluster": "What is resampled.",
    "token": "Names exactly this measure in queries.",
    "skill": "Missing: all skills.",
    "chance": "Its value by chance.",
    "trained_on": "As its author declares, parted by commas.",
    "flops_per_pair": "As its author declares, not measured; empty: not declared.",
    "template": "Kind of the template whose code it is, unchanged; empty: it has code of its own.",
    "released_with": "Citation of the paper whose authors released the scores; empty: somebody sent them.",
    "benchmarks": "With results on the board, parted by commas.",
    "rank": "On the published board; missing where there is too little to order.",
    "tier": "Tier among the entries of the slice; the tests tell no two of one apart.",
    "why_unranked": "Why it has no rank.",
    "entry_id": "`<submission id>/<metric>`.",
    "kind": "metric: run by Assay; scores: as submitted or released, not re-run.",
}

router = TableRouter()


class EntriesParameters(Paged):
    """Parameters of the entries."""

    benchmark: str = text("Only those with results on it.", "demo_croc")


class EntryParameters(Parameters):
    """Parameters of one entry."""

    elsewhere: Annotated[Literal["1"] | None, WithJsonSchema({"type": "string", "enum": ["1"]})] = (
        Field(
            default=None,
            description="1: where it has no value itself, those of the same metric's other "
            "submissions, as on its page.",
        )
    )


@router.table("/benchmarks")
def benchmarks(source: Source) -> Table:
    """All benchmarks of this installation."""
    view = source.reader.view()
    on = Counter(name for entry in view.entries.values() for name in entry.provenance)
    rows = [_benchmark(board, on[name]) for name, board in view.boards.items()]
    meanings = _MEANINGS | {"kind": f"What people judged: {', '.join(KINDS)}."}
    columns = columns_of(_BENCHMARKS, _HEADLINE_TYPES, meanings)
    return Table("benchmarks", columns, rows, {"as_of": as_of(view)})


@router.table("/benchmarks/{benchmark}")
def benchmark(source: Source, benchmark: Benchmark) -> Table:
    """What is measured on a benchmark, for all skills and each; `about.card` says what it is."""
    view = source.reader.view()
    board = of_benchmark(view, benchmark)
    card = board.card
    rows = [
        _measure(board, selector, skill)
        for skill in (None, *board.skills())
        for selector in in_order(card, board.selectors(skill))
    ]
    about = {"as_of": as_of(view), "card": card.model_dump(mode="json")}
    return Table(card.name, columns_of(_MEASURES, _TYPES, _MEANINGS), rows, about)


@router.table("/entries")
def entries(source: Source, query: EntriesParameters) -> Table:
    """The metrics on the boards, newest first."""
    view = source.reader.view()
    wanted = query.benchmark
    if wanted and wanted not in view.boards:
        raise bad_query("There is no such benchmark here.", "See /v1/benchmarks.")
    found = [e for e in view.entries.values() if not wanted or wanted in e.provenance]
    found.sort(key=lambda entry: (entry.published_at, entry.entry_id), reverse=True)
    rows = [_entry(one) for one in query.of(found)]
    about = {"as_of": as_of(view), **query.about(len(found))}
    return Table("entries", columns_of(_ENTRIES, _TYPES, _MEANINGS), rows, about)


@router.table("/entries/{entry_id:path}")
def entry(
    source: Source,
    entry_id: EntryId,
    query: EntryParameters,
) -> Table:
    """Every published value of one metric; `about.entry` has cost, findings and trust checks."""
    view = source.reader.view()
    found = entry_of(view, entry_id)
    rows = [
        _result(cell, board, view.entries[cell.entry_id])
        for board, cells in _of_metric(found, view, elsewhere=bool(query.elsewhere))
        for cell in cells
    ]
    about = {
        "as_of": as_of(view),
        "entry": found.model_dump(mode="json"),
        "page": metric_address(found.entry_id),
    }
    return Table("entry", columns_of(_RESULTS, _TYPES, _MEANINGS), rows, about)


def _of_metric(
    found: Entry, view: View, *, elsewhere: bool
) -> list[tuple[BoardIndex, tuple[Cell, ...]]]:
    """The boards a metric stands on with its rows, in the order of its page."""
    others = others_of(found, view) if elsewhere else ()
    return [(one.board, one.cells) for one in on_boards(MetricOnBoards(found, None, others), view)]


def _benchmark(board: BoardIndex, n_entries: int) -> dict[str, Value]:
    card = board.card
    scale = card.headline_scale
    return {
        **card.model_dump(include=set(_BENCHMARKS) - {"headline"}),
        "headline": token(card.headline),
        "headline_title": info(card, card.headline.measure).title,
        "chance": scale.chance if scale else None,
        "ceiling": scale.ceiling if scale else None,
        "n_entries": n_entries,
        "seed": seed_of(card.name, card.revision),
    }


def _measure(board: BoardIndex, selector: Selector, skill: str | None) -> dict[str, Value]:
    card = board.card
    return {
        **info(card, selector.measure).model_dump(),
        **selector.model_dump(),
        "token": token(selector),
        "title": title(card, selector, board.every_selector()),
        "skill": skill,
        "skill_title": skill_title(card, skill),
        "headline": skill is None and selector == card.headline,
        "n_entries": len(board.cells(selector, skill)),
    }


def _entry(found: Entry) -> dict[str, Value]:
    return {
        **found.model_dump(include=set(_ENTRIES) - {"trained_on", "received_at", "published_at"}),
        "kind": found.kind.value,
        "trained_on": ", ".join(found.trained_on),
        "benchmarks": ", ".join(found.provenance),
        "received_at": found.received_at.isoformat(),
        "published_at": found.published_at.isoformat(),
    }


def _result(cell: Cell, board: BoardIndex, entry: Entry) -> dict[str, Value]:
    return {
        **cell.model_dump(),
        "kind": entry.kind.value,
        "benchmark": board.card.name,
        "revision": board.card.revision,
        "tier": cell.tier,
        "why_unranked": cell.why_unranked if cell.rank is None else "",
    }


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
