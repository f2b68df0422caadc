"""Facts about each model and its images: declared by its developer, and found in them."""

from __future__ import annotations

from collections.abc import Iterable

from leaderboard.pages.models.names import badges, model_name
from leaderboard.pages.shown.markup import scroll_box, submitted, text
from leaderboard.pages.shown.signatures import signature
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.records import ModelCard
from leaderboard.text import MISSING, count

_SIZES = 3


def facts_table(entries: Iterable[ModelEntry]) -> str:
    """One row for each model.

    Args:
        entries: in the order of the board.
    """
    heads = ("Model", "Licence", "Parameters", "Steps", "Guidance", "Drawn on", "Image taken",
             "Seeds", "Images", "Remarks")  # fmt: skip
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    rows = "".join(_row(entry, heads) for entry in entries)
    return (
        f"{scroll_box('What is known of the models')}"
        '<table class="as-table as-m-facts"><caption class="as-sr">What is known of the models'
        f"</caption><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="as-legend">Licence, parameters, steps, guidance, date and how the image was '
        f"taken are declared by whoever sent the images; {MISSING}: not said.</p>"
    )


def parameters(value: int | None) -> str:
    """A number of weights: `2.6 B`, `860 M`."""
    if value is None:
        return MISSING
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:.3g}\u00a0{unit}"
    return str(value)


def selection(card: ModelCard) -> str:
    """How the image of a prompt and seed came about; safe as HTML."""
    if card.selection == "first":
        return "first image"
    by = f" by {submitted(card.selected_by, limit=40)}" if card.selected_by else ""
    return f"best of {card.best_of or 'several'}{by}"


def guidance(value: float | None) -> str:
    """A guidance scale."""
    return MISSING if value is None else f"{value:g}"


def images_said(entry: ModelEntry) -> str:
    """How many images there are, of how many, and their most frequent sizes."""
    seen = entry.images
    sizes = sorted(seen.sizes.items(), key=lambda item: -item[1])
    shown = ", ".join(text(size.replace("x", " × "), limit=20) for size, _ in sizes[:_SIZES])
    more = " and other sizes" if len(sizes) > _SIZES else ""
    found = f"{seen.present:,} of {count(seen.wanted, 'image')}"
    return f'{found}<span class="as-note">{shown}{more}</span>' if shown else found


def _row(entry: ModelEntry, heads: tuple[str, ...]) -> str:
    card = entry.card
    signed = signature(entry.submitter, entry.account, limit=30)
    name = (
        f"{model_name(entry)}<span class=as-note>by {signed}</span>"
        if signed
        else (model_name(entry))
    )
    values = (
        text(entry.licence, limit=40) or MISSING,
        parameters(card.parameters),
        MISSING if card.steps is None else f"{card.steps:,}",
        guidance(card.guidance),
        f'<span class="as-short">{text(card.drawn_on)}</span>' if card.drawn_on else MISSING,
        selection(card),
        f"{len(entry.images.seeds):,}",
        images_said(entry),
        badges(entry),
    )
    cells = "".join(
        f'<td data-label="{head}">{value}</td>'
        for head, value in zip(heads[1:], values, strict=True)
        if head != "Remarks" or value
    )
    blank = "" if values[-1] else "<td></td>"
    return f'<tr><th scope="row">{name}</th>{cells}{blank}</tr>'
