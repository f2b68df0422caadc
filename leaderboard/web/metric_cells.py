"""Cells, rows and tags of tables of metrics, for every tab of the Metrics place."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.schema import Card
from leaderboard.desk import UNNAMED
from leaderboard.publication.entries import Entry
from leaderboard.publication.flags import MEANINGS, flags_of, is_trained_on, origin
from leaderboard.publication.identities import shown_account, signature_text
from leaderboard.publication.metric_facts import facts_of
from leaderboard.ranking.cells import (
    Cell,
    cell_beats_chance,
    chance_of,
    is_at_or_below_chance,
)
from leaderboard.text import count, interval, number
from leaderboard.views.addresses import submission_address
from leaderboard.views.rankings import Place, flops_text
from leaderboard.views.skills import FLOPS
from leaderboard.web.components import Column, Link, Scale, Tag, TextCell, ValueCell

_PAD = 0.04


def column_scale(ends: Iterable[float], chance: float | None) -> Scale | None:
    """The axis of a column that holds all of some ends and chance; None where there are none."""
    known = [one for one in ends if math.isfinite(one)]
    if not known:
        return None
    known += [] if chance is None else [chance]
    pad = _PAD * (max(known) - min(known))
    return Scale(min(known) - pad, max(known) + pad, chance=chance)


def place_cell(
    place: Place | None, scale: Scale | None, *, ranks: bool, best: bool = False, why: str = ""
) -> ValueCell:
    """The value of a place."""
    if place is None or math.isnan(place.value):
        return ValueCell(None, reason=place.why if place else why)
    return ValueCell(
        place.value,
        _or_none(place.low),
        _or_none(place.high),
        n=place.n,
        scale=scale,
        rank=place.range if ranks else "",
        best=best,
        trained=place.trained,
        below=place.below,
        not_significant=place.above is False and not place.below,
    )


def measure_cell(cell: Cell | None, card: Card, entry: Entry, *, best: bool = False) -> ValueCell:
    """A value of a board without a drawing."""
    if cell is None or cell.value is None:
        return ValueCell(None, reason=cell.note if cell else "not run there")
    chance = chance_of(card, cell.measure)
    below = chance is not None and is_at_or_below_chance(
        cell.ci_low, cell.ci_high, chance, higher_is_better=card.higher_is_better(cell.measure)
    )
    return ValueCell(
        cell.value, cell.ci_low, cell.ci_high, n=cell.n_clusters, best=best,
        trained=is_trained_on(entry, card), below=below,
        not_significant=cell_beats_chance(card, cell) is False and not below,
    )  # fmt: skip


def cost_cell(value: float | None, by: str, source: str = "") -> TextCell:
    """A cost; `source` says where it is from."""
    if value is None:
        return TextCell("", right=True, title="Not stated" if by == FLOPS else "Not recorded")
    shown = flops_text(value).strip() if by == FLOPS else number(value, 2 if value < 10 else 1)
    return TextCell(shown, sort=f"{value:g}", right=True, title=source)


def flops_source(entries: Sequence[Entry]) -> str:
    """Where the operations of a metric are stated."""
    if any(one.flops_per_pair is not None for one in entries):
        return "Declared by its author, not measured"
    return "By the accounting of TS2, Table 2, not measured"


def size_cell(value: float | None) -> TextCell:
    """A number of parameters: `151 M`."""
    return (
        TextCell("", right=True, title="Not stated") if value is None
        else TextCell(flops_text(value).strip().replace(" G", " B"), sort=f"{value:g}", right=True)
    )  # fmt: skip


def row_ident(entry_id: str) -> str:
    """A name of a row on its page that is its own whatever the order."""
    return f"m-{zlib.crc32(entry_id.encode()):08x}"


def tags_of(sent: Sequence[Entry], benchmarks: Iterable[str] | None = None) -> tuple[Tag, ...]:
    """The flags of a metric, short."""
    flags = flags_of(sent, None if benchmarks is None else set(benchmarks))
    return tuple(
        Tag(label, "warn", f"{MEANINGS[label].capitalize()} {', '.join(_named(others))}".strip())
        for label, others in flags.items()
    )


def flag_links(sent: Sequence[Entry]) -> tuple[Link, ...]:
    """The submissions that flags are about, those that may be named."""
    return tuple(
        Link(f"{label}: {others[0]}", submission_address(others[0]))
        for label, found in flags_of(sent).items()
        if (others := _named(found))
    )


def who_facts(sent: Sequence[Entry], cards: Mapping[str, Card]) -> list[tuple[str, str]]:
    """What is known of a metric whatever its values: its source, submitter, training and paper."""
    entry = max(sent, key=lambda one: (one.published_at, one.entry_id))
    facts = facts_of(entry)
    trained = [card.title for card in cards.values() if is_trained_on(entry, card)]
    found = [("Identifier", entry.metric)] if facts.title else []
    found += [("Version", entry.version)] if entry.version else []
    found.append(("Source", origin(entry) or "run by Assay"))
    if entry.released_with:
        found.append(("Released with", entry.released_with))
    elif entry.submitter or shown_account(entry.account):
        found.append(("Submitter", signature_text(entry)))
    if facts.paper:
        found.append(("Paper", facts.paper))
    found.append(("Trained on", ", ".join(trained) or "none of these benchmarks stated"))
    found.append(("Published", f"{entry.published_at:%Y-%m-%d}"))
    return found


def place_words(place: Place, of: int) -> str:
    """`0.779 [0.731, 0.816], rank 1–4 of 19, P(best) 0.56, tier 1`; or why it has no rank."""
    said = [place.figure]
    if place.ranks is None:
        said.append(f"no rank: {place.why}" if place.why else "no rank")
    else:
        said.append(f"rank {place.range} of {of:,}")
    if place.ranks is not None and place.p_best is not None:
        said.append(f"P(best) {share(place.p_best)}")
    if place.tier is not None:
        said.append(f"tier {place.tier}")
    if place.above is False:
        said.append("not significantly above chance")
    return ", ".join(said)


def share(value: float | None) -> str:
    """A share as per cent, never rounded to certainty."""
    if value is None or math.isnan(value):
        return "–"
    if 0.0 < value < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 <= value < 1.0 else f"{value:.0%}"


def heading(column: Column, *, sorted_by: str, down: bool) -> Column:
    """A column with how the table is sorted by it."""
    if column.key != sorted_by:
        return column
    return Column(**{**vars(column), "sorted": "descending" if down else "ascending"})


def counted(n: int, unit: str) -> str:
    """`164 graphs`."""
    return count(n, unit)


def spans(low: float, high: float) -> str:
    """An interval; empty where there is none."""
    return interval(low, high)


def _named(others: Sequence[str]) -> list[str]:
    return [other for other in others if other != UNNAMED]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
