"""State of the Compare place, as its address gives it: metrics, benchmark, measure, and examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from leaderboard.views.addresses import address, page_number, query_of
from leaderboard.views.boards import MEASURE, SKILLS, BoardQuery
from leaderboard.views.parameters import parameter

ViewName = Literal["differences", "examples", "pairs", "skills"]
VIEWS: tuple[ViewName, ...] = get_args(ViewName)
Show = Literal["failures", "disagreements", "all"]
SIDES = ("a", "b", "c", "d")
MODELS = "models"  # The value of `of` in an address that compares models
_LONGEST = 8192  # As long as a query of the API may be
_YES = "1"
_WORDS = ("benchmark", *SIDES, "skill", "measure", "split", "show", "case")


@dataclass(frozen=True)
class CompareQuery:
    """State of the Compare place. Everything is as asked for, and may not exist."""

    view: ViewName = "differences"  # which tab
    of: str = ""  # `metrics` or `models`; empty means metrics
    # of what follows, examples take the benchmark, one skill, a, b, split, show and case
    benchmark: str = parameter("Whose board; without: the first with results.", "demo_croc")
    a: str = parameter("Entry id; without: the best that is not b.")
    b: str = parameter("Entry id; without: the best that is not a.")
    c: str = parameter("Entry id of a third.")
    d: str = parameter("Entry id of a fourth.")
    skill: str = parameter(SKILLS, several=True)
    measure: str = parameter(MEASURE)
    split: str = parameter("Key of a split; without: all.")
    # empty: failures, of two metrics disagreements
    show: str = parameter("Which cases.", "failures", options=get_args(Show))
    case: str = parameter("Id of the one case to list.")
    page: int = 1  # of the examples, from 1
    # benchmark of the form that asks: where it is another one, metrics are sought anew
    before: str = ""
    seek: bool = False  # whether to go on to the first benchmark on which the metric fails

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> CompareQuery:
        """Read an address; unknown parameters are left alone."""
        given = {name: str(params.get(name, ""))[:_LONGEST] for name in _WORDS}
        given["skill"] = BoardQuery.from_params(params).skill[:_LONGEST]
        view = next((one for one in VIEWS if one == params.get("view")), VIEWS[0])
        return cls(
            view=view,
            of=MODELS if params.get("of") == MODELS else "",
            page=page_number(params),
            before=str(params.get("before", ""))[:_LONGEST],
            seek=params.get("seek") == _YES,
            **given,
        )

    def to_link(self, **changes: str | int) -> str:
        """The address of this state, or of one that differs from it; not escaped for HTML yet."""
        after = replace(self, **changes)  # type: ignore[arg-type]
        view = after.view if after.view != VIEWS[0] else ""
        words = {name: str(getattr(after, name)) for name in _WORDS}
        return address("compare", of=after.of, **words, view=view, page=after.page)

    @property
    def named(self) -> tuple[str, ...]:
        """The third and the fourth metric that are asked for."""
        return tuple(one for one in (self.c, self.d) if one)

    def to_data(self) -> str:
        """The address of the comparison in the API."""
        names = ("benchmark", *SIDES, "measure", "skill")
        return f"./v1/compare{query_of({name: getattr(self, name) for name in names}, '~:,')}"

    def to_items(self) -> str:
        """The address of all examples that are listed in the API."""
        names = ("benchmark", "skill", "split", "a", "b", "show", "case")
        return f"./v1/items{query_of({name: getattr(self, name) for name in names})}"
