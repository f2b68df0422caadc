"""Published values for a ranking, as a table of its own: no row of it is in any ranking."""

from __future__ import annotations

from benchmarks.errata import errata
from benchmarks.published import PublishedCell, papers
from leaderboard.api.operations import Asked, Operation
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import BENCHMARK, SLICE, chosen
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.printed import all_printed, printed_of

KIND = "as published"
COLUMNS = (
    "kind", "metric", "benchmark", "measure", "variant", "split", "facet", "skill", "value",
    "printed", "in_percent", "table", "paper", "citation", "url", "n_errata",
)  # fmt: skip
_TYPES = {Type.NUMBER: "value", Type.FLAG: "in_percent", Type.COUNT: "n_errata"}
_MEANINGS = {
    "kind": "as published: not computed here, and in no ranking.",
    "value": "In the unit of the board: 67.9 % is 0.679.",
    "printed": "With the digits of the paper.",
    "table": "Of the paper.",
    "n_errata": "Known of the paper, all in all; see the page of errata.",
}


def printed(source: Source, asked: Asked) -> Table:
    """The printed figures that the boards page shows beside the ranking of the same query.

    Raises:
        RefusedError: `unknown_benchmark`, `bad_query`.
    """
    found = chosen(source, asked)
    choice, card = found.choice, found.choice.board.card
    if choice.selector is None:
        cells = all_printed(card)
    else:
        # Nobody prints the mean of whichever skills a visitor chooses.
        several = len(choice.skills) > 1
        cells = () if several else printed_of(card, choice.selector, choice.skill)
    rows = [_row(cell) for cell in cells]
    about = {name: said for name, said in found.about().items() if name != "filters"}
    return Table(f"{card.name}-as-published", columns_of(COLUMNS, _TYPES, _MEANINGS), rows, about)


def _row(cell: PublishedCell) -> dict[str, Value]:
    paper = papers()[cell.paper]
    return {
        "kind": KIND,
        **{name: getattr(cell, name) for name in COLUMNS if name in PublishedCell.model_fields},
        "in_percent": cell.in_percent,
        "paper": paper.name,
        "citation": paper.citation,
        "url": paper.url,
        "n_errata": sum(one.paper == cell.paper for one in errata()),
    }


OPERATIONS = (
    Operation(
        "/boards/{benchmark}/published", "board_published",
        "What papers print for a ranking; not computed here and in no ranking.",
        printed, (*SLICE, BENCHMARK), (BENCHMARK,),
    ),
)  # fmt: skip
