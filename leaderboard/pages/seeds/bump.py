"""Ranks of models with each seed, joined by lines: where lines cross, seeds disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaderboard.pages.shown.charts import OKABE_ITO
from leaderboard.pages.shown.markup import scroll_box, text
from leaderboard.text import MISSING, number

MOST_MODELS = 30
"""More lines than this cannot be followed."""
_ROW, _TOP, _NAME = 26, 30, 178
_WIDE, _NARROW, _FEW = 170, 96, 3
"""Between two seeds, where there are few or many."""
_LONGEST = 20

Ranks = Mapping[str, Sequence[tuple[int | None, float]]]
"""Model to its rank and mean score with each seed."""


def bump_chart(ranks: Ranks, names: Mapping[str, str], seeds: Sequence[str], label: str) -> str:
    """The chart; the order on the left is that with the first seed.

    Args:
        ranks: of each model with each seed.
        names: of the models, plain.
        seeds: what stands above each column.
        label: what is drawn, for people who hear the page.
    """
    ranked = {model: of for model, of in ranks.items() if any(rank for rank, _ in of)}
    shown = sorted(ranked, key=lambda model: [rank or 10**6 for rank, _ in ranked[model]])
    shown = shown[:MOST_MODELS]
    if not shown or len(seeds) < 2:
        return ""
    lowest = max(rank for model in shown for rank, _ in ranked[model] if rank)
    step = _WIDE if len(seeds) <= _FEW else _NARROW
    places = [_NAME + step * k for k in range(len(seeds))]
    width = 2 * _NAME + step * (len(seeds) - 1)
    height = _TOP + _ROW * lowest + 8
    heads = "".join(
        f'<text class="as-b-seed" x="{places[k]}" y="14" text-anchor="middle">{text(seed)}</text>'
        for k, seed in enumerate(seeds)
    )
    lines = "".join(
        _line(
            [(x, *of) for x, of in zip(places, ranked[model], strict=True)],
            names.get(model, model),
            list(OKABE_ITO.values())[place % len(OKABE_ITO)],
        )
        for place, model in enumerate(shown)
    )
    return (
        f'{scroll_box(label)}<svg class="as-bump" role="img" aria-label="{text(label)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">{heads}{lines}</svg></div>'
    )


def rank_table(ranks: Ranks, names: Mapping[str, str], seeds: Sequence[str], label: str) -> str:
    """The same as numbers: rank and mean of every model with every seed.

    Args:
        ranks: of each model with each seed.
        names: of the models, as HTML.
        seeds: the heads of the columns.
        label: what is listed.
    """
    heads = "".join(f'<th scope="col">{text(seed)}</th>' for seed in seeds)
    order = sorted(ranks, key=lambda model: [rank or 10**6 for rank, _ in ranks[model]])
    rows = "".join(
        f'<tr><th scope="row" class="as-c-metric">{names.get(model, text(model))}</th>'
        + "".join(
            f'<td><span class="as-range">{rank if rank is not None else MISSING}</span>'
            f"<small>{number(value)}</small></td>"
            for rank, value in ranks[model]
        )
        + "</tr>"
        for model in order
    )
    return (
        f'{scroll_box(label)}<table class="as-table as-matrix"><caption class="as-sr">{text(label)}'
        f'</caption><thead><tr><th scope="col" class="as-c-metric">Model</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _y(rank: int) -> int:
    return _TOP + _ROW * (rank - 1) + _ROW // 2


def _line(of: Sequence[tuple[int, int | None, float]], name: str, colour: str) -> str:
    """One model: where across, rank and mean with each seed."""
    points = [(x, _y(rank), rank, value) for x, rank, value in of if rank]
    path = " ".join(f"{x},{y}" for x, y, _, _ in points)
    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="4.5"><title>{text(name, limit=60)}: rank {rank}, mean '
        f"{number(value)}</title></circle>"
        for x, y, rank, value in points
    )
    first, last = points[0], points[-1]
    short = text(name, limit=_LONGEST)
    return (
        f'<g style="--c:{colour}"><polyline points="{path}"/>{dots}'
        f'<text x="{first[0] - 10}" y="{first[1] + 4}" text-anchor="end">{short} '
        f'<tspan class="as-b-rank">{first[2]}</tspan></text>'
        f'<text x="{last[0] + 10}" y="{last[1] + 4}"><tspan class="as-b-rank">{last[2]}</tspan> '
        f"{short}</text></g>"
    )
