"""Tab of one benchmark: its verdict, choosers and ranking, and what changed since a revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote

from benchmarks.errors import TransientError
from benchmarks.released.bundle import is_bundled
from benchmarks.schema import Card
from leaderboard.publication.earlier_boards import Progress
from leaderboard.publication.entries import count_ranked
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.publication.metric_facts import metric_name
from leaderboard.publication.reader import SIMULATED, View
from leaderboard.ranking.slices import Basis
from leaderboard.rendering import render
from leaderboard.text import count, number
from leaderboard.views.addresses import metric_address, query_string
from leaderboard.views.benchmark_board import Ranking, data_of, ranking_of, title_of, verdict_of
from leaderboard.views.boards import (
    COSTS,
    KINDS,
    METADATA,
    TAB,
    Arrangement,
    BoardQuery,
    Choice,
    Filters,
    columns_of,
    every_key,
    key_of,
    layout_of,
    resolve,
)
from leaderboard.views.changes import (
    CHANGES,
    EARLIER,
    VIEWS,
    ChangesQuery,
    Comparison,
    board_of_query,
    changes_address,
    comparison,
    moved_address,
    moved_data,
    progress_of,
    with_earlier,
)
from leaderboard.views.citation import CitedAt
from leaderboard.views.figures import Option
from leaderboard.views.metrics import MetricsQuery
from leaderboard.web.benchmark_below import below_of, everything_published
from leaderboard.web.board_table import (
    Line,
    board_table,
    compare_pinned,
    direction,
    flags_legend,
    legend,
    order_note,
    pinned_links,
)
from leaderboard.web.components import Link, Pick, Scale, Tab, Values
from leaderboard.web.live import LiveContent
from leaderboard.web.metric_parts import kinds_of_data, metric_tabs
from leaderboard.web.page import Context

NOT_THERE = "Metrics"
"""Title where a query asks for what is not there."""


def benchmark_tab(context: Context, params: Mapping[str, str]) -> LiveContent:
    """What the tab shows: the ranking, or the changes between two revisions."""
    if params.get("view") in VIEWS:
        return changes(context, params)
    view = context.reader.view()
    choice = resolve(BoardQuery.from_params(params), view.boards)
    return LiveContent(
        board_html(choice, view, _earlier(context, choice.board.card)),
        query_string(choice.query.to_link()),
        title_of(choice) or NOT_THERE,
    )


def benchmark_below(context: Context, params: Mapping[str, str], site: str = "") -> LiveContent:
    """What stands below the ranking and takes longer: pairs, skills, published figures, programs."""
    if params.get("view") in VIEWS:
        return LiveContent("")
    view, at = context.reader.view(), CitedAt(context.reader.revision(), site)
    choice = resolve(BoardQuery.from_params(params), view.boards)
    return LiveContent(below_of(choice, view, at, context.hub))


def board_html(choice: Choice, view: View, earlier: Values | None = None) -> str:
    """The first part of a tab: verdict, choosers, ranking and its legend."""
    card = choice.board.card
    verdict = verdict_of(choice, view)
    common = {
        "card": card,
        "verdict": verdict,
        "tabs": metric_tabs(view, f"{TAB}{card.name}", ratings=SIMULATED if card.simulated else "",
                            filters=choice.filters),
        "picks": tuple(
            Pick(one.question, metric_name(view.entries[one.entry_id]), one.figure,
                 metric_address(one.entry_id))
            for one in verdict.answers
        ),
        "data_kinds": kinds_of_data(view, MetricsQuery(ratings=SIMULATED if card.simulated else "")),
        "remarks": choice.remarks,
        "earlier": earlier,
        "choosers": choosers(choice),
    }  # fmt: skip
    if choice.selector is None:
        return render(
            "metrics/benchmark_empty.html", **common, steps=_needed(card),
            published=everything_published(card),
        )  # fmt: skip
    ranking, layout = ranking_of(choice, view), layout_of(choice, view)
    measure = info(card, choice.selector.measure)
    name = choice.measure_title
    table = board_table(
        ranking.shown, view.entries, card, measure, f"{card.title}: {name}, {choice.title}",
        layout=layout, places=ranking.places,
        ranked=count_ranked(ranking.cells, view.entries),
    )  # fmt: skip
    entries = [view.entries[cell.entry_id] for cell in ranking.shown]
    return render(
        "metrics/benchmark.html", **common,
        choice=choice, ranking=ranking, table=table, measure_lead=_lead(choice),
        few=order_note(ranking.shown, card),
        legend=legend(ranking.cells, card, ranking.basis, within=ranking.within),
        flags=flags_legend(entries, card.name),
        pinned=pinned_links(layout, view.entries), compare=compare_pinned(layout, card),
        chips=_chips(choice), clear=Link("Clear all", _state(choice, filters=Filters()), "reset"),
        within=_state(choice, filters=replace(choice.filters, within=True)),
        without=_state(choice, filters=replace(choice.filters, within=False)),
        data=data_of(choice), n_shown=_counted(ranking),
        here=choice.query.to_link(),
    )  # fmt: skip


def choosers(choice: Choice) -> Values:
    """The controls of a board, set to what is shown."""
    board, card, query = choice.board, choice.board.card, choice.query
    arranged = choice.arranged
    kept = Arrangement(pins=arranged.pins, sort=arranged.sort, opened=arranged.opened)
    address = BoardQuery(query.benchmark, arranged=kept).to_link()
    among = board.every_selector()
    ranked = query.measure if not choice.skills else ""
    keys = [key for key in every_key(board) if key not in {ranked, *arranged.columns}]
    return {
        "hidden": tuple(parse_qsl(query_string(address)[1:])),
        "skills": tuple(
            Option(key, skill_title(card, key), key in choice.skills) for key in board.skills()
        ),
        "measures": tuple(
            Option(token(one), title(card, one, among), one == choice.selector)
            for one in choice.options
        ),
        "search": choice.filters.search,
        "kinds": tuple(
            Option(key, name, key == choice.filters.kind)
            for key, name in (("", "All entries"), *((k, n[:1].upper() + n[1:]) for k, n in KINDS.items()))
        ),
        "untrained": choice.filters.untrained,
        "columns": _column_options(choice, keys),
        "chosen": tuple(
            Link(one.title, _state(choice, columns=tuple(key for key in arranged.columns if key != one.key)),
                 f"column {one.key}")
            for one in columns_of(board, arranged.columns)
        ),
        "joined": arranged.to_params()["columns"],
    }  # fmt: skip


def _column_options(
    choice: Choice, keys: list[str]
) -> tuple[tuple[str, tuple[Option, ...]], ...]:  # fmt: skip
    """The columns that can be added: by skill, then costs and what is known of a metric."""
    board = choice.board
    named = {one.key: one.title for one in columns_of(board, keys)}
    groups: list[tuple[str, list[str]]] = []
    for skill in (None, *board.skills()):
        own = [key_of(selector, skill) for selector in board.selectors(skill)]
        groups.append((skill_title(board.card, skill), own))
    groups += [("Cost", list(COSTS)), ("Metric", list(METADATA))]
    return tuple(
        (group, tuple(Option(quote(key, safe="~:@/ "), named[key]) for key in own if key in named))
        for group, own in groups
        if any(key in named for key in own)
    )


def _state(
    choice: Choice, *, filters: Filters | None = None, columns: tuple[str, ...] | None = None
) -> str:
    """The address of the first page of the same board with other filters or columns."""
    arranged = replace(choice.arranged, page=1)
    if columns is not None:
        arranged = replace(arranged, columns=columns)
    query = replace(choice.query, arranged=arranged)
    return (query if filters is None else replace(query, filters=filters)).to_link()


def _chips(choice: Choice) -> tuple[Link, ...]:
    """Each active filter, with the address of the view without it."""
    return tuple(
        Link(label, _state(choice, filters=left), f"filter {label}")
        for label, left in choice.filters.parts()
    )


def _counted(ranking: Ranking) -> str:
    """How many metrics are shown."""
    if len(ranking.shown) == ranking.everyone:
        return count(ranking.everyone, "metric")
    return f"{len(ranking.shown):,} of {count(ranking.everyone, 'metric')}"


def _lead(choice: Choice) -> str:
    """What the measure is, in sentences."""
    if choice.selector is None:
        return ""
    measure = info(choice.board.card, choice.selector.measure)
    mean = f"Unweighted mean over {len(choice.skills)} skills of: " if choice.skills[1:] else ""
    low, high = (
        open_end if end is None else number(end, 0 if end == round(end) else 2)
        for end, open_end in ((measure.low, "−∞"), (measure.high, "∞"))
    )
    bounds = f"From {low} to {high}"
    return f"{mean}{measure.meaning} {bounds}; {direction(measure.higher_is_better)} is better."


def _earlier(context: Context, card: Card) -> Values | None:
    """The latest earlier revision of a benchmark; None where there was none."""
    try:
        tags = context.earlier.tags(card) if card.name in context.cards else ()
        found = progress_of(context, card.name, tags[0]) if tags else None
    except TransientError:
        return None  # The board of now is shown as it was last read, without this.
    if found is None:
        return None
    links = (
        Link(f"Changes since {tags[0]}", moved_address(card.name, tags[0]), "changes"),
        Link("the complete earlier board",
             changes_address(ChangesQuery(card.name, tags[0]), EARLIER), "earlier"),
    )  # fmt: skip
    return {"words": progress_words(found), "links": links}


@dataclass(frozen=True)
class Step:
    """A step to fill a board: words, and a command between them where there is one."""

    before: str = ""
    command: str = ""
    after: str = ""


def _needed(card: Card) -> tuple[Step, ...]:
    """What it takes to fill a board: the answers for scores, and the images too for code."""
    asked = [
        file
        for file in card.files
        if not file.optional and file.role != "prompts" and not is_bundled(file.path)
    ]
    fetch = f"python -m benchmarks fetch {card.name}"
    submit = Step(
        "", f"python -m evaluator submit scores.csv --kind scores --benchmark {card.name}",
        "takes a score for every pair.",
    )  # fmt: skip
    if all(file.role == "images" for file in asked):
        return submit, Step(
            "", fetch, "downloads prompts and images, to make scores or to run code."
        )
    supplied = tuple(dict.fromkeys(file.supplied for file in asked if file.supplied))
    steps = [Step(one) for one in supplied]
    if any(not file.supplied for file in asked):
        what = "the rest" if supplied else "its data"
        steps.append(Step("", fetch, f"downloads {what}; start Assay with --data."))
    run = " A worker runs submitted code where the images are."
    return (*steps, replace(submit, after=submit.after + run))


# Changes between two revisions

_MOST_NAMED = 40


def changes(context: Context, params: Mapping[str, str]) -> LiveContent:
    """The changes of a benchmark, or its earlier board."""
    shown = params.get("view", CHANGES)
    shown = shown if shown in VIEWS else CHANGES
    asked = ChangesQuery.from_params(params)
    found = comparison(context, asked)
    if found is None or found.movement is None or found.selector is None:
        card = context.cards.get(asked.benchmark)
        name = card.title if card else "this benchmark"
        html = render("metrics/changes_empty.html", name=name, board=board_of_query(asked))
        title_of = f"Changes of {name}" if card else "Metrics"
        return LiveContent(html, query_string(changes_address(asked)), title_of)
    progress = None if found.query.until else progress_of(context, found.card.name, found.then.tag)
    names = with_earlier(context.reader.view(), context.cards, context.earlier.tags)
    places = metric_tabs(
        context.reader.view(),
        f"{TAB}{found.card.name}",
        ratings=SIMULATED if found.card.simulated else "",
    )
    titles = [(name, context.cards[name].title) for name in names]
    html = changes_html(found, progress, shown, titles, places)
    address = changes_address(found.query, shown)
    return LiveContent(html, query_string(address), f"Changes of {found.card.title}")


def changes_html(
    found: Comparison,
    progress: Progress | None,
    shown: str = CHANGES,
    benchmarks: Sequence[tuple[str, str]] = (),
    places: Sequence[Tab] = (),
) -> str:
    """The changes between two revisions, or the earlier board."""
    card, moved, selector, query = found.card, found.movement, found.selector, found.query
    if moved is None or selector is None:
        raise ValueError("there is nothing to compare")
    measure = info(card, selector.measure)
    sides = (side for row in moved.moved for side in (row.then, row.now))
    ends = (end for one in sides for end in (one.value, one.low, one.high))
    scale = Scale.around(ends, measure.chance, places=(3.0, 157.0))
    tabs = [
        Tab(label, changes_address(query, view), view == shown, go=view)
        for view, label in ((CHANGES, "Changes"), (EARLIER, f"Board of {found.then.tag}"))
    ]
    table, lines, n_then = _earlier_table(found)
    return render(
        "metrics/changes.html", card=card, found=found, shown=shown, tabs=tabs, places=places,
        name=title(card, selector, found.options), measure=measure,
        higher=direction(measure.higher_is_better),
        skill=skill_title(card, query.skill or None),
        words=moved.summary(found.then.tag, found.now.tag),
        progress=progress_words(progress) if progress else [],
        rows=moved.moved, scale=scale, metric_address=metric_address, most_named=_MOST_NAMED,
        lists=[
            ("Came", "not on the earlier board", moved.came),
            ("Not here yet", "not evaluated again so far", moved.waiting),
            ("Left", "off the boards since", moved.left),
        ],
        board=board_of_query(query), data=moved_data(query),
        earlier=table, legend=lines, n_then=n_then,
        others=[
            Link(tag, changes_address(ChangesQuery(card.name, tag), EARLIER), f"board {tag}")
            for tag in found.tags if tag != found.then.tag
        ],
        hidden=parse_qsl(query_string(changes_address(ChangesQuery(card.name), shown))[1:]),
        benchmarks=[Link(label, moved_address(name), f"benchmark {name}")
                    for name, label in benchmarks if name != card.name],
        since=[Option(tag, tag, tag == query.since) for tag in found.tags],
        until=[Option("", "Now", not query.until),
               *(Option(tag, tag, tag == query.until) for tag in found.tags)],
        skills=[Option("", "All skills", not query.skill),
                *(Option(one, skill_title(card, one), one == query.skill) for one in found.skills)],
        measures=[Option(token(one), title(card, one, found.options), one == selector)
                  for one in found.options],
    )  # fmt: skip


def progress_words(progress: Progress) -> list[Line]:
    """How far the re-evaluation is; nothing where all that was there is there again."""
    if progress.done >= progress.of:
        return []
    said = []
    if progress.waiting:
        said.append(f"{count(progress.waiting, 'metric')} in the queue.")
    if progress.others_must:
        said.append(
            f"For {count(progress.others_must, 'metric')} only scores were sent, for the earlier "
            "revision: their submitters have been told what to send."
        )
    return [(f"{progress.done:,} of {progress.of:,} re-evaluated.", " ".join(said))]


def _earlier_table(found: Comparison) -> tuple[Values | None, list[Line], int]:
    """The whole earlier board by the same measure; None where it has no values by it."""
    then, selector = found.then, found.selector
    cells = then.board.cells(selector, found.query.skill or None) if selector else ()
    if selector is None or not cells:
        return None, [], 0
    card = then.board.card
    stated = [then.entries[cell.entry_id].provenance.get(card.name) for cell in cells]
    n_resamples = max((one.n_resamples for one in stated if one), default=0)
    table = board_table(
        cells, then.entries, card, info(card, selector.measure), f"{card.title}, {then.tag}"
    )
    return table, legend(cells, card, Basis.of_kept(cells, n_resamples)), len(cells)
