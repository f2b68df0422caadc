"""All HTML of the boards page below its choosers."""

from __future__ import annotations

from benchmarks.schema import Card
from leaderboard.pages.as_published import as_published, everything_published
from leaderboard.pages.board_query import Choice
from leaderboard.pages.board_table import board_table, direction
from leaderboard.pages.csv_export import board_csv, download_link, file_name
from leaderboard.pages.heatmap import heatmap
from leaderboard.pages.markup import count, notice, number, page, section, text
from leaderboard.pages.measures import info, skill_title, title
from leaderboard.pages.reading import View

SIMULATED = (
    "<b>Ratings on this board are simulated.</b> They do not come from people; the board shows "
    "how a protocol works, not how good a metric is."
)


def board_view(choice: Choice, view: View) -> str:
    """Banner, remarks, the ranking and the heatmap of one choice."""
    card = choice.board.card
    parts = [f"<h1>{text(card.title)}</h1>"]
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    if choice.selector is None:
        return page([*parts, _intro(card), _empty(card), everything_published(card)])
    measure = info(card, choice.selector.measure)
    cells = choice.board.cells(choice.selector, choice.skill)
    name = title(card, choice.selector, choice.board.every_selector())
    skill = skill_title(card, choice.skill)
    table = board_table(cells, view.entries, card, measure, f"{card.title}: {name}, {skill}")
    bounds = f" From {_bound(measure.low, '−∞')} to {_bound(measure.high, '∞')}."
    lead = (
        f'<p class="as-lead">{text(measure.meaning)} {direction(measure)}{bounds} '
        f'<a href="./about#{text(card.name)}">More</a></p>'
    )
    csv = download_link(
        board_csv(cells, view.entries, choice.board), file_name(cells, choice.board)
    )
    aside = f"<span>{count(len(cells), 'metric')}</span>{csv}"
    parts += [_intro(card), section(f"{name} — {skill}", lead + table, aside=aside)]
    by_skill = heatmap(choice.board, choice.selector, view.entries)
    if by_skill:
        parts.append(section("By skill", by_skill))
    parts.append(as_published(card, choice.selector, choice.skill))
    return page(parts)


def _intro(card: Card) -> str:
    return (
        f'<p class="as-intro">{text(card.summary)} <span class="as-muted">Revision '
        f"{text(card.revision, limit=24)}; resampled by {text(card.cluster)}.</span></p>"
    )


def _empty(card: Card) -> str:
    return (
        '<div class="as-empty"><h2>No metric published yet</h2>'
        f"<p>Nobody has been ranked on {text(card.title)} so far.</p>"
        '<p><a class="as-button as-strong" href="./submit">Submit a metric</a></p></div>'
    )


def _bound(value: float | None, open_end: str) -> str:
    return open_end if value is None else number(value, 0 if value == round(value) else 2)
