"""Compare place as HTML: what its read model gives, put into its templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from benchmarks.comparison import p_words, units_of
from leaderboard.cache import MemoryCache
from leaderboard.publication.entries import MEANINGS, flags_of
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.metric_facts import metric_label, metric_name
from leaderboard.publication.reader import View
from leaderboard.ranking.comparing import flipped_unit
from leaderboard.ranking.slices import Ranked
from leaderboard.rendering import render
from leaderboard.text import clean, count
from leaderboard.views.addresses import (
    address,
    board_address,
    model_pair_address,
    params_of,
    query_string,
)
from leaderboard.views.board_tables import Pair, pairs, tested_places
from leaderboard.views.boards import Choice
from leaderboard.views.compare import (
    ComparedMetric,
    DifferenceTable,
    SkillValues,
    benchmark_options,
    compared_metrics,
    entry_options,
    higher_is_better,
    measure_name,
    measure_options,
    moved_along,
    named_metric,
    resolve_place,
    several_compared,
    skill_options,
    skill_values,
    tab_links,
    two_compared,
    verdict_of,
)
from leaderboard.views.compare_query import MODELS, SIDES, VIEWS, CompareQuery, ViewName
from leaderboard.views.comparison import Agreement, Behind, Opponents, agreement, compare_clusters
from leaderboard.views.examples import BINS, ExampleList, list_examples, seek_failures
from leaderboard.views.examples import Choice as ExampleChoice
from leaderboard.views.figures import Option, in_words
from leaderboard.web.components import (
    HeatCell,
    Line,
    LineChart,
    Link,
    PairCell,
    PairMatrix,
    PairState,
    Scale,
    Tab,
    Values,
)
from leaderboard.web.live import LiveContent

_TITLES: Mapping[ViewName, str] = {
    "differences": "Differences",
    "examples": "Examples",
    "pairs": "All pairs",
    "skills": "Skills",
}
_NONE = Option("", "None")
_EMPHASES: tuple[Literal["a", "b", "l3", "l4"], ...] = ("a", "b", "l3", "l4")
_MOST_STOPS, _MOST_NAMED_STOPS = 30, 6
_KEPT, _KEPT_BYTES, _ROW_BYTES = 256, 16 << 20, 2500
"""Comparisons in memory, and about what a row of one takes."""


@dataclass(frozen=True)
class ComparePlace:
    """Answers the states of the Compare place."""

    view: Callable[[], View]  # what is published
    behind: Behind  # reads the cases and clusters behind values
    # comparisons of two that were asked for, by version of the boards and state
    compared: MemoryCache[Values] = field(
        default_factory=lambda: MemoryCache(_bytes_of, _KEPT_BYTES, _KEPT), repr=False
    )

    def answer(self, query: CompareQuery) -> LiveContent:
        """What is shown for a state."""
        if query.of == MODELS:
            link = Link("Two models", model_pair_address(""))
            html = render("compare/models.html", links=(link,))
            return LiveContent(html, query_string(CompareQuery(of=MODELS).to_link()), "Two models")
        view = self.view()
        if query.view == "examples":
            return self._examples(query, view)
        pair = resolve_place(query, view)
        state = replace(pair.query, view=query.view)
        values = _page(state, view, pair.remarks, tab_links(state, pair.choice))
        values |= {"form": _form(pair, state, view), "simulated": pair.choice.board.card.simulated}
        values |= self._verdict(pair, view)
        template = "nothing"
        if query.view == "pairs" and pair.choice.selector is not None:
            template = "pairs"
            values |= _pairs(pair, state, view, agreement(pair, view, self.behind))
        elif query.view == "skills" and pair.choice.selector is not None:
            template = "skills"
            values |= _skills(pair, state, view)
        elif not values["reason"]:
            template = "several" if values["several"] else "differences"
            values |= self._differences(pair, state, view, values)
        names = in_words([one.name for one in values["metrics"]])
        on = f"{names} on {values['benchmark']}" if names else f"Compare on {values['benchmark']}"
        return LiveContent(
            render(f"compare/{template}.html", **values), query_string(state.to_link()), on
        )

    def _verdict(self, pair: Opponents, view: View) -> Values:
        """The verdict on two metrics or several, or why there is none."""
        choice, card = pair.choice, pair.choice.board.card
        reason, advice = _nothing(pair, view)
        values: Values = {
            "reason": reason, "advice": advice, "board_href": "", "several": None, "two": None,
            "verdict": None, "metrics": (), "legend": (), "tally": None, "uncounted": "", "sizes": (),
            "measure": choice.measure_title, "skill_title": choice.title,
            "measure_name": measure_name(choice),
            "lower_is_better": not higher_is_better(choice), "evidence": "", "better_on": (),
            "names": {},
        }  # fmt: skip
        if reason:
            values["board_href"] = board_address(card.name)
            return values
        chosen = [view.entries[entry] for entry in pair.chosen]
        met = flags_of(chosen, {card.name})
        values["legend"] = [(label, MEANINGS[label]) for label in MEANINGS if label in met]
        if len(pair.chosen) > 2:
            several = several_compared(pair, view)
            return values | {
                "several": several,
                "metrics": compared_metrics(pair, view, several["of_entries"]),
            }
        key = view.version, pair.query
        two = self.compared.of(key, lambda: two_compared(pair, view))
        a, b = pair.chosen
        row = two["chosen"]
        metrics = compared_metrics(pair, view, {a: row.value_a, b: row.value_b})
        verdict = verdict_of(row)
        return values | {
            "two": two,
            "metrics": metrics,
            "names": {one.side: one.name for one in metrics},
            "verdict": verdict,
            "undefined": [one.name for one in metrics if one.value is None],
            "evidence": "" if verdict["p"] else two["evidence"],
            "better_on": list(zip(("a", "b"), two["better_on"], strict=True)),
            "tally": two["counted"],
            "tallied": two["units"],
            "uncounted": two["uncounted"],
            "sizes": [fact for fact in (two["effect"], two["paired"]) if fact],
        }

    def _differences(
        self, pair: Opponents, state: CompareQuery, view: View, values: Mapping[str, Any]
    ) -> Values:
        data = pair.query.to_data()
        if found := values["several"]:
            return {"data": data, "scale": _scale(found["table"]), "unit": units_of(found["unit"])}
        two = values["two"]
        found = compare_clusters(pair, view, self.behind)
        examples = tab_links(state, pair.choice)["examples"]
        case_link = CompareQuery.from_params(params_of(examples)).to_link
        card = pair.choice.board.card
        computed = [("Test", "; ".join(filter(None, (two["evidence"], two["correction"])))),
                    ("Per unit", two["paired"]), ("Effect size", two["effect"])]  # fmt: skip
        return {
            "data": data,
            "measure_scale": _scale(two["by_measure"]),
            "skill_scale": _scale(two["by_skill"]),
            "clusters": found,
            "plot": ClusterPlot.of(found.points, [(gap.a, gap.b) for gap in found.gaps]),
            "cluster_rows": [
                (gap, case_link(case=gap.case, show="disagreements") if gap.case else "")
                for gap in found.gaps
            ],
            "examples_href": case_link(show="disagreements"),
            "computed": [(label, fact) for label, fact in computed if fact],
            "cluster": card.cluster,
            "benchmark_key": card.name,
        }

    def _examples(self, asked: CompareQuery, view: View) -> LiveContent:
        query = moved_along(asked, view)
        wanted = seek_failures(query, view, self.behind) if query.seek else query
        found = list_examples(wanted, view, self.behind)
        if found is None:
            html = render("compare/models.html", links=())
            return LiveContent(html, "", "Compare")
        choice = found.choice
        exact = choice.query
        show = choice.show if choice.a else ""
        state = replace(exact, c=query.c, d=query.d, measure=query.measure, show=show,
                        view="examples", page=found.page)  # fmt: skip
        remarks = [*choice.remarks]
        if query.seek and exact.benchmark != query.benchmark and query.benchmark in view.boards:
            name = clean(metric_name(view.entries[exact.a]))
            before = view.boards[query.benchmark].card.title
            remarks.append(f"No failure by {name} on {before}; shown: {choice.card.title}.")
        values = _page(state, view, remarks, tab_links(state, None))
        values |= {"form": _example_form(choice, state, view), "simulated": choice.card.simulated}
        values |= _examples(found, state, view)
        title = f"{values['headline']}: {choice.card.title}"
        return LiveContent(
            render("compare/examples.html", **values), query_string(state.to_link()), title
        )


def _bytes_of(two: Values) -> int:
    rows = (*two["by_skill"].rows, *two["by_measure"].rows)
    return _ROW_BYTES * (1 + len(rows))


def _page(
    state: CompareQuery, view: View, remarks: Sequence[str], links: Mapping[ViewName, str]
) -> Values:
    """What the frame of every view prints."""
    return {
        "state": state,
        "remarks": remarks,
        "models_href": model_pair_address(""),
        "view_title": _TITLES[state.view],
        "tabs_shown": [
            Tab(_TITLES[name], links[name], name == state.view, go=f"view-{name}") for name in VIEWS
        ],
        "benchmark": view.boards[state.benchmark].card.title,
    }


# Choosing -------------------------------------------------------------------------------------


Side = tuple[str, tuple[Option, ...], str]
"""A side, the metrics to choose from, and the one that is."""


@dataclass(frozen=True)
class Form:
    """What a visitor chooses with."""

    benchmarks: tuple[Option, ...]  # all of them
    sides: tuple[Side, ...]  # a list for each metric
    acts: tuple[Link, ...]  # links that swap metrics or add one
    measures: tuple[Option, ...] = ()  # of the benchmark; none among the examples
    skills: tuple[Option, ...] = ()  # of the benchmark
    skill_title: str = ""  # what is chosen of them
    chosen_skills: tuple[str, ...] = ()  # keys
    splits: tuple[Option, ...] = ()  # of the examples
    shows: tuple[Option, ...] = ()  # which examples may be listed
    show: str = ""  # which are
    hidden: tuple[Option, ...] = ()  # what the form keeps, by name and value


def _form(pair: Opponents, state: CompareQuery, view: View) -> Form:
    options = entry_options(pair.options, pair.chosen, view)
    sides = []
    for side in SIDES[: 2 + len(pair.further)]:
        of = options if side in "ab" else (_NONE, *options)
        sides.append((side, of, getattr(state, side)))
    return Form(
        benchmark_options(view), tuple(sides), _actions(pair, state),
        measures=measure_options(pair.choice), skills=skill_options(pair.choice),
        skill_title=pair.choice.title, chosen_skills=pair.choice.skills,
    )  # fmt: skip


def _actions(pair: Opponents, state: CompareQuery) -> tuple[Link, ...]:
    if not (pair.a and pair.b):
        return ()
    found = [Link("Swap", state.to_link(a=state.b, b=state.a), "swap")]
    others = [entry for entry in pair.options if entry not in pair.chosen]
    side = {0: "c", 1: "d"}.get(len(pair.further))
    if side and others:
        words = "Add a third" if side == "c" else "Add a fourth"
        found.append(Link(words, state.to_link(**{side: others[0]}), "add"))
    return tuple(found)


def _example_form(choice: ExampleChoice, state: CompareQuery, view: View) -> Form:
    options = entry_options(choice.entries, choice.metrics, view)
    card = choice.card
    sides = (
        ("a", options, choice.a), ("b", (_NONE, *options), choice.b)
    ) if options else ()  # fmt: skip
    shows = (Option("failures", "Failures of A"), Option("disagreements", "A and B differ"),
             Option("all", "All cases"))  # fmt: skip
    skills = tuple(Option(skill, skill_title(card, skill)) for skill in choice.skills)
    splits = tuple(Option(split, card.splits.get(split, split)) for split in choice.splits)
    swapped = Link("Swap", state.to_link(a=choice.b, b=choice.a, page=1), "swap")
    kept = tuple(Option(getattr(state, name), name) for name in ("c", "d") if getattr(state, name))
    return Form(
        benchmark_options(view), sides, (swapped,) if choice.b else (),
        skills=(Option("", "All skills"), *skills) if skills else (),
        splits=(Option("", "All splits"), *splits) if splits else (),
        shows=shows if choice.a else (), show=choice.show, hidden=kept,
    )  # fmt: skip


def _nothing(pair: Opponents, view: View) -> tuple[str, str]:
    """Why there is no comparison and what to do; empty where there is one."""
    card = pair.choice.board.card
    if pair.choice.selector is None:
        return f"No metric has a result on {card.title} yet.", "There is nothing to compare."
    if len(pair.options) < 2:
        found = count(len(pair.options), "metric")
        return "There is no pair to compare.", f"{card.title} has {found} by this measure so far."
    if pair.a is None or pair.b is None:
        return "Choose two metrics.", "Choose a metric in each of the two lists above."
    if pair.a == pair.b:
        name = clean(metric_name(view.entries[pair.a]))[:60]
        return "The same metric twice.", f"Both are {name}. Choose another in one of the two lists."
    return "", ""


# Drawings -------------------------------------------------------------------------------------


def _scale(table: DifferenceTable) -> Scale:
    """The axis of differences, with room for marks at both ends."""
    low, high = table.low, table.high
    if high - low < 1e-6:
        low, high = low - 0.05, high + 0.05
    return Scale(low, high, 6.0, 194.0)


@dataclass(frozen=True)
class ClusterPlot:
    """A scatter plot of two metrics over clusters, on one scale."""

    x: Scale  # scale along
    y: Scale  # scale upward
    points: str  # all of them as one path
    rings: tuple[tuple[float, float], ...]  # places of those that are listed

    @classmethod
    def of(
        cls, points: Sequence[tuple[float, float]], ringed: Sequence[tuple[float, float]]
    ) -> ClusterPlot:
        """Place points, and the rings around some."""
        values = [value for point in (*points, *ringed) for value in point] or [0.0, 1.0]
        low, high = min(values), max(values)
        if high - low < 1e-9:
            low, high = low - 0.5, high + 0.5
        x, y = Scale(low, high, 50.0, 550.0), Scale(low, high, 298.0, 10.0)
        # Points of length zero with round ends: one path for thousands of them.
        drawn = "".join(f"M{x.at(a):g} {y.at(b):g}h0" for a, b in points)
        return cls(x, y, drawn, tuple((x.at(a), y.at(b)) for a, b in ringed))

    def label(self, tick: float) -> str:
        """A value as the axes name it."""
        return f"{tick:g}".replace("-", "−")


# All pairs ------------------------------------------------------------------------------------


def _pairs(pair: Opponents, state: CompareQuery, view: View, agreed: Agreement) -> Values:
    choice = pair.choice
    card = choice.board.card
    ranked = view.orders.ranked(card, choice.slices())
    found = pairs(ranked)
    tested = tested_places(ranked, None)
    matrix = pair_matrix(found, ranked, choice, state, view) if found else None
    shown = len(matrix.names) if matrix else 0
    ranked_ids = sum(cell.rank is not None for cell in ranked.cells)
    clusters = [ranked.cells[place].n_clusters for place in tested]
    data = address(f"v1/boards/{card.name}/pairs", skill=state.skill, measure=state.measure)
    return {
        "matrix": matrix,
        "n_tests": len(tested) * (len(tested) - 1) // 2,
        "n_shown": len(found),
        "n_significant": sum(one.significant for one in found),
        "n_tested": len(tested),
        "left_out": len(tested) > shown,
        "untested": max(0, ranked_ids - len(tested)),
        "unit": units_of(flipped_unit(card, ranked.draws.contributions.shape[1], clusters)),
        "why": "",
        "data": data,
        "found": agreed,
        "taus": _taus(agreed),
        "tau_metrics": [named_metric("", view.entries[entry]) for entry in agreed.entries],
    }


def pair_matrix(
    found: Sequence[Pair], ranked: Ranked, choice: Choice, state: CompareQuery, view: View
) -> PairMatrix:
    """The tests of a ranking as a square table; each difference leads to its two metrics."""
    entries = [ranked.cells[place].entry_id for place in tested_places(ranked)]
    place = {entry: i for i, entry in enumerate(entries)}
    rises = higher_is_better(choice)
    cells = [[PairCell("self")] * len(entries) for _ in entries]
    plain = replace(state, view=VIEWS[0], c="", d="")
    for one in found:
        i, j = place[one.a], place[one.b]
        hint = f"{p_words(one.p_corrected)}, corrected"
        for row, column, value in ((i, j, one.difference), (j, i, -one.difference)):
            sure: PairState = "better" if (value > 0) == rises else "worse"
            # Links on one side only: they are most of the table's size.
            href = plain.to_link(a=one.a, b=one.b) if row == i else ""
            cells[row][column] = PairCell(
                sure if one.significant else "none", value, hint=hint, href=href
            )
    names = [metric_name(view.entries[entry]) for entry in entries]
    return PairMatrix("Differences of all pairs of metrics", names, cells)


def _taus(agreed: Agreement) -> list[list[HeatCell]]:
    """The heat cells of the agreement of metrics, by row."""
    known = [tau for line in agreed.taus for tau in line if tau is not None]
    bottom = min([0.0, *known])
    return [
        [
            HeatCell(None, hint="the same metric" if i == j else "constant here") if tau is None
            else HeatCell(tau, (tau - bottom) / ((1 - bottom) or 1))
            for j, tau in enumerate(line)
        ]
        for i, line in enumerate(agreed.taus)
    ]  # fmt: skip


# Skills ---------------------------------------------------------------------------------------


def _skills(pair: Opponents, state: CompareQuery, view: View) -> Values:
    found = skill_values(pair)
    card = pair.choice.board.card
    metrics = compared_metrics(pair, view)
    numbered = len(found) > _MOST_NAMED_STOPS
    others = [
        Link(one.label, state.to_link(benchmark=one.value, a="", b="", c="", d="", measure="",
                                      skill=""), f"benchmark-{one.value}")
        for one in benchmark_options(view)
        if one.value != card.name and view.boards[one.value].skills()
    ]  # fmt: skip
    return {
        "rows": found,
        "skill_href": lambda skill: state.to_link(skill=skill, view=VIEWS[0]),
        "numbered": numbered,
        "chart": _chart(found, metrics, pair.choice.measure_title, numbered=numbered),
        "others": others,
    }  # fmt: skip


def _chart(
    found: Sequence[SkillValues],
    metrics: Sequence[ComparedMetric],
    measure: str,
    *,
    numbered: bool,
) -> LineChart | None:
    """Parallel coordinates of the metrics over the skills; None where a line would be a point."""
    shown = found[:_MOST_STOPS]
    values = [
        cell.value
        for one in shown
        for cell in one.cells
        if cell is not None and cell.value is not None
    ]
    if len(shown) < 2 or not values:
        return None
    stops = [str(place) if numbered else one.title for place, one in enumerate(shown, start=1)]
    lines = [
        Line(
            metric.name,
            [None if cell is None else cell.value for cell in (one.cells[place] for one in shown)],
            _EMPHASES[place],
        )
        for place, metric in enumerate(metrics)
    ]
    low, high = min(values), max(values)
    return LineChart(
        f"{measure} by skill", f"{count(len(shown), 'skill')}; the values are in the table.",
        stops, lines, Scale(low, high if high > low else low + 1.0),
    )  # fmt: skip


# Examples -------------------------------------------------------------------------------------

_NO_FAILURE = "No failure here: this metric orders all of these cases as people do."
_LISTED = {
    "failures": "Worst first",
    "disagreements": "Greatest difference first",
    "all": "In the order of the benchmark",
}
_NOTHING_LISTED = {
    "failures": _NO_FAILURE,
    "disagreements": "These two order every comparison of these cases alike.",
    "all": "No case has this skill and this split.",
}


def _examples(found: ExampleList, state: CompareQuery, view: View) -> Values:
    choice = found.choice
    names = [metric_label(view.entries[entry]) for entry in choice.metrics]
    case_links = {one.case_id: state.to_link(case=one.case_id, page=1) for one in found.examples}
    elsewhere: tuple[Link, ...] = ()
    if found.elsewhere is not None:
        to = found.elsewhere
        link = state.to_link(benchmark=to.benchmark, skill=to.skill, split=to.split, a=to.a, b="",
                             show="failures", page=1)  # fmt: skip
        title = view.boards[to.benchmark].card.title
        elsewhere = (Link(f"Failures on {title}", link, "elsewhere"),)
    show = choice.show if choice.a else "all"
    return {
        "found": found,
        "names": names,
        "headline": _headline(show, names, choice),
        "list_title": _LISTED[show],
        "title": choice.card.title,
        "benchmark": choice.card.name,
        "cluster": choice.card.cluster,
        "alone": bool(choice.query.case) and not found.missing,
        "links": (Link("To the board", board_address(choice.card.name)),),
        "back_href": state.to_link(case="", page=1),
        "case_links": case_links,
        "entries": found.every_entry,
        "entry_name": lambda entry_id: metric_label(view.entries[entry_id]),
        "entry_href": lambda entry_id: state.to_link(
            a=entry_id, b="" if entry_id == choice.b else choice.b
        ),
        "sides": {choice.a: "a", choice.b: "b"},
        "n_left": max(0, len(choice.entries) - len(found.every_entry)),
        "data": choice.query.to_items(),
        "previous_href": state.to_link(page=found.page - 1) if found.page > 1 else "",
        "next_href": state.to_link(page=found.page + 1) if found.page < found.pages else "",
        "none_text": _NOTHING_LISTED[show],
        "elsewhere": elsewhere,
        "bin_labels": [
            f"{100 * place // BINS}–{100 * (place + 1) // BINS}%" for place in range(BINS)
        ],
    }  # fmt: skip


def _headline(show: str, names: Sequence[str], choice: ExampleChoice) -> str:
    if choice.query.case:
        return f"Case {choice.query.case}"
    if show == "failures":
        return f"Images where {names[0]} fails"
    if show == "disagreements":
        return f"Images where {names[0]} and {names[1]} differ"
    return "Prompts and images"
