"""All HTML of the comparison of two models."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.models.board_types import PairReport
from leaderboard.models.reading import ModelReader
from leaderboard.pages.model_pair.tests_table import in_short, tests_table
from leaderboard.pages.models.forms import (
    asking_form,
    judge_field,
    model_options,
    seed_field,
    select,
    set_field,
    skill_field,
    split_field,
    words_field,
)
from leaderboard.pages.models.names import badges, model_name
from leaderboard.pages.models.view import SIMULATED, empty
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.markup import notice, page, section, text
from leaderboard.publication.measure_names import skill_title
from leaderboard.views.models import Choice, PairQuery

_ALL = "All prompts"


def pair_view(
    choice: Choice, reader: ModelReader, parts: Sequence[str], *, pair: tuple[str, str] = ("", "")
) -> str:
    """The page.

    Args:
        choice: what is looked at.
        reader: of the models, for the list of prompt sets.
        parts: what stands below the form, as HTML; none where there are no two models.
        pair: submission ids of the two.
    """
    head = ["<h1>Compare models</h1>", _intro(choice)]
    head += [notice(SIMULATED, "warn")] if choice.card.simulated else []
    head += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    fields = [set_field(reader, choice)]
    if len(choice.entries) > 1:
        options = model_options(choice.entries)
        fields += [select("First", "a", options, pair[0]), select("Second", "b", options, pair[1])]
        fields += [*skill_field(choice), *split_field(choice), words_field(choice.query.words)]
        fields += [*judge_field(choice, "Those that earned it"), *seed_field(choice)]
    head.append(asking_form("model-pair", "Choose two models", fields,
                            {"models": ",".join(choice.query.models)}))  # fmt: skip
    return page([*head, *(parts or [_none(choice)])])


def tests_sections(report: PairReport, choice: Choice, query: PairQuery) -> list[str]:
    """Both models, the tests in short, and all of them.

    Args:
        report: of the two.
        choice: what is looked at.
        query: of the page.
    """
    skill, chosen = choice.query.skill or None, choice.query.judge
    titles: dict[str | None, str] = {
        one: _ALL if one is None else skill_title(choice.card, one) for one in report.judges
    }
    judging = {j.entry_id for j in report.judges.get(skill, ()) if j.trusted}
    judging = {chosen} if chosen else judging
    first = [one for one in report.tests if one.skill == skill and one.judge in judging]
    short = in_short(report, first, titles.get(skill, _ALL)) if first else notice(
        "No metric that earned trust here has scored both models."
    )  # fmt: skip
    link = query.to_link(report.second.submission_id, report.first.submission_id)
    swap = f'<a class="as-button" href="{text(link)}">Swap the two</a>'
    sides = "".join(
        f'<li><span class="as-key as-key-{key}"></span>{model_name(one)} {badges(one)}</li>'
        for key, one in (("a", report.first), ("b", report.second))
    )
    data = choice.query.to_data("pairs")
    pair = f"a={report.first.submission_id}&b={report.second.submission_id}"
    links = download_links(f"{data}{'&' if '?' in data else '?'}{pair}")
    trusted = tests_table(report, titles, trusted=True, chosen=chosen)
    others = tests_table(report, titles, trusted=False, chosen=chosen)
    more = (
        f'<details class="as-unfold" data-keep="others"><summary>By the other metrics, for the '
        f"curious</summary>{others}</details>"
        if others
        else ""
    )
    legend = (
        '<p class="as-legend"><b>Difference:</b> mean over the prompts of the first model less the '
        "second, in units of the metric, with a 95 % interval. <b>p (Holm):</b> of the paired t "
        "test, corrected for all pairs of models and all metrics that judge the skill. "
        "<b>Better on:</b> share of the prompts on which each is strictly better.</p>"
    )
    body = f"{trusted}{legend if trusted else ''}{more}"
    return [
        f'{short}<ul class="as-sides">{sides}</ul><p>{swap}</p>',
        section("Tests", body, aside=links, ident="tests"),
    ]


def _intro(choice: Choice) -> str:
    return (
        '<p class="as-intro">By how much two models differ on the same prompts, how sure that is, '
        f'and which prompts decide it. <a href="{text(choice.query.to_link())}">The board of models'
        "</a></p>"
    )


def _none(choice: Choice) -> str:
    if len(choice.entries) < 2 or not choice.prompts or not choice.judges:
        if len(choice.entries) == 1 and choice.prompts and choice.judges:
            return '<div class="as-empty"><h2>One model only</h2><p>There is nothing to compare it with yet.</p></div>'
        return empty(choice)
    if not choice.places:
        return empty(choice)
    return '<div class="as-empty"><p>Choose two models that are compared.</p></div>'
