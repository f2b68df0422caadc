"""Query of the page of two models: to and from a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard.models.entries import ModelEntry
from leaderboard.pages.models.query import Choice, ModelsQuery
from leaderboard.pages.shown.addresses import with_state
from leaderboard.pages.shown.markup import clean

_LONGEST = 100


@dataclass(frozen=True)
class PairQuery:
    """The state of the page; the models may not exist.

    Attributes:
        a: submission id of the first; empty: the first of the board.
        b: of the second; empty: the one after it.
        of: prompt set, skill, filters, metric.
    """

    a: str
    b: str
    of: ModelsQuery

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> PairQuery:
        """Read an address; unknown parameters are left alone."""
        a, b = (str(params.get(name, "")).strip()[:_LONGEST] for name in ("a", "b"))
        return cls(a, b, ModelsQuery.from_params(params))

    def to_link(self, a: str, b: str) -> str:
        """The address of two models within the same view; not escaped for HTML yet."""
        return with_state(self.of.to_link("model-pair"), a=a, b=b)


def opponents(
    query: PairQuery, choice: Choice, order: tuple[str, ...]
) -> tuple[ModelEntry, ModelEntry, list[str]] | None:
    """The two models, and what was asked for and is not there; None where there are no two.

    Args:
        query: as asked for.
        choice: the prompt set.
        order: submission ids in the order of the board.
    """
    by_id = {one.submission_id: one for one in choice.entries}
    known = [one for one in order if one in by_id]
    if len(known) < 2:
        return None
    said = [
        f"There is no model “{clean(one)[:60]}” on this board."
        for one in (query.a, query.b)
        if one and one not in known
    ]
    a = query.a if query.a in known else next(one for one in known if one != query.b)
    b = query.b if query.b in known else ""
    if b == a:
        said.append("A model is not held against itself; shown is another.")
        b = ""
    b = b or next(one for one in known if one != a)
    return by_id[a], by_id[b], said
