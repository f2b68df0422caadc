"""Cases of a benchmark, and what metrics make of them: as the item browser lists them."""

from __future__ import annotations

from typing import Any

from leaderboard.api.replies import bad_query, not_found
from leaderboard.api.schemas import model_of
from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import as_of, refuse
from leaderboard.publication.item_scores import CaseSet
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.tables import Table
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.examples import (
    Choice,
    answers_are_public,
    board_of,
    look,
    lower_is_better,
    resolve,
    table_of,
)
from leaderboard.views.parameters import text

router = TableRouter()


@router.table(
    "/items",
    of_snapshot=False,
    takes=model_of(
        CompareQuery, "benchmark", "skill", "split", "a", "b", "show", "case",
        benchmark=text("Whose cases; without: the first with results.", "demo_croc"),
        skill=text("Key of a skill; without: all."),
        a=text("Entry id; without: the metric that ranks first."),
        b=text("Entry id of a metric to hold against it; without: none."),
    ),
)  # fmt: skip
def items(source: Source, query: CompareQuery) -> Table:
    """The cases of a benchmark whose answers are public, and how one or two metrics order them."""
    view = source.reader.view()
    board, remark = board_of(query, view)
    if board is None:
        raise bad_query("This installation has no benchmarks.")
    refuse([remark] if remark else [])
    cases = _cases(source, board)
    choice = resolve(query, board, cases)
    refuse(choice.remarks)
    with source.turn():
        lower = lower_is_better(source.reader.statuses())
        found = look(choice, cases, view, source.items, lower)
    order = [cases.place(choice.query.case)] if choice.query.case else found.order
    return table_of(cases, found.standings, order, _about(choice, view))


def _cases(source: Source, board: BoardIndex) -> CaseSet:
    card = board.card
    if not answers_are_public(card, source.cards):
        raise not_found(
            "answers_withheld", f"The answers of {card.name} are withheld, and with them its items.",
            "Its board has the measures.",
        )  # fmt: skip
    cases = source.items.cases(card)
    if cases is None:
        raise not_found(
            "no_cases", f"No cases of {card.name} are published yet.",
            "They are published with the next result on it.",
        )  # fmt: skip
    return cases


def _about(choice: Choice, view: View) -> dict[str, Any]:
    card, query = choice.card, choice.query
    return {
        "as_of": as_of(view), "simulated": card.simulated, "licence": card.licence,
        "skill": query.skill, "split": query.split, "show": choice.show if choice.a else "all",
    }  # fmt: skip
