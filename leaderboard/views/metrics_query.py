"""State of the Metrics place: what an address asks for, and the address of exactly that state."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlencode

from leaderboard.text import clean
from leaderboard.views.index import SIMULATED
from leaderboard.views.skill_choice import COSTS, FLOPS, GIGA

SKILL, BENCHMARK = "skill", "benchmark"  # Kinds of tabs beside the first one, as `skill:counting`
MOST_OPEN = 20
CHARTS = {"": "Cost", "ranks": "Ranks", "skills": "Skills"}
"""Drawings of the first tab: accuracy against cost, ranks over benchmarks, values over skills."""
_MOST_COLUMNS = 60
_LONGEST, _LONGEST_WORDS = 4_000, 200
_PLAIN = "~:,/"
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?(?:e[+-]?[0-9]{1,2})?", re.ASCII)
_WEIGHT = "w."  # Before the name of a benchmark: its weight, as the fields of a form give it


@dataclass(frozen=True)
class MetricsQuery:
    """The state of the Metrics place. Everything is as asked for, and may not exist."""

    # empty for the first, `skill:KEY,KEY`, `skill:` for the choice of one, or
    # `benchmark:NAME`
    tab: str = ""
    # key of a column, after `-` for the highest first; empty: best first by the ranking
    # that leads
    sort: str = ""
    # text in names of metrics, backbones, submitters or accounts; of several parted by
    # commas, any
    words: str = ""
    method: str = ""  # as `MetricFacts.method`; empty: any
    access: str = ""  # likewise
    by: str = ""  # which cost, a key of `COSTS`; empty: the one that is known of most metrics
    cost: float | None = None  # the highest that is shown, in FLOPs, seconds for 1,000 pairs or GiB
    columns: tuple[str, ...] = ()  # keys of the columns that are shown; empty: those to begin with
    weights: str = ""  # as in `IndexQuery` and `SkillsQuery`; empty: those to begin with
    open: tuple[str, ...] = ()  # entry ids of the rows that are unfolded
    chart: str = ""  # a key of `CHARTS`
    ratings: str = ""  # `simulated` for the boards of simulated ratings
    page: int = 1  # of the rows, from 1

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> MetricsQuery:
        """Read the parameters of an address, also of those that the index and skills had."""

        def given(name: str, limit: int = _LONGEST) -> str:
            return clean(params.get(name, "")[:limit]).strip()

        tab, words, by = given("tab"), given("skill", _LONGEST_WORDS), given("by", 20)
        by = by if by in COSTS else ""
        sort = given("sort", _LONGEST_WORDS)
        order = given("order", _LONGEST_WORDS)
        page = given("page", 6)
        # A budget is in thousands of millions of operations, as the page of skills had it.
        bound = _positive(given("cost", 20))
        budget = _positive(given("budget", 20))
        if bound is None and budget is not None:
            bound = budget * GIGA if by == FLOPS else budget
        chart = given("chart", 10)
        return cls(
            tab=f"{SKILL}:{words}" if words and tab in {"", f"{SKILL}:"} else tab,
            sort=sort or ("name" if order == "name" else f"-{order}" if order else ""),
            words=given("q", _LONGEST_WORDS),
            method=given("method", _LONGEST_WORDS),
            access=given("access", _LONGEST_WORDS),
            by=by,
            cost=bound,
            columns=tuple(unquote(one) for one in _parts(given("cols")))[:_MOST_COLUMNS],
            weights=given("w") or _weights(params),
            open=tuple(unquote(one) for one in _parts(given("open")))[:MOST_OPEN],
            chart=chart if chart in CHARTS else "",
            ratings=SIMULATED if given("ratings") == SIMULATED else "",
            page=max(1, int(page)) if page.isascii() and page.isdigit() else 1,
        )

    def to_query(self) -> str:
        """The query string of exactly this state, with its question mark; empty at the start."""
        named = {
            "tab": self.tab,
            "ratings": self.ratings,
            "sort": self.sort,
            "q": self.words,
            "method": self.method,
            "access": self.access,
            "by": self.by,
            "cost": "" if self.cost is None else f"{self.cost:.6g}".replace("+", ""),
            "cols": ",".join(quote(one, safe=_PLAIN.replace(",", "")) for one in self.columns),
            "w": self.weights,
            "chart": self.chart,
            "open": ",".join(quote(one, safe="~:/") for one in self.open),
            "page": str(self.page) if self.page > 1 else "",
        }
        kept = {name: value for name, value in named.items() if value}
        return f"?{urlencode(kept, safe=_PLAIN)}" if kept else ""

    def link(self, **changes: object) -> str:
        """The address of a state that differs from this one, from its first page."""
        asked = replace(self, **{"page": 1, **changes})  # type: ignore[arg-type]
        return f"./{asked.to_query()}"

    @property
    def kind(self) -> str:
        """`skill`, `benchmark`, or empty for the first tab."""
        kind = self.tab.partition(":")[0]
        return kind if kind in {SKILL, BENCHMARK} else ""

    @property
    def named(self) -> str:
        """Which skill or benchmark."""
        return self.tab.partition(":")[2]

    @property
    def simulated(self) -> bool:
        """Whether the boards of simulated ratings are asked for."""
        return self.ratings == SIMULATED

    @property
    def sorted_by(self) -> str:
        """Key of the column that rows are sorted by; empty: by the ranking that leads."""
        return self.sort.removeprefix("-")

    @property
    def terms(self) -> tuple[str, ...]:
        """What is searched for, each without regard to case."""
        return tuple(part.strip().casefold() for part in self.words.split(",") if part.strip())

    @property
    def filters(self) -> bool:
        """Whether anything may be left out."""
        return bool(self.terms or self.method or self.access or self.cost is not None)


def _parts(given: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in given.split(",") if part))


def _weights(params: Mapping[str, str]) -> str:
    """The weights that the fields of a form give; an emptied field is 0."""
    given = {
        clean(name.removeprefix(_WEIGHT)): value
        for name, value in params.items()
        if name.startswith(_WEIGHT)
    }
    return ",".join(f"{name}:{value or 0}" for name, value in given.items())[:_LONGEST]


def _positive(given: str) -> float | None:
    if not _NUMBER.fullmatch(given):
        return None
    value = float(given)
    return value if math.isfinite(value) and value > 0 else None
