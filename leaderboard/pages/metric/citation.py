"""BibTeX entries of a benchmark and of an entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from benchmarks.schema import Card
from leaderboard.pages.shown.markup import clean
from leaderboard.publication.entries import Entry

_CITATION = re.compile(r"(?P<authors>[^:.\d]+(?: et al\.)?): (?P<title>.+?)\. (?P<rest>.*)")
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_YEAR = re.compile(r"\b(20\d\d)\b")
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "&": r"\&",
    "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip
"""Braces by name: BibTeX counts those with a backslash too, and a lone one would end the field."""
_LONGEST = 300


def benchmark_bibtex(card: Card) -> str:
    """The work behind a benchmark; the citation as a note where it cannot be taken apart."""
    found = _CITATION.match(card.citation)
    fields: dict[str, str] = {}
    if found and not card.simulated:
        names = found["authors"].removesuffix(" et al.").split(", ")
        more = ["others"] if found["authors"].endswith(" et al.") else []
        fields["author"] = " and ".join([*map(latex, names), *more])
        fields["title"] = f"{{{latex(found['title'])}}}"
    else:
        fields["title"] = f"{{{latex(card.title)}}}"
        fields["note"] = latex(card.citation)
    year = _YEAR.search(card.citation)
    fields["year"] = year[1] if year else ""
    arxiv = _ARXIV.search(card.citation)
    if arxiv:
        fields |= {"eprint": arxiv[1], "archiveprefix": "arXiv"}
    fields["url"] = card.links.get("paper") or card.links.get("Paper", "")
    return _entry(f"{card.name}{fields['year']}", fields)


def entry_bibtex(entry: Entry, cards: Iterable[Card], authors: Iterable[str], url: str) -> str:
    """The results of a metric on this board.

    Args:
        entry: the metric.
        cards: benchmarks it was tested on.
        authors: as its author states them; the submitter where nobody is named.
        url: address of its page; empty where that is not known.
    """
    names = [name for name in map(latex, authors) if name] or [latex(entry.submitter)]
    tested = ", ".join(f"{card.title} {card.revision}" for card in cards)
    name = f"{entry.metric} {entry.version}".strip()
    fields = {
        "author": " and ".join(f"{{{name}}}" for name in names if name),
        "title": f"{{{latex(name)}: results of a text-to-image metric on Assay}}",
        "year": f"{entry.published_at:%Y}",
        "month": f"{entry.published_at:%b}".lower(),
        "note": latex(f"Entry {entry.submission_id}, on {tested}"),
        "url": url,
    }
    return _entry(f"assay-{entry.submission_id}", fields)


def latex(value: str) -> str:
    """A submitted text that BibTeX takes for nothing but text."""
    return "".join(_SPECIAL.get(char, char) for char in clean(value)[:_LONGEST]).strip()


def _entry(key: str, fields: Mapping[str, str]) -> str:
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@misc{{{key},\n{lines}}}"
