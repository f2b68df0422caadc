"""Published results of models on the same prompts: beside the board, never on it."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.errata import errata
from benchmarks.prompt_sets.reference import ReferenceRow, ReferenceTable
from benchmarks.published import papers
from benchmarks.schema import Card
from leaderboard.pages.shown.markup import badge, link, scroll_box, section, text
from leaderboard.publication.measure_names import skill_title
from leaderboard.text import MISSING, count

LEAD = (
    "Figures from papers, of other images, metrics and times. They are in no ranking here; the rank "
    "in brackets is among the models of the same table."
)


def published_section(
    own: Sequence[ReferenceTable], others: Sequence[ReferenceTable], card: Card
) -> str:
    """The tables about a prompt set, and those about none of the sets; empty where there are none.

    Args:
        own: about the set.
        others: about models on other prompts.
        card: of the set.
    """
    parts = [_table(one, card, unfolded=True) for one in own]
    parts += [_table(one, card, unfolded=False) for one in others]
    if not parts:
        return ""
    return section("As published", f'<p class="as-lead">{LEAD}</p>{"".join(parts)}',
                   ident="as-published")  # fmt: skip


def _table(found: ReferenceTable, card: Card, *, unfolded: bool) -> str:
    places = list(dict.fromkeys(row.place for row in found.rows))
    of = {(row.model, row.place): row for row in found.rows}
    first = {row.place: row for row in reversed(found.rows)}
    heads = "".join(f'<th scope="col">{_head(first[place], card)}</th>' for place in places)
    rows = "".join(
        f'<tr><th scope="row" class="as-c-metric">{text(model, limit=60)}</th>'
        + "".join(_cell(of.get((model, place))) for place in places)
        + "</tr>"
        for model in found.models
    )
    paper = papers()[found.paper]
    kind = badge("as published", "plain")
    wrong = [one for one in errata() if one.id in found.errata]
    known = (
        f' <a href="./errata#{text(wrong[0].paper)}">{count(len(wrong), "erratum", "errata")}</a>.'
        if wrong
        else ""
    )
    note = f" {text(found.note)}" if found.note else ""
    source = f"{link(paper.url, paper.citation)}, {text(found.table)}."
    label = f"{found.source}: {found.title}"
    return (
        f'<details class="as-unfold as-printed-models"{" open" if unfolded else ""} '
        f'data-keep="{text(found.paper + found.table)}"><summary>{text(label)} {kind}</summary>'
        f"{scroll_box(label)}<table class='as-table as-matrix'><caption class='as-sr'>{text(label)}"
        f'</caption><thead><tr><th scope="col" class="as-c-metric">Model</th>{heads}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="as-legend">{source}{note}{known}</p></details>'
    )


def _head(row: ReferenceRow, card: Card) -> str:
    parts = [
        card.splits.get(row.split, row.split) if row.split else "",
        skill_title(card, row.skill) if row.skill else "",
        card.facets.get(row.facet, row.facet) if row.facet else "",
        f"seed {row.seed}" if row.seed is not None else "",
    ]
    said = " · ".join(filter(None, parts)) or "All prompts"
    return f'{text(said)}<span class="as-note">{text(row.metric)}</span>'


def _cell(row: ReferenceRow | None) -> str:
    if row is None:
        return f"<td>{MISSING}</td>"
    differs = row.printed_rank is not None and row.printed_rank != row.rank
    told = f' title="The source prints rank {row.printed_rank}"' if differs else ""
    return f"<td{told}>{text(row.printed)} <small>({row.rank})</small></td>"
