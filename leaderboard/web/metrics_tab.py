"""First tab of the Metrics place: every metric over all benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchmarks.errors import TransientError
from leaderboard.ledger.audit_log import Line as LogLine
from leaderboard.publication.index import NO_RESULTS
from leaderboard.publication.measure_names import info
from leaderboard.rendering import render
from leaderboard.text import count
from leaderboard.views.audit_log import ChronicleReader, recent_activity
from leaderboard.views.changes import with_earlier
from leaderboard.views.metrics import MetricsQuery, MetricsView, metrics_view, needs_index
from leaderboard.web.live import Shown
from leaderboard.web.metric_charts import cost_chart, cut, rank_chart, skill_chart
from leaderboard.web.metric_tabs import kinds_of_data, metric_tabs
from leaderboard.web.metrics_board import (
    board_of,
    charts_of,
    controls_of,
    legend_of,
    pages_of,
    picks_of,
    verdict_of,
)
from leaderboard.web.page import Context


def metrics_tab(context: Context, query: MetricsQuery) -> Shown:
    """What the tab shows."""
    view = context.reader.view()
    group = view.group(simulated=query.simulated)
    table = context.prepared_metrics.of(group)
    base = context.prepared.of(group) if needs_index(query, table) else None
    found = metrics_view(query, table, base)
    state = _canonical(found)
    chart = found.query.chart
    html = render(
        "metrics/overall.html",
        verdict=verdict_of(found),
        picks=picks_of(found),
        tabs=metric_tabs(view, "", simulated=query.simulated),
        data=kinds_of_data(view, query),
        simulated=any(board.card.simulated for board in group.boards.values()),
        chart=chart,
        charts=charts_of(found),
        cost=cost_chart(found.lead, table.costs(found.by), found.by) if not chart else None,
        cut=cut(found.lead) if not chart else "",
        lines=_lines(found),
        controls=controls_of(found),
        board=board_of(found),
        caption=_caption(found),
        shown=_shown(found),
        pages=pages_of(found),
        remarks=found.remarks,
        warnings=_warnings(found),
        data_href=_data(found),
        legend=legend_of(found),
        empty=not table.rows,
        nothing=table.rows and not found.kept,
        cite=cite(found),
        scales=_scales(found),
        left_out=_left_out(found),
        how=bool(table.indexed),
        query=state,
    )
    return Shown(html, state.to_query(), "Metrics")


def activity_part(context: Context, query: MetricsQuery) -> Shown:
    """What stands below the table and takes a look at the audit log."""
    view = context.reader.view().group(simulated=query.simulated)
    lines, earlier = _log(context)
    return Shown(
        render("metrics/activity.html", lines=recent_activity(view, lines, earlier),
               now=context.clock())
    )  # fmt: skip


def cite(found: MetricsView) -> str:
    """How the board is cited: what, of which revisions, and when it was made."""
    view = found.table.view
    revisions = ", ".join(
        f"{view.boards[name].card.title} {view.boards[name].card.revision[:12]}"
        for name in found.table.benchmarks
    )
    made = f", as of {view.built_at:%Y-%m-%d %H:%M} UTC" if view.built_at else ""
    version = f", snapshot {view.version[:12]}" if view.version else ""
    return f"Assay: metrics for text-to-image models{made}{version}. Revisions: {revisions}."


def _log(context: Context) -> tuple[Sequence[LogLine], Iterable[str]]:
    """The audit log and which earlier boards are kept; nothing during an outage."""
    view = context.reader.view()
    try:
        lines = ChronicleReader(context.store.public, context.clock).read().lines
        return lines, with_earlier(view, context.cards, context.earlier.tags)
    except TransientError:
        return (), ()


def _canonical(found: MetricsView) -> MetricsQuery:
    """The state with weights named as soon as one differs from those to begin with."""
    if found.weighing is None:
        return replace(found.query, weights="")
    weights = found.weighing.choice.to_query(found.weighing.base.boards)
    named = weights.partition("w=")[2].partition("&")[0]
    return replace(found.query, weights=named)


def _data(found: MetricsView) -> str:
    query = _canonical(found)
    given = [f"w={query.weights}"] if query.weights else []
    given += ["ratings=simulated"] if query.simulated else []
    return f"./v1/index{'?' + '&'.join(given) if given else ''}"


def _caption(found: MetricsView) -> str:
    key, down = found.sort
    ranking = found.ordered
    if ranking is not None:
        return f"Metrics by benchmark, in the order of {ranking.title}"
    titles = {column.key: column.title for column in found.every_column}
    return f"Metrics by benchmark, sorted by {titles.get(key, 'name')}, {'highest' if down else 'lowest'} first"


def _shown(found: MetricsView) -> str:
    """`26 metrics · 12 ranked`; with a filter how many are left."""
    n = len(found.table.rows)
    if found.query.filters:
        return f"{found.kept:,} of {count(n, 'metric')}"
    ranked = len(found.lead.ranked) if found.lead else 0
    return f"{count(n, 'metric')} · {ranked:,} ranked"


def _lines(found: MetricsView) -> object:
    if found.query.chart == "ranks":
        return rank_chart(found.table, found.lead)
    return skill_chart(found.table, found.lead) if found.query.chart == "skills" else None


def _warnings(found: MetricsView) -> tuple[tuple[str, str], ...]:
    """What misleads in the index under these weights."""
    if found.weighing is None:
        return ()
    base = found.weighing.base
    chosen = [base.boards[name] for name, weight in found.weighing.choice.weights.items() if weight]
    said = [
        (f"{board.card.title} shares its images with another benchmark.",
         "With a weight for both they count twice, and the intervals are too narrow.")
        for board in chosen if not board.card.simulated and board.why_weight
    ]  # fmt: skip
    said += [
        (f"No joint resamples of {board.card.title}.",
         f"{base.unjoined[board.card.name].capitalize()}, so metrics that have it are shown without an interval.")
        for board in chosen if board.card.name in base.unjoined
    ]  # fmt: skip
    return tuple(said)


def _scales(found: MetricsView) -> tuple[tuple[str, ...], ...]:
    """Scales of the benchmarks of the index: title, headline, chance, ceiling, what, source, note."""
    boards = found.table.index_boards
    base = found.weighing.base if found.weighing else None
    rows = []
    for name, board in boards.items():
        remark = base.unjoined.get(name, "") if base else ""
        notes = "; ".join(part for part in (board.why_weight, remark) if part)
        rows.append(
            (
                name, board.card.title, info(board.card, board.card.headline.measure).title,
                exact(board.scale.chance), exact(board.scale.ceiling), board.scale.ceiling_is,
                board.scale.source, f"Weight {board.weight:g}: {notes}." if notes else "",
            )
        )  # fmt: skip
    return tuple(rows)


def _left_out(found: MetricsView) -> tuple[tuple[str, str], ...]:
    """Benchmarks that are not in the index, with the reason; those without results last."""
    boards = found.table.view.boards
    pairs = [(boards[name].card.title, why) for name, why in found.table.left_out.items()]
    return tuple(sorted(pairs, key=lambda pair: pair[1] == NO_RESULTS))


def exact(value: float) -> str:
    """As a card states it: 0.696412 is not 0.696."""
    return f"{value:.6g}".replace("-", "−")
