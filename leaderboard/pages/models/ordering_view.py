"""Agreement of the judges' order of other models with that of people."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.schema import Card
from leaderboard.models.orderings import ModelOrdering, ModelOrderings
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.shown.markup import badge, scroll_box, section, text
from leaderboard.text import MISSING
from leaderboard.views.addresses import board_address

LEAD = (
    "Where people rated images of several models, each two models are related by their ratings "
    "(higher, lower or equal: Wilcoxon, p < 0.001), and so they are by the metric’s scores. Counted "
    "are the pairs that it relates as people do."
)


def orderings_section(
    found: ModelOrderings, judges: Mapping[str, str], cards: Mapping[str, Card]
) -> str:
    """Metrics down, benchmarks across.

    Args:
        found: all records.
        judges: entry id of each metric to its name.
        cards: of the boards of metrics, by name.
    """
    names = list(dict.fromkeys(one.benchmark for one in found.found))
    missing = "".join(
        f"<li>{text(_title(name, cards))}: {text(why)}</li>" for name, why in found.missing.items()
    )
    lacking = f'<ul class="as-notes">{missing}</ul>' if missing else ""
    if not names:
        none = "<p>Of the metrics that scored these models no record is known here.</p>"
        return section("How these metrics order models", f"{none}{lacking}", ident="orderings")
    of = {(one.entry_id, one.benchmark): one for one in found.found}
    rows = "".join(
        f'<tr><th scope="row" class="as-c-metric">{judge_name(entry_id, title)}</th>'
        f"{''.join(_cell(of.get((entry_id, name))) for name in names)}</tr>"
        for entry_id, title in judges.items()
        if any((entry_id, name) in of for name in names)
    )
    heads = "".join(_head(name, cards, simulated=name in found.simulated) for name in names)
    return section(
        "How these metrics order models",
        f'<p class="as-lead">{LEAD}</p>{scroll_box("Record at ordering models")}'
        '<table class="as-table as-matrix"><caption class="as-sr">Pairs of models that each metric '
        'relates as people do</caption><thead><tr><th scope="col" class="as-c-metric">Metric</th>'
        f"{heads}</tr></thead><tbody>{rows}</tbody></table></div>{lacking}",
        ident="orderings",
    )


def _title(name: str, cards: Mapping[str, Card]) -> str:
    return cards[name].title if name in cards else name


def _head(name: str, cards: Mapping[str, Card], *, simulated: bool) -> str:
    mark = f" {badge('simulated', 'warn')}" if simulated else ""
    address = text(board_address(name))
    return f'<th scope="col"><a href="{address}">{text(_title(name, cards))}</a>{mark}</th>'


def _cell(one: ModelOrdering | None) -> str:
    if one is None:
        return f"<td>{MISSING}</td>"
    against = f"<small>{one.reversed:,} the other way round</small>" if one.reversed else ""
    told = f' title="{text(one.note)}"' if one.note else ""
    return f'<td{told}><span class="as-range">{one.right:,} of {one.of:,}</span>{against}</td>'
