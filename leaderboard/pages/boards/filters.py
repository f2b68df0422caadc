"""Filters of entries: parsed from a link or a control, and applied to a board."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from benchmarks.schema import Card
from leaderboard.pages.boards.table import is_trained_on
from leaderboard.pages.shown.markup import clean
from leaderboard.pages.shown.signatures import shown_account
from leaderboard.publication.snapshot import Entry
from leaderboard.records import Kind

MOST_SEARCHED = 200
"""Characters of a search that are looked at."""
KINDS = {Kind.METRIC.value: "run by Assay", Kind.SCORES.value: "scores as submitted"}
"""What an entry may be, and its name in the chooser."""
YES = "1"
"""How a link says so; anything else is no."""


@dataclass(frozen=True)
class Filters:
    """A choice among the entries of a board; without arguments it keeps all of them.

    Attributes:
        search: text in names of metrics, submitters or accounts; of several parted by commas, any.
        kind: a key of `KINDS`; empty means all.
        untrained: leave out entries whose author declares this benchmark as training data.
    """

    search: str = ""
    kind: str = ""
    untrained: bool = False

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> Filters:
        """Read from the query parameters of a request; nothing in them is trusted."""
        return cls(
            search=clean(params.get("search", "")[:MOST_SEARCHED]).strip(),
            kind=params.get("kind", ""),
            untrained=params.get("untrained", "") == YES,
        )

    def to_params(self) -> dict[str, str]:
        """The query parameters that `from_params` reads this from; empty ones too."""
        return {
            "kind": self.kind,
            "untrained": YES if self.untrained else "",
            "search": self.search,
        }

    @property
    def terms(self) -> tuple[str, ...]:
        """What is searched for, each without regard to case."""
        found = (part.strip().casefold() for part in self.search.split(","))
        return tuple(term for term in found if term)

    @property
    def active(self) -> bool:
        """Whether anything may be left out."""
        return bool(self.terms or self.kind or self.untrained)

    def known(self) -> tuple[Filters, tuple[str, ...]]:
        """The same without a kind that does not exist, and what to say about that."""
        if not self.kind or self.kind in KINDS:
            return self, ()
        remark = f"There is no kind of entry “{clean(self.kind)[:40]}”; all kinds are shown."
        return replace(self, kind=""), (remark,)

    def keeps(self, entry: Entry, card: Card) -> bool:
        """Whether an entry of a board is looked at."""
        if self.kind and entry.kind.value != self.kind:
            return False
        if self.untrained and is_trained_on(entry, card):
            return False
        every = (entry.metric, entry.submitter, shown_account(entry.account))
        names = [clean(name).casefold() for name in every]
        terms = self.terms
        return not terms or any(term in name for term in terms for name in names)

    def kept(
        self, entry_ids: Iterable[str], entries: Mapping[str, Entry], card: Card
    ) -> Collection[str] | None:
        """Those of some entries that are looked at; None where nothing is filtered."""
        if not self.active:
            return None
        return frozenset(e for e in entry_ids if self.keeps(entries[e], card))
