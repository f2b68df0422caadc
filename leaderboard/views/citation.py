"""Citations of boards, metrics and models, with the revision of the store that they were read from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from benchmarks.schema import Card
from leaderboard.publication.entries import Entry
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import Revision
from leaderboard.text import clean
from leaderboard.views.addresses import metric_address, model_address
from leaderboard.views.boards import Choice as BoardChoice
from leaderboard.views.models import Choice as ModelsChoice

_WORK = re.compile(r"(?P<authors>[^:.\d]+(?: et al\.)?): (?P<title>.+?)\. (?P<rest>.*)")
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_YEAR = re.compile(r"\b(20\d\d)\b")
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "&": r"\&",
    "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip
"""Braces by name: BibTeX counts those with a backslash too, and a lone one would end the field."""
_LONGEST = 300
_SITE = "Assay"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@dataclass(frozen=True)
class CitedAt:
    """What a citation says of where figures were read."""

    revision: Revision = field(default_factory=Revision)  # of the store
    site: str = ""  # address of the site with its last slash; empty where it is not known

    def address(self, link: str) -> str:
        """The address of a page of the site; empty where that of the site is not known."""
        return f"{self.site}{link.removeprefix('./')}" if self.site else ""


NOWHERE = CitedAt()  # Neither store nor site is known


@dataclass(frozen=True)
class Citation:
    """What a page is cited with: the same facts as a sentence, as BibTeX and as CFF."""

    key: str  # of BibTeX
    title: str  # of what is cited
    revision: Revision  # of the store, from which the page was made
    authors: tuple[str, ...] = (_SITE,)  # who made it; texts of submitters
    dated: datetime | None = None  # of the figures; None: when the boards were made
    address: str = ""  # of the page; empty where that of the site is not known
    work: str = ""  # citation of the benchmark or prompt set behind it

    @property
    def date(self) -> datetime | None:
        """When the figures were made."""
        return self.dated or self.revision.made_at

    @property
    def stated_revision(self) -> str:
        """The revision, and whether its figures can be read later; empty where none is known."""
        at = self.revision
        if not at.commit:
            return ""
        boards = f", boards SHA-256 {at.snapshot[:16]}" if at.snapshot else ""
        if at.address:
            return f"Revision {at.commit}{boards}; exactly these figures: {at.address}"
        later = "the store keeps no history, so later the page may show other figures"
        return f"Revision {at.commit}{boards}; {later}"

    def plain(self) -> str:
        """As a sentence."""
        authors = ", ".join(_text(name) for name in self.authors)
        dated = f", as of {self.date:%Y-%m-%d}" if self.date else ", not dated"
        parts = (f"{authors}. {_text(self.title)}{dated}.", _ended(self.stated_revision),
                 self.address, clean(self.work))  # fmt: skip
        return " ".join(part for part in parts if part)

    def bibtex(self) -> str:
        """As an entry of BibTeX."""
        date = self.date
        said = (f"As of {date:%Y-%m-%d}." if date else "", _ended(self.stated_revision), self.work)
        names = [latex(name) for name in self.authors if latex(name)]
        return _bibtex(
            self.key,
            {
                "author": " and ".join(f"{{{name}}}" for name in names),
                "title": f"{{{latex(self.title)}}}",
                "year": f"{date:%Y}" if date else "",
                "month": _MONTHS[date.month - 1] if date else "",
                "version": latex(self.revision.commit),
                "note": " ".join(latex(one, longest=1000) for one in said if one),
                "url": self.address,
            },
        )

    def cff(self) -> str:
        """As a file of the Citation File Format 1.2.0."""
        import yaml  # noqa: PLC0415 (the pages start without it)

        at, date = self.revision, self.date
        kept = {"type": "url", "value": at.address, "description": "Exactly these figures."}
        names = [name for name in map(_text, self.authors) if name] or [_SITE]
        facts = {
            "cff-version": "1.2.0",
            "message": "Please cite these figures by their revision.",
            "type": "dataset",
            "title": _text(self.title),
            "abstract": f"{_ended(self.stated_revision)} {clean(self.work)}".strip(),
            "authors": [{"name": name} for name in names],
            "date-released": f"{date:%Y-%m-%d}" if date else "",
            "version": at.commit,
            "url": self.address,
            "identifiers": [kept] if at.address else [],
        }
        given = {name: value for name, value in facts.items() if value}
        text: str = yaml.safe_dump(given, sort_keys=False, allow_unicode=True, width=100)
        return text


def metric_citation(
    entry: Entry, cards: Iterable[Card], authors: Iterable[str], at: CitedAt
) -> Citation:
    """The results of a metric."""
    names = tuple(name for name in authors if _text(name)) or (entry.submitter,)
    tested = ", ".join(f"{card.title} {card.revision}" for card in cards)
    name = f"{entry.metric} {entry.version}".strip()
    return Citation(
        key=f"assay-{entry.submission_id}",
        title=f"{name}: results of a text-to-image metric on {_SITE}",
        revision=at.revision,
        authors=names,
        dated=entry.published_at,
        address=at.address(metric_address(entry.entry_id)),
        work=f"Entry {entry.submission_id}, on {tested}.",
    )


def model_citation(entry: ModelEntry, card: Card, at: CitedAt) -> Citation:
    """The results of a text-to-image model."""
    on = f"Submission {entry.submission_id}, on {card.title} {entry.images.revision}."
    return Citation(
        key=f"assay-{entry.submission_id}",
        title=f"{entry.title}: results of a text-to-image model on {_SITE}",
        revision=at.revision,
        authors=tuple(name for name in entry.authors if _text(name)) or (entry.submitter,),
        dated=entry.published_at,
        address=at.address(model_address(entry.submission_id)),
        work=f"{on} {card.citation}".strip(),
    )


def metric_board_citation(choice: BoardChoice, at: CitedAt) -> Citation:
    """A board of metrics, as it is shown."""
    card = choice.board.card
    what = f"{card.title}, revision {card.revision}: {choice.measure_title}, {choice.title}"
    return Citation(
        key=f"assay-{card.name}",
        title=f"Board of {what}",
        revision=at.revision,
        address=at.address(choice.query.to_link()),
        work=card.citation,
    )


def model_board_citation(choice: ModelsChoice, link: str, at: CitedAt) -> Citation:
    """A board of models, as it is shown at a link."""
    card = choice.card
    dates = [one.published_at for one in choice.entries]
    made = [at.revision.made_at] if at.revision.made_at else []
    return Citation(
        key=f"assay-{card.name}",
        title=f"Text-to-image models on {card.title} "
        f"(prompt set {card.name}, revision {card.revision})",
        revision=at.revision,
        dated=max([*dates, *made], default=None),
        address=at.address(link),
        work=card.citation,
    )


def benchmark_bibtex(card: Card) -> str:
    """The work behind a benchmark; the citation as a note where it cannot be taken apart."""
    found = _WORK.match(card.citation)
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
    return _bibtex(f"{card.name}{fields['year']}", fields)


def latex(value: str, longest: int = _LONGEST) -> str:
    """A submitted text that BibTeX takes for nothing but text."""
    return "".join(_SPECIAL.get(char, char) for char in clean(value)[:longest]).strip()


def _text(value: str) -> str:
    return " ".join(clean(value)[:_LONGEST].split())


def _ended(sentence: str) -> str:
    """With a full stop, unless it ends with an address."""
    return f"{sentence}." if sentence and "//" not in sentence.rpartition(" ")[2] else sentence


def _bibtex(key: str, fields: Mapping[str, str]) -> str:
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@misc{{{key},\n{lines}}}"
