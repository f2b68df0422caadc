"""All models of a set against each other on one skill, by one metric (Re-Thinking's figure)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard.models.board_types import PairMatrix
from leaderboard.pages.model_pair.tests_table import LEVEL, p_shown, signed
from leaderboard.pages.models.names import model_name, plain_name
from leaderboard.pages.shown.markup import scroll_box, text
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import MISSING, count
from leaderboard.views.addresses import with_state
from leaderboard.views.models import ModelsQuery

MOST_MODELS = 30
"""More rows and columns than this cannot be read; the rest is in the download."""


@dataclass(frozen=True)
class _Drawing:
    """What the cells of the matrix are made from."""

    found: PairMatrix
    names: tuple[str, ...]
    link: str

    def cell(self, i: int, j: int) -> str:
        """Above the diagonal on how many prompts the row is better, below it the p-value."""
        if i == j:
            return '<td class="as-self"><span class="as-sr">the same model</span></td>'
        a, b = min(i, j), max(i, j)
        found = self.found
        difference, p = float(found.difference[a, b]), float(found.t_p_holm[a, b])
        won, lost = float(found.dominance[a, b]), float(found.dominance[b, a])
        if math.isnan(difference):
            return f"<td>{MISSING}</td>"
        sure = p < LEVEL
        star = "*" if sure else ""
        hover = (
            f"{self.names[a]} less {self.names[b]}: {signed(difference)}; better on "
            f"{100 * won:.0f} %, worse on {100 * lost:.0f} % of the prompts; corrected p {p_shown(p)}"
        )
        if i > j:
            bold = ' class="as-sure"' if sure else ""
            return f'<td{bold} title="{hover}">{p_shown(p)}{star}</td>'
        side = "as-ahead" if won >= lost else "as-behind"
        address = text(with_state(self.link, a=found.models[a], b=found.models[b]))
        return (
            f'<td class="{side}{" as-sure" if sure else ""}" style="--t:{100 * abs(won - lost):.0f}%">'
            f'<a href="{address}" title="{hover}">{100 * won:.0f}\u00a0%{star}</a></td>'
        )


def model_matrix(found: PairMatrix, entries: Mapping[str, ModelEntry], query: ModelsQuery) -> str:
    """Shares of prompts on which the row is better, above the diagonal; p-values below it.

    Args:
        found: each two models, in the order of the board.
        entries: by submission id.
        query: what is looked at, for the links.
    """
    shown = found.models[:MOST_MODELS]
    if len(shown) < 2:
        return ""
    names = tuple(text(plain_name(entries[one], 40)) for one in shown)
    drawn = _Drawing(found, names, query.to_link("model-pair"))
    heads = "".join(
        f'<th scope="col" title="{name}">{k}<span class="as-sr"> {name}</span></th>'
        for k, name in enumerate(names, 1)
    )
    body = "".join(
        f'<tr><th scope="row" class="as-c-metric"><span class="as-no">{i + 1}</span> '
        f"{model_name(entries[one])}</th>"
        f"{''.join(drawn.cell(i, j) for j in range(len(shown)))}</tr>"
        for i, one in enumerate(shown)
    )
    left = len(found.models) - len(shown)
    cut = f" The first {len(shown)}; {count(left, 'more model')} in the download." if left else ""
    return (
        f'{scroll_box("Model against model")}<table class="as-table as-pairs"><caption class="as-sr">'
        "Shares of prompts above the diagonal, corrected p-values below it</caption>"
        f'<thead><tr><th scope="col" class="as-c-metric">Model</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        '<p class="as-legend"><b>Above the diagonal:</b> dominance, the share of prompts on which '
        "the row's model is strictly better than the column's (blue: on more of them than the "
        "other, ochre: on fewer). <b>Below:</b> p-value of the paired t test of the same two, "
        f"corrected as on the board. <b>*</b> and bold: told apart at 5 %.{cut}</p>"
    )
