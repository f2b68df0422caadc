"""Variation of each model's mean over its own seeds, by one metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaderboard.models.seeds_types import SeedVariation
from leaderboard.pages.models.names import model_name
from leaderboard.pages.shown.markup import scroll_box, text
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import number

MOST_SEEDS = 12
_HEADS = (
    "Model",
    "Mean with each seed",
    "Spread of the means",
    "Within a prompt",
    "Between prompts",
)


def variation_table(found: Sequence[SeedVariation], entries: Mapping[str, ModelEntry]) -> str:
    """One row for each model.

    Args:
        found: every model over all of its seeds, by one metric.
        entries: by submission id.
    """
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    rows = "".join(
        _row(one, entries[one.submission_id]) for one in found if one.submission_id in entries
    )
    return (
        f"{scroll_box('Variation over seeds')}"
        '<table class="as-table as-m-facts as-varied"><caption class="as-sr">Variation of each model '
        f"over its seeds</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="as-legend">Standard deviations in units of the metric. <b>Within a prompt:</b> of '
        "the images of one prompt over the seeds. <b>Between prompts:</b> of the prompts’ means: "
        "where it is the larger one, which prompts are drawn matters more than which seeds.</p>"
    )


def seed_means(one: SeedVariation) -> str:
    """The mean with each seed, as HTML."""
    shown = list(zip(one.seeds, one.means, strict=True))[:MOST_SEEDS]
    more = f" and {len(one.seeds) - MOST_SEEDS:,} more" if len(one.seeds) > MOST_SEEDS else ""
    return " ".join(
        f'<span class="as-seed-mean"><span class="as-muted">{seed}</span> {number(mean)}</span>'
        for seed, mean in shown
    ) + text(more)


def _row(one: SeedVariation, entry: ModelEntry) -> str:
    values = (
        seed_means(one), number(one.spread, 4), number(one.within), number(one.between),
    )  # fmt: skip
    cells = "".join(
        f'<td data-label="{head}">{value}</td>'
        for head, value in zip(_HEADS[1:], values, strict=True)
    )
    return f'<tr><th scope="row">{model_name(entry)}</th>{cells}</tr>'
