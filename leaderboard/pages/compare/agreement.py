"""Agreement between the metrics of a board, and disagreements of a pair, as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.comparison import plural
from benchmarks.schema import Card
from leaderboard.pages.compare.cluster_marks import scatter
from leaderboard.pages.shown.markup import page, scroll_box, section, submitted, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.publication.entries import Entry
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.reader import View
from leaderboard.text import MISSING, count, number
from leaderboard.views.addresses import items_address
from leaderboard.views.comparison import (
    MOST_PAIRS,
    ClusterReader,
    ClusterValues,
    Opponents,
    PairScoreReader,
)
from leaderboard.views.examples import answers_are_public

MOST_ALIKE = 12
"""Metrics of the heatmap: those compared, then the best of the board."""
MOST_CLUSTERS = 10
"""Clusters that are listed where two metrics disagree."""
_LONGEST_NAME = 60
_ALIKE = "Agreement between metrics"


@dataclass(frozen=True)
class Behind:
    """Reads what lies behind the values of a comparison.

    Attributes:
        clusters: the value of every cluster.
        items: the cases that clusters are in.
        scores: those of pairs, for measures without values of clusters.
        here: the cards of this installation; what one of them withholds is not shown either.
        lower: submission to those of its metrics whose smaller scores are better.
    """

    clusters: ClusterReader
    items: ItemReader
    scores: PairScoreReader
    here: Mapping[str, Card]
    lower: Callable[[], Mapping[str, Sequence[str]]]


def agreement_view(pair: Opponents, view: View, behind: Behind) -> str:
    """The heatmap of agreement and the clusters on which the first two disagree.

    Empty where there are not two metrics to compare, or several skills are averaged, whose
    clusters are not one set.
    """
    chosen, choice = pair.chosen, pair.choice
    if len(chosen) < 2 or choice.selector is None or len(choice.skills) > 1:
        return ""
    card = choice.board.card
    if not answers_are_public(card, behind.here):
        return page([section("Agreement", _withheld(card), ident="agreement")])
    wanted = tuple(dict.fromkeys((*chosen, *pair.options)))[:MOST_ALIKE]
    cells = {cell.entry_id: cell for cell in choice.slices()[0]}
    found = behind.clusters.values(card, [cells[entry] for entry in wanted], view.version)
    if found is None:
        return page([_by_pairs(wanted, pair, view, behind)])
    over = text(plural(card.cluster, len(found.clusters)))
    parts = [section(_ALIKE, heatmap(found, view.entries, over, chosen))]
    if {chosen[0], chosen[1]} <= set(found.entries):
        two = found.of(chosen[0], chosen[1])
        parts.append(section("Where they disagree", _disagreement(two, pair, view, behind)))
    return page(parts)


def _by_pairs(wanted: Sequence[str], pair: Opponents, view: View, behind: Behind) -> str:
    """The heatmap over scores of pairs, where the measure has no values of clusters."""
    card = pair.choice.board.card
    entries = [view.entries[entry] for entry in wanted]
    found = behind.scores.values(card, entries, behind.lower())
    if found is None:
        return section("Agreement", _none(card), ident="agreement")
    over = f"{count(len(found.clusters), 'pair')} of an image and a prompt"
    chosen = [entry for entry in pair.chosen if entry in found.entries]
    said = (
        f"<p>This measure has no value for a single {text(card.cluster)}. So this compares the "
        "published scores themselves, over pairs of the whole benchmark, whatever skill or split is "
        f"chosen; at most {MOST_PAIRS:,} pairs, the same of every metric, and of them those that "
        "both have.</p>"
    )
    return section(_ALIKE, said + heatmap(found, view.entries, over, chosen), ident="agreement")


def heatmap(
    found: ClusterValues, entries: Mapping[str, Entry], over: str, chosen: Sequence[str]
) -> str:
    """Kendall's tau-b between each two metrics as a coloured table with its values.

    Args:
        found: what is compared.
        entries: entry id to entry.
        over: how many of what it is, escaped.
        chosen: the metrics that a visitor chose.
    """
    taus = found.taus()
    off = taus[~np.eye(len(taus), dtype=bool)]
    low = float(np.nanmin(off)) if np.isfinite(off).any() else 0.0
    heads = "".join(
        f'<th scope="col" title="{text(entries[e].metric, limit=40)}">{i + 1}'
        f'<span class="as-sr"> {text(entries[e].metric, limit=40)}</span></th>'
        for i, e in enumerate(found.entries)
    )
    rows = "".join(
        f'<tr><th scope="row" class="as-c-metric"><span class="as-no">{i + 1}</span> '
        f"{metric_name(entries[e])}</th>"
        f"{''.join(_tau(taus[i, j], low, same=i == j) for j in range(len(taus)))}</tr>"
        for i, e in enumerate(found.entries)
    )
    few = len(chosen) < len(found.entries)
    others = " Those compared come first, then the best of the board." if few else ""
    return (
        f'{scroll_box("Agreement between metrics")}<table class="as-table as-heat as-taus">'
        '<caption class="as-sr">Kendall\'s tau-b between each two metrics</caption>'
        f'<thead><tr><th scope="col" class="as-c-metric">Metric</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        '<p class="as-legend">Kendall’s τ<sub>b</sub> between the values of two metrics over '
        f"{over}: 1 where both order them alike, 0 where "
        f"the order of one says nothing about the other’s. The stronger, the more alike.{others}</p>"
    )


def _tau(value: float, low: float, *, same: bool) -> str:
    if same:
        return '<td class="as-blank"><span class="as-sr">the same metric</span></td>'
    if not math.isfinite(value):
        return f'<td class="as-blank" title="One of the two is constant here">{MISSING}</td>'
    bottom = min(low, 0.0)
    strength = 100 * (value - bottom) / ((1 - bottom) or 1)
    return f'<td style="--t:{strength:.0f}%">{number(value, 2)}</td>'


def _disagreement(two: ClusterValues, pair: Opponents, view: View, behind: Behind) -> str:
    card, choice = pair.choice.board.card, pair.choice
    a, b = (submitted(view.entries[e].metric, limit=_LONGEST_NAME) for e in two.entries)
    drawn = tuple(text(view.entries[e].metric, limit=36) for e in two.entries)
    if not two.clusters:
        return f"<p>{a} and {b} have no {text(card.cluster)} in common.</p>"
    gaps = two.values[:, 0] - two.values[:, 1]
    # Stable, so that equal gaps keep the order of the data and a link shows the same list again.
    places = np.argsort(-np.abs(gaps), kind="stable")[:MOST_CLUSTERS]
    places = places[gaps[places] != 0.0]
    cases = _cases(card, behind)
    split = (choice.selector.split if choice.selector else None) or ""

    def items(case: str = "") -> str:
        return text(items_address(
            card.name, skill=choice.skill or "", split=split, a=two.entries[0], b=two.entries[1],
            show="disagreements", case=case,
        ))  # fmt: skip

    rows = "".join(
        f'<tr><th scope="row">{_cluster(two.clusters[i], cases, items)}</th>'
        f"<td>{number(two.values[i, 0])}</td><td>{number(two.values[i, 1])}</td>"
        f"<td><b>{_signed(gaps[i])}</b></td></tr>"
        for i in places
    )
    table = (
        f'{scroll_box("Largest disagreements")}<table class="as-table as-gaps">'
        f'<caption class="as-sr">The largest disagreements by {text(card.cluster)}</caption>'
        f'<thead><tr><th scope="col">{text(card.cluster.capitalize())}</th><th scope="col">{a}</th>'
        f'<th scope="col">{b}</th><th scope="col">Difference</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        if rows
        else f"<p>They have the same value on every {text(card.cluster)}.</p>"
    )
    return (
        f'<div class="as-two"><figure>{scatter(two, (drawn[0], drawn[1]), places)}<figcaption class="as-legend">'
        f"A point is a {text(card.cluster)}; above the dashed line {b} is higher, below it {a}. Rings: "
        f"those listed.</figcaption></figure><div>{table}"
        f'<p><a href="{items()}">All items on which they disagree</a></p></div></div>'
    )


def _cases(card: Card, behind: Behind) -> dict[str, str]:
    """Cluster to the first of its cases; empty where a benchmark shows none."""
    found = behind.items.cases(card)
    if found is None:
        return {}
    clusters = (found.clusters[place] for place in found.cluster_of)
    first: dict[str, str] = {}
    for cluster, case in zip(clusters, found.comparisons.case_ids, strict=True):
        first.setdefault(str(cluster), str(case))
    return first


def _cluster(cluster: str, cases: Mapping[str, str], items: Callable[[str], str]) -> str:
    name = submitted(cluster, limit=_LONGEST_NAME)
    if cluster not in cases:
        return name
    return f'<a href="{items(cases[cluster])}">{name}</a>'


def _signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)


def _withheld(card: Card) -> str:
    return (
        f"<p>The values of single {text(card.cluster)}s are not published, since the answers of "
        "this benchmark are not.</p>"
    )


def _none(card: Card) -> str:
    return (
        f"<p>This measure has no value for a single {text(card.cluster)}, and no scores of pairs are "
        "published for two of these metrics, so their agreement cannot be shown.</p>"
    )
