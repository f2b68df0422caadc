"""The items behind a result: which images a metric misjudges, and who else does."""

from __future__ import annotations

import gradio as gr

from leaderboard.pages.items.view import Everyone, Listed, Names, items_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.markup import notice, page
from leaderboard.pages.shown.widgets import html, on_load
from leaderboard.publication.item_scores import CaseSet, ItemReader
from leaderboard.publication.reader import View
from leaderboard.views.examples import (
    MOST_TILES_ALONE,
    PER_PAGE,
    Choice,
    ItemsQuery,
    answers_are_public,
    board_of,
    case_shown,
    difference,
    look,
    lower_is_better,
    resolve,
    summary,
    verdict,
)

MOST_ENTRIES = 40
"""Metrics whose scores are read to say who failed on one case, those that rank first."""


class Items:
    """Answers what the page is asked for.

    Args:
        context: what every page may use.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reader = context.items or ItemReader(context.store.public)

    def answer(self, query: ItemsQuery) -> str:
        """The page of a query, as HTML.

        Raises:
            TransientError: the store cannot be read.
        """
        view = self._context.reader.view()
        board, remark = board_of(query, view)
        if board is None:
            return page([notice("This installation has no benchmarks.")])
        public = answers_are_public(board.card, self._context.cards)
        pictures = self._context.pictures
        texts = pictures.texts(board.card.name)
        cases = self._reader.cases(board.card, texts) if public else None
        choice = resolve(query, board, cases, [remark] if remark else [])
        found = None if cases is None else self._found(choice, cases, view)
        options = [(one.card.title, name) for name, one in view.boards.items()]
        return items_view(
            choice,
            found,
            _names(choice, view),
            options,
            pictures=found is not None and pictures.has(choice.card.name),
            absent=self._absent(cases) if cases is not None else (),
            public=public,
        )

    def _absent(self, cases: CaseSet) -> tuple[str, ...]:
        """What of the prompts and images is not here, where the benchmark has files to fetch."""
        here = self._context.cards.get(cases.benchmark)
        if here is None or not here.files:
            return ()
        has = {"prompts": cases.has_prompts, "images": self._context.pictures.has(cases.benchmark)}
        return tuple(what for what, is_here in has.items() if not is_here)

    def _found(self, choice: Choice, cases: CaseSet, view: View) -> Listed:
        looked = look(choice, cases, view, self._reader, self._lower())
        standings, order = looked.standings, looked.order
        if choice.query.case:
            case = cases.place(choice.query.case)
            shown = case_shown(cases, case, standings, MOST_TILES_ALONE)
            return Listed((shown,), 1, 1, everyone=self._everyone(choice, cases, case, view))
        number = min(choice.query.page, max(1, -(-len(order) // PER_PAGE)))
        on_page = order[(number - 1) * PER_PAGE : number * PER_PAGE]
        return Listed(
            shown=tuple(case_shown(cases, int(case), standings) for case in on_page),
            total=len(order),
            page=number,
            summaries=tuple(summary(cases, one, looked.chosen) for one in standings),
            gap=difference(cases, *standings, looked.chosen) if len(standings) == 2 else None,
        )

    def _everyone(self, choice: Choice, cases: CaseSet, case: int, view: View) -> Everyone:
        looked_at = dict.fromkeys([*choice.metrics, *choice.entries[:MOST_ENTRIES]])
        entries = [view.entries[entry] for entry in looked_at]
        standings = self._reader.standings(entries, cases, self._lower())
        names = _names(choice, view)
        rows = [(one.entry_id, names(one.entry_id), verdict(cases, case, one)) for one in standings]
        # Who scored nothing here did not fail by an order; they come last.
        worst = sorted(rows, key=lambda row: (not row[2].came.compared, row[2].came.share))
        return Everyone(tuple(worst), len(choice.entries))

    def _lower(self) -> dict[str, tuple[str, ...]]:
        return lower_is_better(self._context.reader.statuses())


def _names(choice: Choice, view: View) -> Names:
    found = {}
    for entry_id in choice.entries:
        entry = view.entries[entry_id]
        found[entry_id] = f"{entry.metric} {entry.version}".strip()
    return Names(found)


def _build(context: Context) -> None:
    items, shown = Items(context), html()

    def open_page(request: gr.Request) -> str:
        return items.answer(ItemsQuery.from_params(request.query_params))

    on_load(open_page, shown)


PAGE = Page("Examples", "items", 16, _build)
