"""`docs/reference/measures.md`: every measure of every benchmark, from the cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.schema import Card, MeasureInfo, Selector
from evaluator.documenting.markdown import code, page, table, text

_INTRODUCTION = """\
A measure is one named meta-metric: what a benchmark computes about a metric. Its name, with the split,
variant and facet where there are any, is what rows, boards, files and `/v1` carry. Range and chance
are those of the protocol; *chance* is what a metric that guesses gets. Every value of a board comes
with its 95 % interval, its number of items and clusters, and the number of missing scores."""


def measures_page(cards: Iterable[Card]) -> str:
    """The document.

    Args:
        cards: of all benchmarks, in the order of the document.
    """
    parts = [part for card in cards for part in _of(card)]
    return page("Measures", _INTRODUCTION, *parts)


def _of(card: Card) -> Iterator[str]:
    yield f"## {text(card.title)}"
    simulated = " Its ratings are simulated." if card.simulated else ""
    yield (
        f"{code(card.name)}, revision {code(card.revision)}, protocol {card.protocol}; the cluster is "
        f"the {text(card.cluster)}; ranked by {_selector(card.headline)}.{simulated}"
    )
    heads = ("measure", "title", "range", "chance", "better", "what it means", "source")
    yield table(heads, (_row(name, info) for name, info in sorted(card.measures.items())))
    for kind, named in (("split", card.splits), ("facet", card.facets), ("skill", card.skills)):
        if named:
            keys = ", ".join(f"{code(key)} ({text(title)})" for key, title in named.items())
            yield f"Each {kind}: {keys}."


def _row(name: str, info: MeasureInfo) -> list[str]:
    return [
        code(name),
        text(info.title),
        f"{_number(info.low, 'no least')} to {_number(info.high, 'no largest')}",
        _number(info.chance, ""),
        "larger" if info.higher_is_better else "smaller",
        text(info.meaning),
        text(info.source),
    ]


def _number(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:g}"


def _selector(headline: Selector) -> str:
    more = (("split", headline.split), ("variant", headline.variant), ("facet", headline.facet))
    named = "".join(f", {kind} {code(value)}" for kind, value in more if value)
    return f"{code(headline.measure)}{named}"
