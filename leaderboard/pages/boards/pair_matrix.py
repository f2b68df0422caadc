"""Metric against metric: every tested difference of a ranking and its corrected p-value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from benchmarks.comparison import digits_of_p, plural, units_of
from benchmarks.schema import Card
from leaderboard.pages.shown.markup import text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.comparing import unit_of
from leaderboard.ranking.slices import Ranked
from leaderboard.ranking.tiers import Basis
from leaderboard.text import MISSING, count, number
from leaderboard.views.boards import Choice
from leaderboard.views.pairs import Pair, tested_places


def pair_matrix(
    ranked: Ranked, found: tuple[Pair, ...], entries: Mapping[str, Entry], choice: Choice
) -> str:
    """The tests of a ranking as a square table; empty where fewer than two metrics were tested.

    Above the diagonal stands by how much the row's metric is ahead of the column's, below it the
    corrected p-value of the same pair.

    Args:
        ranked: the ranking.
        found: its `pairs`.
        entries: entry id to entry.
        choice: what is ranked.
    """
    if not found:
        return ""
    card = choice.board.card
    places = tested_places(ranked)
    shown = [ranked.cells[place].entry_id for place in places]
    unit = _unit(ranked, card)
    drawn = _Drawing.of(found, shown, entries, choice, unit)
    heads = "".join(
        f'<th scope="col" title="{drawn.names[i]}">{i + 1}<span class="as-sr"> {drawn.names[i]}</span></th>'
        for i in range(len(shown))
    )
    body = "".join(
        f'<tr><th scope="row" class="as-c-metric"><span class="as-no">{i + 1}</span> '
        f"{metric_name(entries[entry_id])}</th>{drawn.row(i)}</tr>"
        for i, entry_id in enumerate(shown)
    )
    return (
        '<div class="as-scroll" tabindex="0" role="region" aria-label="Metric against metric">'
        '<table class="as-table as-pairs"><caption class="as-sr">Differences between each two '
        "metrics above the diagonal, corrected p-values below it</caption>"
        f'<thead><tr><th scope="col" class="as-c-metric">Metric</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{_caption(ranked, card, found, len(shown))}"
    )


@dataclass(frozen=True)
class _Drawing:
    """Cells of the matrix by row and column, and the names of its metrics."""

    names: list[str]
    cells: dict[tuple[int, int], str]

    @classmethod
    def of(
        cls,
        found: tuple[Pair, ...],
        shown: list[str],
        entries: Mapping[str, Entry],
        choice: Choice,
        unit: str,
    ) -> _Drawing:
        place = {entry_id: i for i, entry_id in enumerate(shown)}
        names = [text(entries[entry_id].metric, limit=40) for entry_id in shown]
        keys = [quote(entry_id, safe="") for entry_id in shown]
        base = _address(choice)
        measure = choice.selector.measure if choice.selector else ""
        sign = 1.0 if choice.board.card.higher_is_better(measure) else -1.0
        largest = max((abs(pair.difference) for pair in found), default=0.0) or 1.0
        cells: dict[tuple[int, int], str] = {}
        for pair in found:
            i, j = place[pair.a], place[pair.b]
            said, sure = signed(pair.difference), pair.significant
            hover = (
                f"{names[i]} less {names[j]}: {said}; p {p_stated(pair.p_value)}, corrected "
                f"{p_stated(pair.p_holm)}; {differ(pair, unit)}, {patterns(pair)}"
            )
            star = "*" if sure else ""
            side = "as-ahead" if sign * pair.difference >= 0 else "as-behind"
            cells[i, j] = (
                f'<td class="{side}{" as-sure" if sure else ""}" '
                f'style="--t:{100 * abs(pair.difference) / largest:.0f}%">'
                f'<a href="{base}&amp;a={keys[i]}&amp;b={keys[j]}" title="{hover}">{said}{star}</a></td>'
            )
            bold = ' class="as-sure"' if sure else ""
            cells[j, i] = f'<td{bold} title="{hover}">{p_text(pair.p_holm)}{star}</td>'
        return cls(names, cells)

    def row(self, i: int) -> str:
        """The cells of one row; the diagonal is blank."""
        blank = '<td class="as-self"><span class="as-sr">the same metric</span></td>'
        return "".join(self.cells.get((i, j), blank) for j in range(len(self.names)))


def _address(choice: Choice) -> str:
    """Of the page that compares two metrics; which two is still to be said."""
    query = choice.query
    given = {"benchmark": query.benchmark, "measure": query.measure, "skill": query.skill}
    named = urlencode({key: value for key, value in given.items() if value}, safe="~:,")
    return text(f"./compare?{named}")


def _unit(ranked: Ranked, card: Card) -> str:
    n_clusters = [ranked.cells[place].n_clusters for place in tested_places(ranked, None)]
    return unit_of(card, ranked.draws.contributions.shape[1], n_clusters)


def differ(pair: Pair, unit: str) -> str:
    """In how many clusters or blocks the two differ."""
    return text(f"{plural(unit, pair.n_units)} {'differs' if pair.n_units == 1 else 'differ'}")


def patterns(pair: Pair) -> str:
    """How the p-value of a pair was found."""
    if pair.exact:
        return f"exact (all {pair.n_patterns:,} patterns)"
    return f"{pair.n_patterns:,} patterns drawn" if pair.n_patterns else "p is an upper bound"


def signed(value: float) -> str:
    """A difference with its sign."""
    shown = number(value)
    return shown if value <= 0 or shown == number(0.0) or shown == MISSING else f"+{shown}"


def p_text(p: float) -> str:
    """A p-value for a narrow cell."""
    if p < 0.0005:
        return "&lt;.001"
    return f"{p:.{digits_of_p(p, 3)}f}".removeprefix("0") if p < 0.9995 else "1"


def p_stated(p: float) -> str:
    """A p-value in a sentence: `= 0.012`, `= 2.0e-05`."""
    return f"= {p:.{digits_of_p(p, 3)}f}" if p >= 0.0005 else f"= {p:.1e}"


def _caption(ranked: Ranked, card: Card, found: tuple[Pair, ...], shown: int) -> str:
    basis = Basis.of(ranked)
    unit = _unit(ranked, card)
    of_blocks = unit != card.cluster
    flipped = f"flipped in {text(units_of(unit))}" if of_blocks else "flipped"
    tested = len(tested_places(ranked, None))
    sure = sum(pair.significant for pair in found)
    cut = f" The first {shown} of {count(tested, 'metric')}." if tested > shown else ""
    untested = sum(cell.rank is not None for cell in ranked.cells) - tested
    absent = f" {count(untested, 'metric')} without tests left out." if untested > 0 else ""
    return (
        '<p class="as-legend"><b>Above the diagonal:</b> value of the row\'s metric less that of the '
        "column's (blue: the row is ahead, ochre: behind). <b>Below:</b> p-value after correction. "
        f"<b>*</b> and bold: significant at 5 % ({sure} of the {count(len(found), 'pair')} shown).{cut}"
        f"{absent}</p>"
        f'<p class="as-legend"><b>Test:</b> paired permutation by {text(card.cluster)}: signs of the '
        f"differences are {flipped}. "
        f"<b>Correction:</b> Holm's over {count(basis.n_pairs, 'pair')}. Follow a difference to "
        "compare the two metrics; that page corrects over the whole board, without filters.</p>"
    )
