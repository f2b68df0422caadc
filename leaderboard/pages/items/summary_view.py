"""Summary of metrics over the selected cases: shares with intervals, and a histogram."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.pages.shown.markup import scroll_box, submitted, text
from leaderboard.text import count, interval, number
from leaderboard.views.examples import BINS, Share, Summary

_HEIGHT, _WIDTH = 56, 240


def summary_table(
    summaries: Sequence[Summary], names: Sequence[str], gap: Share | None, cluster: str
) -> str:
    """A row for each metric, and the difference of two.

    Args:
        summaries: of the metrics.
        names: theirs, as submitted.
        gap: share of the first less that of the second.
        cluster: what is resampled.
    """
    heads = ("Metric", "Comparisons right", "Cases all right", "Missing scores", "Cases by share")
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    rows = "".join(_row(one, name) for one, name in zip(summaries, names, strict=True))
    last = (
        f'<tr><th scope="row">Difference</th><td><b>{number(gap.value)}</b> '
        f'<span class="as-ci">{interval(gap.low, gap.high)}</span></td>'
        f"<td></td><td></td><td></td></tr>"
        if gap is not None
        else ""
    )
    return (
        f'{scroll_box("Metrics on these cases")}<table class="as-table as-item-sums">'
        '<caption class="as-sr">How each metric does on the cases that are looked at</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{rows}{last}</tbody></table></div>"
        f'<p class="as-legend">Share of comparisons in which the metric prefers what people prefer, '
        f"equal scores counting a half; 95 % intervals over resampled {text(cluster)}s. It helps to "
        "find examples and is no measure of the board, which may weigh pairs otherwise.</p>"
        f"{_bins_table(summaries, names)}"
    )


def _row(one: Summary, name: str) -> str:
    missing = (
        f'<span class="as-badge as-warn">{count(one.n_missing, "pair")}</span>'
        if one.n_missing
        else "none"
    )
    return (
        f'<tr><th scope="row" class="as-name">{submitted(name, limit=40)}</th>'
        f"<td><b>{number(one.right.value)}</b> "
        f'<span class="as-ci">{interval(one.right.low, one.right.high)}</span> '
        f'<span class="as-muted as-block">of {one.n_compared:,}</span></td>'
        f"<td>{one.n_all_right:,} of {one.n_cases:,}</td><td>{missing}</td>"
        f"<td>{histogram(one)}</td></tr>"
    )


def histogram(one: Summary) -> str:
    """How many cases have which share right, as bars; the numbers are in its label."""
    top, width = max(1, int(one.bins.max())), _WIDTH / BINS
    bars = "".join(
        f'<rect class="as-bar" x="{k * width + 1:.0f}" y="{_HEIGHT - 14 - h:.1f}" '
        f'width="{width - 2:.0f}" height="{h:.1f}"><title>{_bin(k)}: '
        f"{count(int(n), 'case')}</title></rect>"
        for k, n in enumerate(one.bins)
        if (h := (_HEIGHT - 16) * int(n) / top)
    )
    label = ", ".join(f"{_bin(k)}: {int(n)}" for k, n in enumerate(one.bins) if n)
    base = _HEIGHT - 14
    return (
        f'<svg class="as-hist" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="Cases by share right. {label or "none"}">{bars}'
        f'<line class="as-tick" x1="0" x2="{_WIDTH}" y1="{base}" y2="{base}"/>'
        f'<text x="0" y="{_HEIGHT - 2}">0 %</text>'
        f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 2}" text-anchor="middle">share right</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 2}" text-anchor="end">100 %</text></svg>'
    )


def _bins_table(summaries: Sequence[Summary], names: Sequence[str]) -> str:
    """What the histograms draw, in numbers."""
    columns = "".join(f'<th scope="col">{_bin(k)}</th>' for k in range(BINS))
    rows = "".join(
        f'<tr><th scope="row" class="as-name">{submitted(name, limit=40)}</th>'
        f"{''.join(f'<td>{int(n):,}</td>' for n in one.bins)}</tr>"
        for one, name in zip(summaries, names, strict=True)
    )
    return (
        '<details data-keep="item-bins"><summary>Cases by share right, in numbers</summary>'
        f'{scroll_box("Cases by share right")}<table class="as-table">'
        '<caption class="as-sr">Number of cases by the share of comparisons right in them</caption>'
        f'<thead><tr><th scope="col">Metric</th>{columns}</tr></thead><tbody>{rows}</tbody>'
        "</table></div></details>"
    )


def _bin(k: int) -> str:
    low, high = 100 * k // BINS, 100 * (k + 1) // BINS
    return f"{low}–{high} %"
