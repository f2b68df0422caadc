"""`docs/errata.md`: printed figures that do not follow from their data, with how one knows."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.errata.entries import KINDS, Erratum, errata
from benchmarks.published import papers
from evaluator.documenting.markdown import code, page, table, text

_INTRODUCTION = """\
Papers are right far more often than not, and these benchmarks are good because their authors
released the data by which anybody can look. Where a printed figure does not follow from that data,
boards show both: the figure as printed, and the corrected one. This is the whole list, as
`python -m benchmarks.errata` prints it; with an id it prints what one printed beside what the data
give."""


def errata_page() -> str:
    """The document."""
    every = errata()
    kinds = "\n".join(f"- **{name}**: {text(what)}." for name, what in KINDS.items())
    parts = [part for erratum in every for part in _of(erratum)]
    return page("Errata", _INTRODUCTION, kinds, f"There are {len(every)}.", *parts)


def _of(erratum: Erratum) -> Iterator[str]:
    paper = papers()[erratum.paper]
    yield f"## {erratum.id}"
    yield f"{text(paper.title)}: {text(erratum.where)} (**{erratum.kind}**)."
    yield f"{text(erratum.title)} {text(erratum.why)}"
    cells = (
        [text(cell.label), text(cell.printed), text(cell.correct) or "not known"]
        for cell in erratum.cells
    )
    yield table(("what", "as printed", "should be"), cells)
    if erratum.command:
        yield f"Computed again by {code(erratum.command)}."
