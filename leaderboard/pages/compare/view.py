"""All HTML of the page that compares two metrics, below its choosers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

from benchmarks.comparison import (
    Compared,
    correction_words,
    effect_words,
    evidence_words,
    paired_words,
    plural,
    units_of,
    verdict,
)
from benchmarks.schema import Card
from benchmarks.statistics.resampling import seed_of
from leaderboard.pages.compare.marks import tally_bar
from leaderboard.pages.compare.table import forest, measure_table, pairs_table
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.flags import flags_legend
from leaderboard.pages.shown.markup import notice, page, section, submitted, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.ranking_marks import SIMULATED, badges
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.publication.measure_names import title
from leaderboard.publication.reader import View
from leaderboard.ranking.comparing import NO_CONTRIBUTIONS
from leaderboard.text import count, number
from leaderboard.views.boards import Arrangement, Choice
from leaderboard.views.comparison import Opponents, Shown, several, shown

_LONGEST_NAME = 60
_UNPUBLISHED = (
    "<b>Nothing to test with.</b> The resamples and contributions behind these values are not "
    "published, so there are values, but no interval of their difference and no test."
)


HEADER = (
    '<div class="as-page"><h1>Metric against metric</h1><p class="as-intro">Two to four metrics on '
    "one benchmark: by how much they differ, how sure that is, and where they disagree.</p></div>"
)


def compare_view(pair: Opponents, view: View) -> str:
    """Remarks, then the comparison of two metrics, or of each two of several."""
    card = pair.choice.board.card
    parts = [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in pair.remarks]
    if pair.choice.selector is None:
        return page([*parts, _nothing("No metric published yet", _empty_board(card))])
    if len(pair.options) < 2:
        why = f"{card.title} has {count(len(pair.options), 'metric')} by this measure so far."
        return page([*parts, _nothing("There is no pair to compare", text(why))])
    if pair.a is None or pair.b is None:
        said = "Choose a metric in each of the two lists above."
        return page([*parts, _nothing("Choose two metrics", said)])
    if pair.a == pair.b:
        name = submitted(view.entries[pair.a].metric, limit=_LONGEST_NAME)
        said = f"Both are {name}. Choose another metric in one of the two lists above."
        return page([*parts, _nothing("The same metric twice", said)])
    if len(pair.chosen) > 2:
        return page([*parts, *_several(pair, view)])
    rows = shown(pair.choice, pair.a, pair.b, view)
    parts.append(_head(pair, rows, view))
    if rows.skills:
        parts.append(section("By skill", forest(rows, pair.choice), ident="skills"))
    if rows.measures:
        body = measure_table(rows, pair.choice)
        parts.append(section("By other measures", body, ident="measures"))
    return page([*parts, _about(rows, card)])


def _several(pair: Opponents, view: View) -> list[str]:
    """Values of each metric, and the tests of each two."""
    choice, card = pair.choice, pair.choice.board.card
    found = several(choice, pair.chosen, view)
    link = f'<a class="as-button" href="./boards{text(_board_query(choice))}">To the board</a>'
    heading = f"{card.title}: {_measure_title(choice)} — {choice.title}"
    values = {
        entry: value
        for two, row in zip(found.pairs, found.rows, strict=True)
        for entry, value in zip(two, (row.value_a, row.value_b), strict=True)
    }
    body = _values([(str(i), e, values[e]) for i, e in enumerate(pair.chosen)], pair, view)
    unpublished = all(row.untested == NO_CONTRIBUTIONS for row in found.rows)
    return [
        section(heading, (notice(_UNPUBLISHED, "warn") if unpublished else "") + body,
                aside=link + _data(pair), ident="verdict"),
        section("Each two", pairs_table(found), ident="pairs"),
    ]  # fmt: skip


def _data(pair: Opponents) -> str:
    return download_links(f"./v1/compare{pair.query.to_query()}", "comparison")


def _board_query(choice: Choice) -> str:
    return replace(choice.query, arranged=Arrangement()).to_query()


# The chosen measure ---------------------------------------------------------------------------


def _head(pair: Opponents, rows: Shown, view: View) -> str:
    choice, row = pair.choice, rows.chosen
    entries = [view.entries[entry] for entry in (pair.a or "", pair.b or "")]
    a, b = (submitted(entry.metric, limit=_LONGEST_NAME) for entry in entries)
    safe = replace(row, unit=text(row.unit))
    said = f'<p class="as-verdict">{verdict(safe, f"<b>{a}</b>", f"<b>{b}</b>")}.</p>'
    of = correction_words(row, "pairs of the whole board, without filters")
    tests = "; ".join(part for part in (evidence_words(row), of) if part)
    facts = [("Test", tests), ("On the units", paired_words(row)), ("Effect", effect_words(row))]
    listed = "".join(f"<dt>{name}</dt><dd>{_subscript(fact)}</dd>" for name, fact in facts if fact)
    body = said + _no_draws(row) + _two_values(pair, row, view) + _tally(row, a, b)
    body += f'<dl class="as-facts">{listed}</dl>'
    link = f'<a class="as-button" href="./boards{text(_board_query(choice))}">To the board</a>'
    heading = f"{choice.board.card.title}: {_measure_title(choice)} — {choice.title}"
    return section(heading, body, aside=link + _data(pair), ident="verdict")


def _subscript(fact: str) -> str:
    return text(fact).replace("d_z", "d<sub>z</sub>")


def _two_values(pair: Opponents, row: Compared, view: View) -> str:
    sides = [("a", pair.a or "", row.value_a), ("b", pair.b or "", row.value_b)]
    return _values(sides, pair, view)


def _values(sides: Sequence[tuple[str, str, float]], pair: Opponents, view: View) -> str:
    """Metrics with their own values and what a reader must know of them.

    Args:
        sides: for each metric the key of its colour, its entry id and its value.
        pair: where they are compared.
        view: has the entries.
    """
    card = pair.choice.board.card
    cells = {cell.entry_id: cell for of in pair.choice.slices() for cell in of}
    lines = [
        f'<li><span class="as-key as-key-{side}" aria-hidden="true"></span>'
        f"{metric_name(view.entries[entry_id])}{signed_by(view.entries[entry_id])} "
        f"<b>{number(value)}</b> "
        f'<span class="as-badges">{badges(view.entries[entry_id], cells[entry_id], card)}</span></li>'
        for side, entry_id, value in sides
    ]
    said = " ".join(flags_legend([view.entries[e] for _, e, _ in sides], {card.name}))
    legend = f'<p class="as-legend">{said}</p>' if said else ""
    return f'<ul class="as-sides">{"".join(lines)}</ul>{legend}'


def _tally(row: Compared, a: str, b: str) -> str:
    if row.uncounted:
        return f'<p class="as-legend">Better, tied, worse: {text(row.uncounted, limit=200)}.</p>'
    if not row.tally:
        return ""
    better, tied, worse = row.tally
    bar = tally_bar(row, row.metric_a, row.metric_b)
    return (
        f'<div class="as-tallied">{bar}<p class="as-legend">{a} better on '
        f"<b>{text(plural(row.unit, better))}</b>, tied on <b>{tied:,}</b>, "
        f"{b} better on <b>{worse:,}</b>.</p></div>"
    )


def _no_draws(row: Compared) -> str:
    return notice(_UNPUBLISHED, "warn") if row.untested == NO_CONTRIBUTIONS else ""


# Around it ------------------------------------------------------------------------------------


def _about(rows: Shown, card: Card) -> str:
    row = rows.chosen
    tested = row.correction is not None
    before = (
        f", before the board's correction over its {count(row.n_tests, 'pair')}" if tested else ""
    )
    drawn = f"from {rows.n_resamples:,} joint resamples" if rows.n_resamples else "not available"
    return section(
        "How this is computed",
        f"<p>Intervals: 95 %, bias-corrected and accelerated, {drawn} of the {text(card.cluster)}s, "
        "which all metrics share. Test: the signs of the two metrics' differences are flipped "
        f"{text(row.unit)} by {text(row.unit)}; it is the "
        "test of the boards. Better, tied and worse count the "
        f"{text(units_of(row.unit))} to which one metric owes more of its value "
        "than the other; paired t and Wilcoxon's test are made on the same contributions. "
        f"Seed {seed_of(card.name, card.revision)}.</p>"
        f"<p>From the published scores, the same figures{before}: <code>python -m evaluator compare "
        f"{text(card.name)} --scores A.scores.parquet B.scores.parquet</code></p>",
        ident="how",
    )


def _measure_title(choice: Choice) -> str:
    if choice.selector is None:
        return ""
    return title(choice.board.card, choice.selector, choice.board.every_selector())


def _nothing(heading: str, body: str) -> str:
    return f'<div class="as-empty"><h2>{heading}</h2><p>{body}</p></div>'


def _empty_board(card: Card) -> str:
    return (
        f"There is nothing to compare on {text(card.title)} so far. "
        f'<a href="./boards?{urlencode({"benchmark": card.name})}">To the board</a>'
    )
