"""All HTML of the index page but its controls."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.schema import Card
from leaderboard.pages.index.marks import Strips
from leaderboard.pages.index.table import partial_table, ranked_table
from leaderboard.pages.index.tiers_said import about_tiers
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.flags import flags_legend
from leaderboard.pages.shown.markup import badge, notice, page, scroll_box, section, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.publication.index import NO_RESULTS, IndexBase, IndexBoard, Ranked
from leaderboard.publication.measure_names import info
from leaderboard.text import count
from leaderboard.views.index import IndexChoice, in_order

HEADER = (
    '<header class="as-hero"><h1>One index over benchmarks</h1>'
    "<p>The headline of every benchmark, rescaled so that <b>0 is a guess</b> and <b>1 the "
    "benchmark’s ceiling</b>, then averaged with weights that you may change. Only metrics with "
    "results on every benchmark of the index have a rank. Simulated boards stand apart: "
    '<a href="./index">real data</a> · <a href="./index?ratings=simulated">simulated</a>.</p></header>'
)

_MOST_NAMED = 20
_FORMULA = """
<p class="as-formula" tabindex="0">r<sub>k</sub> = (value − chance<sub>k</sub>) / (ceiling<sub>k</sub> −
chance<sub>k</sub>) &emsp; index = Σ w<sub>k</sub> r<sub>k</sub> / Σ w<sub>k</sub></p>
<p>The sums go over the benchmarks a metric has; one that it lacks is in neither sum and never
counts as zero. <b>Values are not clipped</b>: below 0 is worse than a guess, above 1 beyond the
stated ceiling. Rescaling between a guess and people is the normalised score of Mnih et al. 2015.</p>
<p><b>Interval and rank range.</b> Resample b of the index joins resample b of all its benchmarks;
all metrics share the resamples of a benchmark, so that differences between them are paired. The
interval holds the middle 95 % of the resampled values (percentile interval), the rank range the
middle 95 % of the resampled ranks.
<b>P(best)</b> is the share of the resamples in which a metric has the highest index.</p>
<p><b>Tiers.</b> A value is the sum of the contributions of its clusters, so the difference of two
indices is one sum over the clusters of all benchmarks. Were two metrics exchangeable, each term could
as well have the other sign: the boards’ paired permutation test, stratified by benchmark. Because
weights may change at any moment no signs are drawn; the p-value is the Gaussian bound of Bentkus and
Dzindzalieta 2015, 3.178 · P(|Z| ≥ |difference| / √Σ d²), which that of the test never exceeds. Then
Holm’s correction over all pairs, 5 %, and the boards’ rule: a metric opens a new tier if it differs
from one of the tier above. Metrics that differ on single benchmarks in opposite directions are tested
with less power, never with more.</p>
<p><b>Borda</b> counts how many others a metric beats on each benchmark, not by how much: the share
of the weighted comparisons that it wins, ties half, and the rank range of that share.</p>
<p><b>What a metric lacks.</b> Where a metric was not run, has no value or lacks too many scores for a
rank on the board, it lacks the benchmark. Some benchmarks are harder than others, so figures over
different benchmarks are not compared, and no such metric has a rank.</p>
"""


def index_view(base: IndexBase, strips: Strips, choice: IndexChoice) -> str:
    """Remarks and both tables under the chosen weights."""
    remarks = [notice(text(r, limit=300), "info", role="status") for r in choice.remarks]
    if base.comparison is None:
        return page([*remarks, _nothing()])
    if not any(choice.weights.values()):
        said = "All weights are 0. Give a weight to at least one benchmark."
        return page([*remarks, notice(said, "warn", role="status")])
    found = in_order(base.standings(choice.weights), choice, base)
    whole = [one for one in found if one.standing.present and not one.standing.missing]
    part = [one for one in found if one.standing.present and one.standing.missing]
    none = [one for one in found if not one.standing.present]
    data = f'<div class="as-aside as-i-data">{download_links(index_data(base, choice))}</div>'
    parts = [*remarks, *_warnings(base, choice), data, _whole(whole, choice, base, strips)]
    if part:
        if not whole:  # Those of one benchmark stand together: nothing else can be compared.
            part.sort(key=lambda one: one.standing.present)
        those = " or with those above" if whole else ""
        lead = (
            '<p class="as-lead">Figures that rest on different benchmarks cannot be compared with '
            f"each other{those}. What is missing is left out, never zero.</p>"
        )
        table = partial_table(part, choice, base, strips) + _flags_note(part, base)
        parts.append(
            section(
                "Without a rank", lead + table, aside=f"<span>{count(len(part), 'metric')}</span>"
            )
        )
    return page([*parts, _without_any(none)])


def index_data(base: IndexBase, choice: IndexChoice) -> str:
    """The address of the data of the index under the chosen weights."""
    return f"./v1/index{choice.to_query(base.boards)}"


def how_made(base: IndexBase) -> str:
    """The foldable part: formula, scales with their sources, and what is left out."""
    rows = "".join(_scale_row(board, base) for board in base.boards.values())
    table = (
        f'{scroll_box("Scales")}<table class="as-table as-scales"><thead><tr>'
        '<th scope="col">Benchmark</th><th scope="col">Headline</th><th scope="col">Chance</th>'
        '<th scope="col">Ceiling</th><th scope="col">What the ceiling is</th>'
        '<th scope="col">Source</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    body = _FORMULA + (table if rows else "") + _left_out(base)
    return page(
        [f'<details class="as-how"><summary>How the index is made</summary>{body}</details>']
    )


def _whole(rows: Sequence[Ranked], choice: IndexChoice, base: IndexBase, strips: Strips) -> str:
    weighted = sum(weight > 0 for weight in choice.weights.values())
    on = f"on {'the' if weighted == 1 else 'all'} {count(weighted, 'benchmark')}"
    if not rows:
        said = (
            f"<b>No metric has results {on}, so nobody has a rank.</b> A benchmark with weight 0 "
            "is left out: the fewer are chosen, the more metrics have them all."
        )
        return notice(said, "info", role="status")
    legend = (
        '<p class="as-legend">Dot: index. Line: 95 % interval. Dashes: a guess. Bars: the rescaled '
        "headline of each benchmark with its interval, from a guess (line below) to the ceiling "
        "(dots above); figures on hover, faint where the weight is 0.</p>"
        f'<p class="as-legend">{about_tiers(rows)}</p>'
        f"{_flags_note(rows, base)}"
    )
    aside = f"<span>{count(len(rows), 'metric')} {on}</span>"
    return section("Ranked", ranked_table(rows, choice, base, strips) + legend, aside=aside)


def _flags_note(rows: Sequence[Ranked], base: IndexBase) -> str:
    said = flags_legend(entry for row in rows for entry in base.sent[row.who])
    return f'<p class="as-legend">{" ".join(said)}</p>' if said else ""


def _without_any(rows: Sequence[Ranked]) -> str:
    """Metrics that have none of the weighted benchmarks, by name."""
    if not rows:
        return ""
    names = ", ".join(metric_name(row.entry) for row in rows[:_MOST_NAMED])
    more = (
        f" and {count(len(rows) - _MOST_NAMED, 'more', 'more')}" if len(rows) > _MOST_NAMED else ""
    )
    return f'<p class="as-legend">On no benchmark that has a weight: {names}{more}.</p>'


def _warnings(base: IndexBase, choice: IndexChoice) -> list[str]:
    chosen = [base.boards[name] for name, weight in choice.weights.items() if weight]
    found = []
    simulated = [board.card for board in chosen if board.card.simulated]
    if simulated:
        which = "all" if len(simulated) == len(chosen) else _titles(simulated)
        found.append(
            f"<b>Simulated ratings are in this index ({which}).</b> They do not come from people; "
            "it shows how the index works, not how good a metric is."
        )
    inside = [b.card for b in chosen if not b.card.simulated and b.why_weight]
    if inside:
        found.append(
            f"<b>{_titles(inside)} shares its images with another benchmark.</b> With a weight for "
            "both, they count twice and the intervals are too narrow."
        )
    unjoined = [b.card for b in chosen if b.card.name in base.unjoined]
    found += [
        f"<b>No joint resamples of {text(card.title)}</b>: {base.unjoined[card.name]}, so metrics "
        "that have it are shown without an interval."
        for card in unjoined
    ]
    return [notice(said, "warn") for said in found]


def _scale_row(board: IndexBoard, base: IndexBase) -> str:
    card, scale = board.card, board.scale
    remark = base.unjoined.get(card.name, "")
    notes = "; ".join(part for part in (board.why_weight, remark) if part)
    mark = f'<span class="as-note">Weight {board.weight:g}: {text(notes)}.</span>' if notes else ""
    simulated = f" {badge('simulated ratings', 'warn')}" if card.simulated else ""
    return (
        f'<tr><th scope="row"><a href="./boards?benchmark={text(card.name)}">{text(card.title)}</a>'
        f"{simulated}{mark}</th>"
        f'<td data-label="Headline">{text(info(card, card.headline.measure).title)}</td>'
        f'<td data-label="Chance">{_exact(scale.chance)}</td>'
        f'<td data-label="Ceiling">{_exact(scale.ceiling)}</td>'
        f'<td data-label="What the ceiling is">{text(scale.ceiling_is)}</td>'
        f'<td data-label="Source" class="as-muted">{text(scale.source)}</td></tr>'
    )


def _left_out(base: IndexBase) -> str:
    waiting = [name for name, why in base.left_out.items() if why == NO_RESULTS]
    others = "".join(
        f"<li>{text(base.titles[name])}: {text(why)}.</li>"
        for name, why in base.left_out.items()
        if why != NO_RESULTS
    )
    parts = []
    if others:
        parts.append(f"<h3>Left out</h3><ul>{others}</ul>")
    if waiting:
        names = ", ".join(text(base.titles[name]) for name in waiting)
        parts.append(f"<p>No metric published yet, so not in the index: {names}.</p>")
    return "".join(parts)


def _nothing() -> str:
    return (
        '<div class="as-empty"><h2>No index yet</h2><p>It takes a published metric on a benchmark '
        "whose card states chance and ceiling.</p>"
        '<p><a class="as-button as-strong" href="./submit">Submit a metric</a></p></div>'
    )


def _titles(cards: Sequence[Card]) -> str:
    return ", ".join(text(card.title) for card in cards)


def _exact(value: float) -> str:
    """As the card states it: 0.696412 is not 0.696."""
    return f"{value:.6g}".replace("-", "−")
