"""All HTML of the boards page below its choosers."""

from __future__ import annotations

from benchmarks.schema import Card
from leaderboard.pages.boards.as_published import as_published, everything_published
from leaderboard.pages.boards.heatmap import has_skills, heatmap
from leaderboard.pages.boards.pair_matrix import pair_matrix, pairs
from leaderboard.pages.boards.query import BoardQuery, Choice
from leaderboard.pages.boards.table import board_table, direction
from leaderboard.pages.reading import View
from leaderboard.pages.shown.csv_export import board_csv, download_link, file_name, pairs_csv
from leaderboard.pages.shown.markup import count, notice, number, page, section, text
from leaderboard.pages.shown.measures import info, title
from leaderboard.pages.shown.tiers import Basis, in_tiers
from leaderboard.ranking.slices import Ranked

SIMULATED = (
    "<b>Ratings on this board are simulated.</b> They do not come from people; the board shows "
    "how a protocol works, not how good a metric is."
)


def board_view(choice: Choice, view: View, earlier: str = "") -> str:
    """Banner, remarks, the ranking and its tests; what a board without results has to say.

    Args:
        choice: what is shown.
        view: what is published.
        earlier: what is said of an earlier revision, as HTML.
    """
    card = choice.board.card
    parts = [f"<h1>{text(card.title)}</h1>"]
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    parts += [_intro(card), earlier]
    if choice.selector is None:
        return page([*parts, _empty(card), everything_published(card)])
    everyone = choice.entry_ids()
    shown = choice.filters.kept(everyone, view.entries, card)
    if shown is not None and not shown:
        return page([*parts, _nobody(choice, len(everyone))])
    ranked = in_tiers(view.orders.ranked(card, choice.slices(), shown))
    parts.append(_ranking(choice, view, ranked, len(everyone)))
    return page([*parts, _against_each_other(choice, view, ranked)])


def skills_view(choice: Choice, view: View) -> str:
    """The heatmap and what papers print: below the ranking, and made after it."""
    if choice.selector is None:
        return ""
    # Of all entries, since the heatmap has rows for everybody, whatever skill is ranked.
    shown = choice.filters.kept(view.entries, view.entries, choice.board.card)
    by_skill = heatmap(choice.board, choice.selector, view, shown)
    return _below(choice, section("By skill", by_skill) if by_skill else "")


def skills_placeholder(choice: Choice) -> str:
    """What stands in the place of `skills_view` until that is made."""
    if choice.selector is None:
        return ""
    wait = '<p class="as-wait" role="status">Testing the metrics within each skill…</p>'
    waiting = has_skills(choice.board, choice.selector)
    return _below(choice, section("By skill", wait) if waiting else "")


def _below(choice: Choice, by_skill: str) -> str:
    several = len(choice.skills) > 1
    printed = (
        ""
        if several or choice.selector is None
        else as_published(choice.board.card, choice.selector, choice.skill)
    )
    return page([by_skill, printed]) if by_skill or printed else ""


def _ranking(choice: Choice, view: View, ranked: Ranked, everyone: int) -> str:
    card, selector = choice.board.card, choice.selector
    if selector is None:
        return ""
    measure = info(card, selector.measure)
    name = title(card, selector, choice.board.every_selector())
    cells = ranked.cells
    table = board_table(
        cells, view.entries, card, measure, f"{card.title}: {name}, {choice.title}",
        basis=Basis.of(ranked),
    )  # fmt: skip
    bounds = f" From {_bound(measure.low, '−∞')} to {_bound(measure.high, '∞')}."
    mean = (
        f"Unweighted mean over {len(choice.skills)} skills of: " if len(choice.skills) > 1 else ""
    )
    lead = (
        f'<p class="as-lead">{mean}{text(measure.meaning)} {direction(measure)}{bounds} '
        f'<a href="./about#{text(card.name)}">More</a></p>'
    )
    csv = download_link(
        board_csv(cells, view.entries, choice.board), file_name(cells, choice.board)
    )
    return section(
        f"{name} — {choice.title}",
        lead + table,
        aside=f"<span>{_how_many(len(cells), everyone, choice)}</span>{csv}",
    )


def _how_many(shown: int, everyone: int, choice: Choice) -> str:
    if not choice.filters.active:
        return count(everyone, "metric")
    return f"<b>{shown:,} of {count(everyone, 'metric')}</b>; ranks among those shown"


def _against_each_other(choice: Choice, view: View, ranked: Ranked) -> str:
    found = pairs(ranked)
    matrix = pair_matrix(ranked, found, view.entries, choice)
    if not matrix:
        return ""
    csv = download_link(
        pairs_csv(pairs(ranked, None), view.entries),
        file_name(ranked.cells, choice.board, "pairs"),
        "Download pairs",
    )
    return section("Metric against metric", matrix, aside=csv)


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


def _nobody(choice: Choice, everyone: int) -> str:
    asked = choice.query
    whole = BoardQuery(asked.benchmark, asked.skill, asked.measure).to_query()
    return (
        '<div class="as-empty"><h2>No metric fits the filter</h2>'
        f"<p>None of {count(everyone, 'metric')} on this board does. Search for less, or show all.</p>"
        f'<p><a class="as-button as-strong" href="./boards{text(whole)}">Show all metrics</a></p></div>'
    )


def _bound(value: float | None, open_end: str) -> str:
    return open_end if value is None else number(value, 0 if value == round(value) else 2)
