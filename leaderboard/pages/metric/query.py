"""Query of the metric page: from a link, resolved to a metric that exists or existed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leaderboard.pages.reading import View
from leaderboard.pages.shown.identities import Identity
from leaderboard.pages.shown.markup import clean
from leaderboard.publication.entries import Entry
from leaderboard.records import Status

MOST_FOUND = 60
_LONGEST = 400


@dataclass(frozen=True)
class MetricQuery:
    """The state of the page. Everything is as asked for, and may not exist.

    Attributes:
        entry_id: `<submission_id>/<metric>`, or a submission alone.
        search: words of a name or a submitter.
    """

    entry_id: str = ""
    search: str = ""

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> MetricQuery:
        """Read from the query parameters of a request; unknown parameters are left alone."""
        return cls(params.get("id", "")[:_LONGEST], params.get("q", "")[:_LONGEST])


@dataclass(frozen=True)
class Shown:
    """A metric that stands on a board.

    Attributes:
        entry: what was asked for.
        status: of its submission; None where the queue does not hold it.
        others: the other published entries of the same metric, on other benchmarks as a rule.
    """

    entry: Entry
    status: Status | None
    others: tuple[Entry, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was asked for, then the others."""
        return (self.entry, *self.others)


@dataclass(frozen=True)
class Gone:
    """A submission that is known and stands on no board.

    Attributes:
        metric: the name that was asked for.
        status: what became of it.
    """

    metric: str
    status: Status


@dataclass(frozen=True)
class Unknown:
    """Nothing is known under that id.

    Attributes:
        asked: what was asked for.
        matches: entries that fit the search, by name.
        n_matches: how many there are.
    """

    asked: str = ""
    search: str = ""
    matches: tuple[Entry, ...] = field(default=())
    n_matches: int = 0


def resolve(query: MetricQuery, view: View, statuses: Sequence[Status]) -> Shown | Gone | Unknown:
    """What a query finds. A private submission is as if it did not exist.

    Args:
        query: what was asked for, by anybody.
        view: what is published.
        statuses: all submissions.
    """
    asked = query.entry_id
    ident, _, metric = asked.partition("/")
    known = {s.submission.submission_id: s for s in statuses if not s.submission.private}
    entry_id = asked if asked in view.entries else _only(ident, view) if not metric else ""
    if entry_id:
        entry = view.entries[entry_id]
        return Shown(entry, known.get(entry.submission_id), others_of(entry, view))
    status = known.get(ident)
    if status is not None and (not metric or metric in status.submission.metrics):
        return Gone(metric or status.submission.name, status)
    matches = _matching(query.search or clean(metric or ident), view)
    if asked and not query.search and not matches:
        matches = _matching("", view)
    return Unknown(asked, query.search, matches[:MOST_FOUND], len(matches))


def others_of(entry: Entry, view: View) -> tuple[Entry, ...]:
    """The other published entries of the same metric."""
    who = Identity.of(entry)
    return tuple(
        other for other in view.entries.values()
        if Identity.of(other) == who and other.entry_id != entry.entry_id
    )  # fmt: skip


def _only(ident: str, view: View) -> str:
    """The entry of a submission that has one."""
    found = [name for name in view.entries if name.startswith(f"{ident}/")] if ident else []
    return found[0] if len(found) == 1 else ""


def _matching(search: str, view: View) -> tuple[Entry, ...]:
    words = clean(search).casefold().split()
    found = [
        entry for entry in view.entries.values()
        if all(
            word in f"{entry.metric} {entry.version} {entry.submitter} {entry.account}".casefold()
            for word in words
        )
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda entry: (entry.metric.casefold(), entry.entry_id)))
