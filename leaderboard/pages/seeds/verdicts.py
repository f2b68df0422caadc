"""Verdicts on the order of models over seeds, metric by metric."""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchmarks.rethinking.measures import Interval, MetricStability
from leaderboard.models.seeds_types import JudgeSeeds
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.shown.markup import badge, scroll_box, submitted, text
from leaderboard.text import MISSING, count, interval, number

MOST_SWAPS = 20
_HEADS = (
    "Metric",
    "Order over seeds",
    "Tau",
    "Kendall's W",
    "Swapped pairs",
    "Resamples with one order",
)


def verdict(stability: MetricStability | None) -> str:
    """Whether one metric ranks the models alike with every seed, as a badge."""
    if stability is None or stability.over_seeds.stable is None:
        return badge("cannot tell", "plain", "Fewer than two models have two seeds")
    if stability.over_seeds.stable and math.isnan(stability.over_seeds.tau_mean):
        return badge("no order", "plain", "Every seed gives all models the same mean")
    if stability.over_seeds.stable:
        return badge("stable", "good", "Every seed gives the same order")
    return badge("not stable", "warn", "Some seeds give another order")


def verdict_table(found: tuple[JudgeSeeds, ...]) -> str:
    """One row for each metric.

    Args:
        found: by every metric, trusted ones first.
    """
    heads = "".join(f'<th scope="col">{text(head)}</th>' for head in _HEADS)
    rows = "".join(_row(one) for one in found)
    return (
        f"{scroll_box('Stability over seeds')}"
        '<table class="as-table as-m-facts"><caption class="as-sr">Stability of the order over seeds '
        f"</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="as-legend"><b>Tau:</b> mean of Kendall’s tau between each two seeds, and its '
        "smallest. <b>W:</b> agreement of all seeds, 1 where they give one order. Intervals: prompts "
        "resampled, which moves ranks too, so they may lie below a perfect value. <b>Swapped:</b> pairs "
        "of models that two seeds order in opposite ways.</p>"
    )


def swaps_list(stability: MetricStability, names: Mapping[str, str]) -> str:
    """The pairs that two seeds order in opposite ways; empty where there are none.

    Args:
        stability: of one metric.
        names: submission id to the name of its model, as HTML.
    """
    swaps = stability.over_seeds.swaps
    if not swaps:
        return ""
    models = stability.models
    lines = "".join(
        f"<li>{names.get(models[one.first], text(models[one.first]))} is higher with "
        f"{count(one.first_higher, 'seed')}, "
        f"{names.get(models[one.second], text(models[one.second]))} with {one.second_higher:,}"
        f"{f', equal with {one.tied:,}' if one.tied else ''}.</li>"
        for one in swaps[:MOST_SWAPS]
    )
    left = len(swaps) - MOST_SWAPS
    more = f"<li>{count(left, 'more pair')}.</li>" if left > 0 else ""
    return f'<ul class="as-disagree">{lines}{more}</ul>'


def _row(one: JudgeSeeds) -> str:
    judge, found = one.judge, one.stability
    mark = badge("judges", "good") if judge.trusted else badge("for the curious")
    name = f'<th scope="row">{judge_name(judge.entry_id, judge.title)} {mark}</th>'
    note = f'<span class="as-note">{submitted(one.note, limit=300)}</span>' if one.note else ""
    if found is None:
        return f'<tr>{name}<td data-label="{_HEADS[1]}" colspan="5">{verdict(None)}{note}</td></tr>'
    over = found.over_seeds
    left = f'<span class="as-note">{text(found.note, limit=300)}</span>' if found.note else ""
    share = MISSING if math.isnan(found.stable_share) else f"{100 * found.stable_share:.0f} %"
    values = (
        f"{verdict(found)}<span class=as-note>{count(len(found.models), 'model')}, "
        f"{count(len(found.seeds), 'seed')}</span>{left}{note}",
        f"{number(over.tau_mean)} {_range(found.tau_mean)}<span class=as-note>smallest "
        f"{number(over.tau_min)}</span>",
        f"{number(over.concordance.w)} {_range(found.kendall_w)}",
        f"{over.swapped:,} of {over.n_model_pairs:,}",
        share,
    )
    cells = "".join(
        f'<td data-label="{text(label)}">{value}</td>'
        for label, value in zip(_HEADS[1:], values, strict=True)
    )
    return f"<tr>{name}{cells}</tr>"


def _range(of: Interval) -> str:
    shown = interval(of.low, of.high)
    return f'<span class="as-ci">{shown}</span>' if shown else ""
