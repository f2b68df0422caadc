"""All HTML of the boards page below its choosers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.released.bundle import is_bundled
from benchmarks.schema import Card
from leaderboard.pages.boards.as_published import as_published, everything_published
from leaderboard.pages.boards.chips import filter_chips
from leaderboard.pages.boards.heatmap import has_skills, heatmap
from leaderboard.pages.boards.pair_matrix import pair_matrix
from leaderboard.pages.boards.table import board_table, direction
from leaderboard.pages.shown.downloads import board_data, download_links
from leaderboard.pages.shown.markup import notice, page, section, text
from leaderboard.pages.shown.snippets import use_from_python
from leaderboard.publication.measure_names import info, title
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.slices import Ranked
from leaderboard.ranking.tiers import Basis, in_tiers, kept_in_tiers
from leaderboard.text import count, number
from leaderboard.views.boards import (
    Arrangement,
    Choice,
    Filters,
    layout_of,
    view_address,
)
from leaderboard.views.pairs import pairs

KEPT_ABOVE = 60
"""Entries of a board above which its headline is shown at once from the snapshot."""
SIMULATED = (
    "<b>Ratings on this board are simulated.</b> They do not come from people; the board shows "
    "how a protocol works, not how good a metric is."
)


def board_view(choice: Choice, view: View, earlier: str = "") -> str:
    """All of the page but what is made later: its head and its body, in one piece."""
    return board_head(choice, earlier) + board_body(choice, view)


def board_head(choice: Choice, earlier: str = "") -> str:
    """Title, banner, remarks and what the board is: what stands above the choosers.

    Args:
        choice: what is shown.
        earlier: what is said of an earlier revision, as HTML.
    """
    card = choice.board.card
    parts = [f"<h1>{text(card.title)}</h1>", _intro(card)]
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    return page([*parts, earlier])


def board_body(choice: Choice, view: View) -> str:
    """The ranking and its tests; what a board without results has to say.

    Args:
        choice: what is shown.
        view: what is published.
    """
    card = choice.board.card
    if choice.selector is None:
        return page([_empty(card), everything_published(card)])
    everyone = choice.entry_ids()
    if is_kept(choice):
        cells = kept_in_tiers(choice.slices()[0])
        return page([_ranking(choice, view, cells, kept_basis(cells, view, card), len(everyone))])
    shown = choice.filters.kept(everyone, view.entries, card)
    if shown is not None and not shown:
        return page([_nobody(choice, len(everyone))])
    ranked = in_tiers(view.orders.ranked(card, choice.slices(), shown))
    return page(
        [
            _ranking(choice, view, ranked.cells, Basis.of(ranked), len(everyone)),
            _against_each_other(choice, view, ranked),
        ]
    )


def is_kept(choice: Choice) -> bool:
    """Whether a ranking is shown as it stands in the snapshot, and its pairs are made later.

    It is the same ranking; to make it again, the draws of every run are read first.
    """
    return (
        choice.selector == choice.board.card.headline
        and not choice.skills
        and not choice.filters.active
        and len(choice.entry_ids()) > KEPT_ABOVE
    )


def kept_basis(cells: Sequence[Cell], view: View, card: Card) -> Basis:
    """What the ranks of a headline rest on, as its entries state it."""
    stated = (view.entries[cell.entry_id].provenance.get(card.name) for cell in cells)
    resamples = [one.n_resamples for one in stated if one is not None]
    tested = sum(cell.tier is not None for cell in cells)
    return Basis(max(resamples, default=0), tested * (tested - 1) // 2)


def skills_view(choice: Choice, view: View, site: str = "", hub: str = "") -> str:
    """The heatmap, what papers print, and programs: below the ranking, and made after it.

    Args:
        choice: what is shown.
        view: what is published.
        site: address of the site as the visitor sees it; empty where it is not known.
        hub: `OWNER/NAME` of the store on the Hub; empty where it is kept elsewhere.
    """
    if choice.selector is None:
        return ""
    against = ""
    if is_kept(choice):
        ranked = in_tiers(view.orders.ranked(choice.board.card, choice.slices()))
        against = _against_each_other(choice, view, ranked)
    # Of all entries, since the heatmap has rows for everybody, whatever skill is ranked.
    shown = choice.filters.kept(view.entries, view.entries, choice.board.card)
    by_skill = heatmap(choice.board, choice.selector, view, shown)
    aside = download_links(data_of(choice, "skills"), "values by skill")
    skills = section("By skill", by_skill, aside=aside) if by_skill else ""
    programs = use_from_python(choice, data_of(choice), site, hub)
    return _below(choice, against + skills) + (page([programs]) if programs else "")


def skills_placeholder(choice: Choice) -> str:
    """What stands in the place of `skills_view` until that is made."""
    if choice.selector is None:
        return ""
    wait = '<p class="as-wait" role="status">Testing the metrics within each skill…</p>'
    waiting = has_skills(choice.board, choice.selector)
    against = section("Metric against metric", wait) if is_kept(choice) else ""
    return _below(choice, against + (section("By skill", wait) if waiting else ""))


def _below(choice: Choice, by_skill: str) -> str:
    several = len(choice.skills) > 1
    printed = (
        ""
        if several or choice.selector is None
        else as_published(choice.board.card, choice.selector, choice.skill)
    )
    return page([by_skill, printed]) if by_skill or printed else ""


def _ranking(choice: Choice, view: View, cells: Sequence[Cell], basis: Basis, everyone: int) -> str:
    card, selector = choice.board.card, choice.selector
    if selector is None:
        return ""
    measure = info(card, selector.measure)
    name = title(card, selector, choice.board.every_selector())
    table = board_table(
        cells, view.entries, card, measure, f"{card.title}: {name}, {choice.title}",
        basis=basis, layout=layout_of(choice, view),
    )  # fmt: skip
    bounds = f" From {_bound(measure.low, '−∞')} to {_bound(measure.high, '∞')}."
    mean = (
        f"Unweighted mean over {len(choice.skills)} skills of: " if len(choice.skills) > 1 else ""
    )
    lead = (
        f'<p class="as-lead">{mean}{text(measure.meaning)} {direction(measure)}{bounds} '
        f'<a href="./about#{text(card.name)}">More</a></p>'
    )
    data = download_links(data_of(choice))
    every = "" if choice.filters.active else f"<span>{count(everyone, 'metric')}</span>"
    chips = filter_chips(choice, len(cells), everyone)
    return section(
        f"{name} — {choice.title}",
        lead + chips + table,
        aside=f"{every}{data}",
    )


def _against_each_other(choice: Choice, view: View, ranked: Ranked) -> str:
    found = pairs(ranked)
    matrix = pair_matrix(ranked, found, view.entries, choice)
    if not matrix:
        return ""
    data = download_links(data_of(choice, "pairs"), "pairs")
    return section("Metric against metric", matrix, aside=data)


def data_of(choice: Choice, part: str = "") -> str:
    """The address of the data of a ranking, or of a part of it; not escaped for HTML.

    Args:
        choice: what is shown.
        part: `pairs`, `skills`, or the ranking itself.
    """
    # The data are all rows, in the order that is shown; pins and pages are for the eye alone.
    asked = choice.arranged
    arranged = Arrangement() if part else Arrangement(asked.columns, sort=asked.sort)
    query = replace(choice.query, arranged=arranged)
    return board_data(choice.board.card.name, query.to_query(), part)


def _intro(card: Card) -> str:
    return (
        f'<p class="as-intro">{text(card.summary)} <span class="as-muted">Revision '
        f"{text(card.revision, limit=24)}; resampled by {text(card.cluster)}.</span></p>"
    )


def _empty(card: Card) -> str:
    """Why nobody is ranked, and what it takes to fill the board."""
    why = text(card.unfilled) or f"Nobody has been ranked on {text(card.title)} so far."
    return (
        f'<div class="as-empty"><h2>No metric published yet</h2><p>{why}</p>{_needed(card)}'
        '<p><a class="as-button as-strong" href="./submit">Submit a metric</a></p></div>'
    )


def _needed(card: Card) -> str:
    """What it takes to fill a board: the answers for scores, and the images too for code."""
    asked = [
        file
        for file in card.files
        if not file.optional and file.role != "prompts" and not is_bundled(file.path)
    ]
    if all(file.role == "images" for file in asked):
        return _steps([_scores_of(card), f"<code>python -m benchmarks fetch {text(card.name)}</code> "
                       "downloads prompts and images, to make scores or to run code."])  # fmt: skip
    supplied = tuple(dict.fromkeys(file.supplied for file in asked if file.supplied))
    fetched = any(not file.supplied for file in asked)
    steps = [text(one) for one in supplied]
    if fetched:
        steps.append(f"<code>python -m benchmarks fetch {text(card.name)}</code> downloads "
                     f"{'the rest' if supplied else 'its data'}; start Assay with "
                     "<code>--data</code>.")  # fmt: skip
    steps.append(f"{_scores_of(card)} A worker runs submitted code where the images are.")
    return _steps(steps)


def _scores_of(card: Card) -> str:
    return (
        f"<code>python -m evaluator submit scores.csv --kind scores --benchmark {text(card.name)}"
        "</code> takes a score for every pair."
    )


def _steps(steps: Sequence[str]) -> str:
    return f'<ol class="as-steps">{"".join(f"<li>{one}</li>" for one in steps)}</ol>'


def _nobody(choice: Choice, everyone: int) -> str:
    whole = view_address(replace(choice.query, filters=Filters()))
    return (
        f'{filter_chips(choice, 0, everyone)}<div class="as-empty"><h2>No metric fits the filter</h2>'
        f"<p>None of {count(everyone, 'metric')} on this board does. Search for less, or show all.</p>"
        f'<p><a class="as-button as-strong" href="{text(whole)}" data-go="reset">Show all metrics</a></p></div>'
    )


def _bound(value: float | None, open_end: str) -> str:
    return open_end if value is None else number(value, 0 if value == round(value) else 2)
