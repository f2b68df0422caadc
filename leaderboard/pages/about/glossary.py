"""The about page: what every figure means, from the benchmarks' own cards."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.schema import Card, MeasureInfo
from benchmarks.statistics.sign_flips import ALL_DRAWS, ENUMERATED, FIRST_DRAWS
from leaderboard.pages.shown.markup import badge, link, paragraphs, scroll_box, section, text
from leaderboard.pages.shown.ranking_marks import direction
from leaderboard.pages.shown.states_shown import legend
from leaderboard.ranking.rank_ranges import MAX_MISSING, MIN_CLUSTERS
from leaderboard.text import MISSING, number

_READING = f"""
<dl class="as-terms">
<dt>Interval</dt><dd>The figure in brackets is a 95 % interval from the values found when the
benchmark is drawn anew. It is BCa, which corrects for bias and skewness (Efron 1987), expanded for
few clusters (Hesterberg 2015); where that is undefined it is the percentile interval, which the
figure says on hover. Whole clusters are drawn with replacement (a prompt with all its images, a graph with
all its walks), since items of one cluster are not independent. The draws come from a seed that is
stored with the benchmark's revision and serves all metrics, so that anyone can repeat them.</dd>
<dt>Rank range</dt><dd>Each draw ranks all metrics. “2–5” says that in 95 % of the draws the metric
came out between second and fifth. Ranks are those among the metrics shown: a filter
ranks them anew, and of several skills the unweighted mean is ranked.</dd>
<dt>P(best)</dt><dd>The share of the draws in which a metric has the best value of all shown. Equal
best values share a draw, so the column adds up to 100 %.</dd>
<dt>Tier</dt><dd>Each two metrics shown are tested against each other: were they equally good, the
sign of their difference on any part of the clusters could as well be the other, so signs are flipped
at random and the p-value is the share of flips that give a difference as large. All p-values of a
ranking are corrected together by Holm's method (1979): were no two metrics different, a false finding
would come up in 5 % of rankings at most. Down the ranking, a metric opens a new tier if it differs
significantly from a metric of the current one, so no two of a tier differ. Within a tier the order
says little.</dd>
<dt>Metric against metric</dt><dd>The same tests, pair by pair. With up to {ENUMERATED} blocks of
clusters that differ every pattern of signs is looked at and p is exact; else it comes from
{FIRST_DRAWS:,} or {ALL_DRAWS:,} patterns drawn from the stored seed, or is an upper bound below what those can show.</dd>
<dt>Bold in a heatmap</dt><dd>The best metric of a skill, and those that the same test does not tell
apart from it. All pairs of metrics in all columns are corrected together by Benjamini and Hochberg's
method (1995): of the differences found, 5 % are expected to be found wrongly. Skills without tests
fall back on rank ranges and say so.</dd>
<dt>Too few items to order</dt><dd>With fewer than {MIN_CLUSTERS} clusters a draw says next to
nothing. Values are shown, ranks are not.</dd>
<dt>Missing scores</dt><dd>Where a metric gave no score, the number of missing pairs is shown beside
it. An entry that lacks more than {MAX_MISSING:.0%} of them has no rank. A metric that was not run on a benchmark has “{MISSING}” there, never a zero.</dd>
<dt>Scores as submitted</dt><dd>A file of scores computed elsewhere. We judge it and cannot re-run
it.</dd>
<dt>Trained on this benchmark</dt><dd>The author says that the metric has seen these data, wholly or
in part. It keeps its place, with this mark: read it with that in mind.</dd>
<dt>Simulated</dt><dd>Labels or ratings of such a benchmark were made by a program, to show and test
the platform. Nothing about the quality of a metric follows from them. Every page says so.</dd>
</dl>
"""


_PRINTED = """
<p>Below a ranking stand the figures that papers print for the same measure. They were not computed
here and take part in no ranking. Where a printed figure does not follow from the released data, the
<a href="./errata">errata</a> show printed beside recomputed, with the command that recomputes it.</p>
"""


def about(cards: Iterable[Card]) -> list[str]:
    """The sections of the about page."""
    known = tuple(cards)
    contents = " · ".join(
        f'<a href="./about#{text(card.name)}">{text(card.title)}</a>' for card in known
    )
    return [
        "<h1>About Assay</h1>",
        section("How to read a board", _READING, ident="reading"),
        section("Printed figures", _PRINTED, ident="printed"),
        section("Benchmarks and their measures", f'<p class="as-intro">{contents}</p>'),
        *(_benchmark(card) for card in known),
        section("States of a submission", legend(), ident="states"),
    ]


def _benchmark(card: Card) -> str:
    rows = "".join(_measure(key, info, card) for key, info in card.measures.items())
    links = " · ".join(link(address, name) for name, address in card.links.items())
    facts = [f"revision <code>{text(card.revision)}</code>", f"resampled by {text(card.cluster)}"]
    facts += [f"licence: {text(card.licence)}"] if card.licence else []
    cite = f'<p class="as-muted">{text(card.citation)}</p>' if card.citation else ""
    table = (
        f'{scroll_box("Measures of " + card.title)}<table class="as-table as-measures">'
        '<thead><tr><th scope="col">Measure</th><th scope="col">What it says</th>'
        '<th scope="col">Range</th><th scope="col">Chance</th><th scope="col">Source</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    return section(
        card.title,
        f'<p class="as-muted">{"; ".join(facts)}</p>{paragraphs(card.description)}{cite}'
        f"<p>{links}</p>{table}",
        aside=badge("simulated ratings", "warn") if card.simulated else "",
        ident=card.name,
    )


def _measure(key: str, info: MeasureInfo, card: Card) -> str:
    headline = badge("headline", "info") if key == card.headline.measure else ""
    low = "−∞" if info.low is None else number(info.low, 0)
    high = "∞" if info.high is None else number(info.high, 0)
    chance = MISSING if info.chance is None else number(info.chance, 2)
    return (
        f'<tr><th scope="row">{text(info.title)} {direction(info)} {headline}</th>'
        f'<td>{text(info.meaning)}</td><td data-label="Range">{low} to {high}</td>'
        f'<td data-label="Chance">{chance}</td>'
        f'<td data-label="Source" class="as-muted">{text(info.source)}</td></tr>'
    )
