"""Two models against each other: tests, all models on one skill, and the prompts that decide."""

from __future__ import annotations

from dataclasses import replace

import gradio as gr

from leaderboard.models.board_types import PairReport
from leaderboard.models.pair import pair_matrix, pair_report
from leaderboard.models.reading import ModelReader
from leaderboard.pages.model_pair.deciding import deciding_section, telling
from leaderboard.pages.model_pair.matrix import model_matrix
from leaderboard.pages.model_pair.view import pair_view, tests_sections
from leaderboard.pages.models.models_page import reader_of
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.models.table import models_in_order
from leaderboard.pages.models.view import nothing_here
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.copying import COPY_AND_GO
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.markup import notice, section, text
from leaderboard.pages.shown.widgets import html, on_load, run_on_load
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.reader import View
from leaderboard.views.models import (
    Choice,
    PairQuery,
    board_of,
    drawn_of,
    judge_of,
    opponents,
    resolve,
)


def answer(context: Context, query: PairQuery) -> str:
    """The page of a query, as HTML.

    Raises:
        TransientError: the store cannot be read.
    """
    view, reader = context.reader.view(), reader_of(context)
    choice = resolve(query.of, reader, view)
    if choice is None:
        return nothing_here()
    skill = choice.query.skill or None
    board = board_of(choice, reader, view, skill)
    found = opponents(query, choice, models_in_order(board)) if board else None
    if board is None or found is None:
        return pair_view(choice, reader, ())
    first, second, said = found
    exact = PairQuery(first.submission_id, second.submission_id, choice.query)
    report = pair_report(reader, view, exact.a, exact.b, choice.wanted)
    parts = [notice(text(one), "info", role="status") for one in said]
    parts += tests_sections(report, choice, exact)
    parts.append(_matrix(choice, reader, view))
    if skill:  # Among sub-skills the report would name the prompts of all skills.
        wanted = replace(choice.wanted, skills=(skill,))
        report = pair_report(reader, view, exact.a, exact.b, wanted)
    parts.append(_deciding(report, choice, reader, view))
    return pair_view(choice, reader, parts, pair=(exact.a, exact.b))


def _matrix(choice: Choice, reader: ModelReader, view: View) -> str:
    skill, judge = choice.query.skill or None, judge_of(choice, reader, view)
    if not judge or len(choice.entries) < 3:
        return ""
    found = pair_matrix(reader, view, choice.wanted, skill, judge)
    entries = {one.submission_id: one for one in choice.entries}
    title = skill_title(choice.card, skill) if skill else "all prompts"
    by = judge_name(judge, choice.judges.get(judge, judge))
    data = choice.query.to_data("pairs")
    return section(
        f"All models: {title}",
        f"<p>By {by}.</p>{model_matrix(found, entries, choice.query)}",
        aside=download_links(data, "all pairs"),
        ident="matrix",
    )


def _deciding(report: PairReport, choice: Choice, reader: ModelReader, view: View) -> str:
    judge = judge_of(choice, reader, view)
    pair, places = (
        (report.first, report.second),
        {p.prompt_id: k for k, p in enumerate(choice.prompts)},
    )
    judge = judge if judge in report.deciding else next(iter(report.deciding), "")
    if not judge:
        return ""
    sides = telling(report.deciding[judge])
    named = [one.prompt_id for side in sides for one in side]
    wanted = [places[one] for one in named]
    images = {
        (entry.submission_id, prompt_id): drawn
        for entry in pair
        for prompt_id, drawn in zip(
            named, drawn_of(reader, entry, judge, choice.prompts, wanted), strict=True
        )
    }
    return deciding_section(pair, sides, choice, (judge, choice.judges.get(judge, judge)), images)


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return answer(context, PairQuery.from_params(request.query_params))

    on_load(open_page, shown)
    run_on_load(COPY_AND_GO)


PAGE = Page("Compare models", "model-pair", 18, _build, in_navigation=False)
