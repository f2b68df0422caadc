"""View of the judges' robustness to a change of pixels that nobody sees."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.models.robustness import Robustness
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.shown.markup import badge, scroll_box, section
from leaderboard.text import MISSING, number

_HEADS = ("Metric", "Images", "Mean change", "Largest change", "Share of the spread",
          "Share of the smallest gap")  # fmt: skip


def robust_section(found: Sequence[Robustness]) -> str:
    """One row for each metric; empty where none scored changed images.

    Args:
        found: by every metric, trusted ones first.
    """
    shown = [one for one in found if one.n_images]
    if not shown:
        return ""
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    rows = "".join(_row(one) for one in shown)
    return section(
        "One-pixel change",
        '<p class="as-lead">Every channel below 255 is raised by one, which no person sees '
        "(Re-Thinking). A metric whose scores move by as much as the models differ by says little of "
        "which is better.</p>"
        f"{scroll_box('One-pixel change')}"
        '<table class="as-table as-m-facts"><caption class="as-sr">One-pixel change by metric'
        f"</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="as-legend"><b>Spread:</b> standard deviation of its scores of all images. '
        "<b>Smallest gap:</b> the smallest difference between two models that it tells apart.</p>",
        ident="one-pixel",
    )


def change_said(one: Robustness) -> str:
    """How large the mean change of a metric is, in words; empty where there is nothing to say."""
    if one.in_gaps is None:
        return ""
    return f"{_percent(one.in_gaps)} of its smallest gap between models"


def _row(one: Robustness) -> str:
    mark = badge("judges", "good") if one.judge.trusted else badge("for the curious")
    gap = _share(one.in_gaps)
    if one.in_gaps is not None and one.in_gaps >= 1:
        gap = f"{gap} {badge('as much as models differ', 'warn')}"
    values = (
        f"{one.n_images:,}", number(one.mean_change, 4), number(one.max_change, 4),
        _share(one.in_spreads), gap,
    )  # fmt: skip
    cells = "".join(
        f'<td data-label="{head}">{value}</td>'
        for head, value in zip(_HEADS[1:], values, strict=True)
    )
    return f'<tr><th scope="row">{judge_name(one.judge.entry_id, one.judge.title)} {mark}</th>{cells}</tr>'


def _share(share: float | None) -> str:
    return MISSING if share is None else _percent(share)


def _percent(share: float) -> str:
    """Two digits that matter, and never a power of ten."""
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"
