"""The part of the models page on people's ratings, apart from what metrics say."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.errors import SubmitterError
from benchmarks.model_boards.estimates import LEVEL
from leaderboard.models.board_types import PairTest
from leaderboard.models.people import PeopleBoard
from leaderboard.pages.models.people_table import (
    DIGITS,
    people_legend,
    people_table,
    people_verdict,
)
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.markup import paragraphs, scroll_box, section, text
from leaderboard.text import interval, number
from leaderboard.views.models import PEOPLE_IDENT

TITLE = "Rated by people"
_SMALLEST_P = 1e-4
_COLUMNS = ("Models", "Difference", "t", "p (t)", "p (Holm)", "W", "p (W)", "First higher",
            "Second higher")  # fmt: skip


def people_section(boards: Sequence[PeopleBoard], missing: SubmitterError | None = None) -> str:
    """The section; empty where people rated no models on the prompt set.

    Args:
        boards: one for each gold.
        missing: why there are none though people rated; None as a rule.
    """
    if missing is not None:
        why = paragraphs(f"{missing.message}\n\n{missing.hint}")
        return section(TITLE, f'<div class="as-empty">{why}</div>', ident=PEOPLE_IDENT)
    if not boards:
        return ""
    data = f"./v1/models/{boards[0].prompt_set}/ratings"
    body = "".join(_of_gold(board) for board in boards)
    return section(TITLE, body, aside=download_links(data, "ratings"), ident=PEOPLE_IDENT)


def _of_gold(board: PeopleBoard) -> str:
    head = (
        f"<h3>{text(board.gold_title[:1].upper() + board.gold_title[1:])}</h3>"
        if board.gold
        else ""
    )
    return (
        f"{head}{people_verdict(board)}{people_table(board)}{people_legend(board)}{_tests(board)}"
    )


def _tests(board: PeopleBoard) -> str:
    """Each two models on all prompts."""
    label = f"Tests of each two models on all prompts{': ' if board.gold else ''}{board.gold_title}"
    heads = "".join(f'<th scope="col">{text(one)}</th>' for one in _COLUMNS)
    rows = "".join(
        f'<tr><th scope="row">{text(board.models[a])} − {text(board.models[b])}</th>{_test(test)}</tr>'
        for (a, b), test in board.overall.pairs.items()
    )
    data = download_links(f"./v1/models/{board.prompt_set}/ratings/pairs", "tests")
    return (
        f'<details class="as-unfold" data-keep="people-tests-{text(board.gold)}"><summary>{text(label)}'
        f'</summary>{scroll_box(label)}<table class="as-table"><caption class="as-sr">{text(label)}'
        f"</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="as-legend"><b>Difference:</b> of the mean ratings, with its 95% interval. '
        "<b>t:</b> Student’s paired t; p-values are two-sided, Holm’s correction is over the pairs "
        "of the table. <b>W:</b> Wilcoxon’s signed ranks, prompts with equal ratings left out. "
        "<b>Higher:</b> share of prompts on which that model is rated strictly higher.</p>"
        f"<p>{data}</p></details>"
    )


def _test(test: PairTest) -> str:
    ends = interval(test.ci_low, test.ci_high, DIGITS)
    told = test.t_p_holm < LEVEL
    cells = (
        f'{number(test.difference, DIGITS)} <span class="as-ci">{ends}</span>',
        number(test.t, DIGITS),
        _p(test.t_p),
        f"<b>{_p(test.t_p_holm)}</b>" if told else f"{_p(test.t_p_holm)} n.s.",
        f"{test.wilcoxon_w:,.1f}",
        _p(test.wilcoxon_p),
        f"{100 * test.dominance:.0f}%",
        f"{100 * test.dominance_back:.0f}%",
    )
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _p(value: float) -> str:
    return f"&lt; {_SMALLEST_P:.4f}" if value < _SMALLEST_P else number(value, 4)
