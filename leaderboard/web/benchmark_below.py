"""Sections below a ranking: tests, skills, printed figures and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.comparison import digits_of_p, plural, units_of
from benchmarks.errata import errata
from benchmarks.published import PublishedCell, papers, printed_digits, published
from benchmarks.schema import Card, Selector
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.publication.metric_facts import metric_name
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import flipped_unit
from leaderboard.ranking.slices import Basis, Ranked
from leaderboard.rendering import render
from leaderboard.text import clean, count, interval, number, signed
from leaderboard.views.addresses import address, compare_address, with_state
from leaderboard.views.benchmark_board import (
    SkillColumn,
    SkillHeat,
    all_printed,
    data_of,
    printed_of,
    ranking_with_tests,
    skill_heat,
)
from leaderboard.views.board_tables import Pair, pairs, tested_places
from leaderboard.views.boards import Choice
from leaderboard.views.citation import NOWHERE, CitedAt, metric_board_citation
from leaderboard.views.figures import rank_range
from leaderboard.web.board_table import direction
from leaderboard.web.components import HeatCell, Values

MOST_DIGITS = 4
"""Digits of a figure in a table of many; on hover it stands as printed."""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, or what it is."""

    text: str  # as it stands in the table
    hint: str = ""  # on hover: as printed, and where
    right: bool = True  # whether it is a figure


@dataclass(frozen=True)
class FigureTable:
    """A table of printed figures, a metric in each row."""

    heading: str  # above it; empty for none
    caption: str  # what it holds
    heads: tuple[str, ...]  # of its columns but the first
    rows: tuple[tuple[str, tuple[Figure, ...]], ...]  # name of the metric and its figures


def as_published(card: Card, selector: Selector, skill: str | None) -> Values | None:
    """The printed figures of one ranking; None where nothing was printed."""
    cells = printed_of(card, selector, skill)
    if not cells:
        return None
    measure, sources = info(card, selector.measure), _numbered(cells)
    heads = (f"{measure.title} ({direction(measure.higher_is_better)} is better)", "As printed",
             "Source")  # fmt: skip
    rows = tuple(
        (cell.metric, (Figure(number(cell.value)), Figure(_printed(cell)), _source(cell, sources)))
        for cell in cells
    )
    table = FigureTable("", f"{measure.title} as published", heads, rows)
    return _published((table,), sources, card, measure=token(selector), skill=skill or "")


def everything_published(card: Card) -> Values | None:
    """All printed figures of metrics: one table a measure, then by skill, then what is left.

    None where nothing was printed.
    """
    every = [cell for cell in published(card.name) if cell.model is None]
    if not every:
        return None
    overall = all_printed(card)
    by_skill = [cell for cell in every if cell.skill is not None and cell.measure in card.measures]
    selectors = tuple(dict.fromkeys(map(_selector, overall)))
    tables = [
        _pivot(card, [s for s in selectors if s.measure == measure], overall)
        for measure in card.measures
        if any(s.measure == measure for s in selectors)
    ]
    among = tuple(dict.fromkeys(map(_selector, by_skill)))
    tables += [_skill_pivot(card, one, by_skill, among) for one in among]
    sources = _numbered(every)
    left = [cell for cell in every if cell.measure not in card.measures]
    if left:
        tables.append(_left(card, left, sources))
    return _published(tuple(tables), sources, card)


def _published(
    tables: tuple[FigureTable, ...], sources: Mapping[str, int], card: Card, **state: str
) -> Values:
    found = []
    for key, place in sources.items():
        paper = papers()[key]
        outside = clean(paper.url).startswith(("https://", "http://"))
        known = sum(one.paper == key for one in errata())
        found.append({
            "number": place, "key": key, "url": paper.url if outside else "",
            "citation": paper.citation, "note": paper.note or "", "errata": known,
        })  # fmt: skip
    data = address(f"v1/boards/{card.name}/published", **state)
    return {"tables": tables, "sources": found, "data": data}


def _pivot(
    card: Card, selectors: Sequence[Selector], cells: Sequence[PublishedCell]
) -> FigureTable:  # fmt: skip
    """Metrics down, the slices of one measure across."""
    of: dict[tuple[str, Selector], list[PublishedCell]] = {}
    for cell in cells:
        of.setdefault((cell.metric, _selector(cell)), []).append(cell)
    measure = info(card, selectors[0].measure)
    heads = tuple(
        title(card, one, selectors).removeprefix(measure.title).strip(" ·") or measure.title
        for one in selectors
    )
    metrics = dict.fromkeys(metric for metric, selector in of if selector in selectors)
    rows = tuple(
        (metric, tuple(_figure(of.get((metric, one), [])) for one in selectors))
        for metric in metrics
    )
    heading = f"{measure.title} ({direction(measure.higher_is_better)} is better)"
    return FigureTable(heading, f"{measure.title} as published", heads, rows)


def _skill_pivot(
    card: Card, selector: Selector, cells: Sequence[PublishedCell], among: Sequence[Selector]
) -> FigureTable:
    """Metrics down, skills across, for one measure."""
    of: dict[tuple[str, str], list[PublishedCell]] = {}
    for cell in cells:
        if _selector(cell) == selector and cell.skill is not None:
            of.setdefault((cell.metric, cell.skill), []).append(cell)
    skills = tuple(dict.fromkeys(skill for _, skill in of))
    rows = tuple(
        (metric, tuple(_figure(of.get((metric, skill), [])) for skill in skills))
        for metric in dict.fromkeys(metric for metric, _ in of)
    )
    name = title(card, selector, among)
    higher = direction(info(card, selector.measure).higher_is_better)
    heads = tuple(skill_title(card, skill) for skill in skills)
    return FigureTable(f"{name} by skill ({higher} is better)", f"{name} by skill as published",
                       heads, rows)  # fmt: skip


def _left(card: Card, cells: Sequence[PublishedCell], sources: Mapping[str, int]) -> FigureTable:
    """Printed figures of what no measure of the board computes, a line each."""
    rows = tuple(
        (cell.metric, (Figure(_in_words(card, cell), right=False), Figure(_printed(cell)),
                       _source(cell, sources)))
        for cell in cells
    )  # fmt: skip
    heads = ("Figure", "As printed", "Source")
    return FigureTable("Other figures", "Other figures as published", heads, rows)


def _in_words(card: Card, cell: PublishedCell) -> str:
    split = card.splits.get(cell.split or "", cell.split or "")
    facet = card.facets.get(cell.facet or "", cell.facet or "")
    skill = skill_title(card, cell.skill) if cell.skill else ""
    return ", ".join(filter(None, (cell.measure, split, facet, skill))).replace("_", " ")


def _figure(cells: Sequence[PublishedCell]) -> Figure:
    """The figure with the most digits; on hover whatever was printed of it, and where."""
    if not cells:
        return Figure("–")
    finest = max(cells, key=_digits)
    printed = (f"{_printed(c)} in {papers()[c.paper].name}, {c.table}" for c in cells)
    return Figure(
        number(finest.value, min(_digits(finest), MOST_DIGITS)), f"printed {'; '.join(printed)}"
    )


def _digits(cell: PublishedCell) -> int:
    return printed_digits(cell.printed) + (2 if cell.in_percent else 0)


def _printed(cell: PublishedCell) -> str:
    return f"{cell.printed}%" if cell.in_percent else cell.printed


def _source(cell: PublishedCell, sources: Mapping[str, int]) -> Figure:
    return Figure(f"{cell.table} [{sources[cell.paper]}]", right=False)


def _selector(cell: PublishedCell) -> Selector:
    return Selector(measure=cell.measure, split=cell.split, variant=cell.variant, facet=cell.facet)


def _numbered(cells: Iterable[PublishedCell]) -> dict[str, int]:
    """Number of each paper in the list of sources."""
    return {key: place for place, key in enumerate(dict.fromkeys(c.paper for c in cells), 1)}


_HUB_COLUMNS = ("measure", "variant", "split", "facet")


def snippets(choice: Choice, data: str, site: str, hub: str = "") -> tuple[tuple[str, str], ...]:
    """The programs that read a ranking, each with its title; the table is `board` in the end."""
    whole = f"{site}{data.removeprefix('./')}"
    parquet = with_state(whole, format="parquet")
    frame = f"import pandas as pd\n\nboard = pd.read_parquet({parquet!a})"
    return (
        ("pandas", frame),
        ("gradio_client", _client(choice, site)),
        ("datasets", _dataset(choice, parquet, hub)),
    )


def _client(choice: Choice, site: str) -> str:
    query, filters = choice.query, choice.query.filters
    laid_out = choice.arranged.to_params()
    given = {
        "skill": query.skill, "measure": query.measure, "kind": filters.kind,
        "search": filters.search, "columns": laid_out["columns"], "sort": laid_out["sort"],
    }  # fmt: skip
    arguments = [f"    {query.benchmark!a},"]
    arguments += [f"    {name}={value!a}," for name, value in given.items() if value]
    arguments += ["    untrained=True,"] if filters.untrained else []
    arguments += ["    within=True,"] if filters.within else []
    lines = "\n".join([*arguments, '    api_name="/board",'])
    return (
        "import pandas as pd\nfrom gradio_client import Client\n\n"
        f"found = Client({site!a}).predict(\n{lines}\n)\n"
        'board = pd.DataFrame(found["rows"])'
    )


def _dataset(choice: Choice, parquet: str, hub: str) -> str:
    """From the dataset of the Hub, where that has the ranking.

    The mean of several skills, ranks among some entries only and other columns are not in it.
    """
    arranged = choice.arranged.columns or choice.arranged.sort
    several = len(choice.skills) > 1
    if not hub or several or choice.filters.active or arranged or choice.selector is None:
        # Not `load_dataset`: for an address it needs packages that may not be there.
        return (
            "import pandas as pd\nfrom datasets import Dataset\n\n"
            f"found = Dataset.from_pandas(pd.read_parquet({parquet!a}))\n"
            "board = found.to_pandas()"
        )
    wanted = {
        "benchmark": choice.query.benchmark,
        **{name: getattr(choice.selector, name) for name in _HUB_COLUMNS},
        "skill": choice.skill,
    }
    lines = "\n".join(
        f"    {name!a}: {ascii(value) if value is not None else None},"
        for name, value in wanted.items()
    )
    return (
        "from datasets import load_dataset\n\n"
        f'found = load_dataset({f"{hub}-results"!a}, "boards", split="train")\n'
        f"wanted = {{\n{lines}\n}}\n"
        "found = found.filter(lambda row: all(row[name] == wanted[name] for name in wanted))\n"
        "board = found.to_pandas()"
    )


MOST_METRICS = 60
"""More rows than this cannot be taken in; the rest is in the CSV."""


@dataclass(frozen=True)
class MatrixCell:
    """A cell of the matrix of pairs."""

    text: str = ""  # difference or p-value; empty on the diagonal
    hint: str = ""  # both, and how they were found
    href: str = ""  # of the comparison; empty below the diagonal
    significant: bool = False  # whether the two differ
    ahead: bool = False  # whether the metric of the row is the better one


def below_of(choice: Choice, view: View, at: CitedAt = NOWHERE, hub: str = "") -> str:
    """The second part of a tab; empty where nothing is ranked."""
    selector = choice.selector
    if selector is None:
        return ""
    card = choice.board.card
    kept = choice.filters.kept(choice.entry_ids(), view.entries, card)
    matrix = None
    if kept is None or kept:
        ranked = ranking_with_tests(choice, view)
        among = None if choice.filters.within else kept
        matrix = matrix_of(ranked, pairs(ranked, among=among), view.entries, choice)
    heat = skill_heat(choice, view)
    programs = snippets(choice, data_of(choice), at.site, hub) if at.site else ()
    printed = None if len(choice.skills) > 1 else as_published(card, selector, choice.skill)
    return render(
        "metrics/benchmark_below.html", matrix=matrix,
        matrix_data=data_of(choice, "pairs"),
        heat=heat_of(heat, choice, view.entries) if heat and heat.entry_ids else None,
        heat_data=data_of(choice, "skills"),
        published=printed, programs=programs, within=choice.filters.within,
        cite=metric_board_citation(choice, at),
    )  # fmt: skip


def matrix_of(
    ranked: Ranked, found: tuple[Pair, ...], entries: Mapping[str, Entry], choice: Choice
) -> Values | None:
    """The tests of a ranking as a square, differences above the diagonal and p-values below; None where fewer than two metrics were tested."""
    if not found:
        return None
    card, query = choice.board.card, choice.query
    shown = list(dict.fromkeys(name for pair in found for name in (pair.a, pair.b)))
    names = [metric_name(entries[entry_id]) for entry_id in shown]
    unit = _unit(ranked, card)
    place = {entry_id: i for i, entry_id in enumerate(shown)}
    measure = choice.selector.measure if choice.selector else ""
    sign = 1.0 if card.higher_is_better(measure) else -1.0
    cells = [[MatrixCell() for _ in shown] for _ in shown]
    for pair in found:
        i, j = place[pair.a], place[pair.b]
        said, ahead = signed(pair.difference), sign * pair.difference >= 0
        hint = (
            f"{names[i]} less {names[j]}: {said}; p {p_stated(pair.p_corrected)}, "
            f"corrected; {differ(pair, unit)}, {patterns(pair)}"
        )
        star = "*" if pair.significant else ""
        there = compare_address(card.name, pair.a, pair.b, skill=query.skill, measure=query.measure)
        cells[i][j] = MatrixCell(f"{said}{star}", hint, there, pair.significant, ahead)
        cells[j][i] = MatrixCell(f"{p_text(pair.p_corrected)}{star}", hint, "", pair.significant)
    hrefs = tuple(f"./metric?id={entry_id}" for entry_id in shown)
    return {
        "names": names, "hrefs": hrefs, "rows": cells, "legend": _matrix_legend(ranked, card, found)
    }  # fmt: skip


def heat_of(heat: SkillHeat, choice: Choice, entries: Mapping[str, Entry]) -> Values:
    """The values by skill as coloured cells."""
    shown = heat.entry_ids[:MOST_METRICS]
    alone = len(heat.entry_ids) == 1
    values = [c.cells[e].value for c in heat.columns for e in shown if e in c.cells]
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    measure = choice.selector.measure if choice.selector else ""
    rises = info(choice.board.card, measure).higher_is_better
    rows = tuple(
        (
            metric_name(entries[entry_id]),
            f"./metric?id={entry_id}",
            tuple(_heat_cell(c, entry_id, (low, high), rises=rises, alone=alone)
                  for c in heat.columns),
        )
        for entry_id in shown
    )  # fmt: skip
    heads = tuple(
        (skill_title(choice.board.card, c.skill), c.tests.best is not None or alone)
        for c in heat.columns
    )
    legend = _heat_legend(heat, choice, (low, high), rises=rises)
    return {"heads": heads, "rows": rows, "legend": legend}


def p_text(p: float) -> str:
    """A p-value for a narrow cell."""
    if p < 0.0005:
        return "<.001"
    return f"{p:.{digits_of_p(p, 3)}f}".removeprefix("0") if p < 0.9995 else "1"


def p_stated(p: float) -> str:
    """A p-value in a sentence: `= 0.012`, `= 2.0e-05`."""
    return f"= {p:.{digits_of_p(p, 3)}f}" if p >= 0.0005 else f"= {p:.1e}"


def differ(pair: Pair, unit: str) -> str:
    """In how many clusters or blocks the two differ."""
    return f"{plural(unit, pair.n_units)} {'differs' if pair.n_units == 1 else 'differ'}"


def patterns(pair: Pair) -> str:
    """How the p-value of a pair was found."""
    if pair.exact:
        return f"exact (all {pair.n_patterns:,} patterns)"
    return f"{pair.n_patterns:,} random patterns"


def _unit(ranked: Ranked, card: Card) -> str:
    n_clusters = [ranked.cells[place].n_clusters for place in tested_places(ranked, None)]
    return flipped_unit(card, ranked.draws.contributions.shape[1], n_clusters)


def _matrix_legend(ranked: Ranked, card: Card, found: tuple[Pair, ...]) -> tuple[str, ...]:
    unit, basis = _unit(ranked, card), Basis.of(ranked)
    in_blocks = f" in {units_of(unit)}" if unit != card.cluster else ""
    tested = len(tested_places(ranked, None))
    shown = len({name for pair in found for name in (pair.a, pair.b)})
    sure = sum(pair.significant for pair in found)
    cut = f" {shown} of {count(tested, 'metric')} shown." if tested > shown else ""
    untested = sum(cell.rank is not None for cell in ranked.cells) - tested
    absent = f" {count(untested, 'metric')} without tests left out." if untested > 0 else ""
    return (
        "Above the diagonal: value of the row's metric less that of the column's. Below: p-value "
        f"after correction. Bold and *: significant at α = 0.05 ({sure} of the "
        f"{count(len(found), 'pair')} shown).{cut}{absent}",
        f"Test: paired permutation by {card.cluster}; signs of the differences are flipped"
        f"{in_blocks}. Joint for {count(basis.n_pairs, 'pair')}.",
    )


def _heat_cell(
    column: SkillColumn, entry_id: str, ends: tuple[float, float], *, rises: bool, alone: bool
) -> HeatCell:
    cell = column.cells.get(entry_id)
    if cell is None or cell.value is None:
        return HeatCell(None, hint=cell.note if cell is not None else "")
    low, high = ends
    share = 0.5 if high <= low else (cell.value - low) / (high - low)
    hint = (
        f"{number(cell.value)} {interval(cell.ci_low, cell.ci_high)}, "
        f"{count(cell.n_clusters, 'cluster')}{_stands(column, cell)}"
    )
    best = column.may_be_best(cell) and not alone
    return HeatCell(cell.value, share if rises else 1.0 - share, hint=hint, best=best)


def _stands(column: SkillColumn, cell: Cell) -> str:
    """How it is known whether it may be the best of its column."""
    tests = column.tests
    if tests.best is None:
        if cell.rank is None:
            return f", {cell.why_unranked}"
        return f", rank {rank_range(cell)} of all metrics"
    if cell.entry_id == tests.best:
        return ", best"
    if cell.entry_id not in tests.corrected:
        return ", not tested against the best"
    return f", against the best p {p_stated(tests.corrected[cell.entry_id])}"


def _heat_legend(
    heat: SkillHeat, choice: Choice, ends: tuple[float, float], *, rises: bool
) -> tuple[str, ...]:
    board, entries = choice.board, len(heat.entry_ids)
    used = tuple(dict.fromkeys(column.selector for column in heat.columns))
    names = " / ".join(title(board.card, one, board.every_selector()) for one in used)
    worse, better = ends if rises else ends[::-1]
    cut = f" {MOST_METRICS} of {count(entries, 'metric')}." if entries > MOST_METRICS else ""
    mixed = (
        " Skills and the whole are computed in different variants; see the measure chooser."
        if len(used) > 1
        else ""
    )
    finer = " Sub-skills are in the skill chooser." if any(":" in s for s in board.skills()) else ""
    scale = (
        f"{names}, from {number(worse, 2)} (lightest) to {number(better, 2)} (strongest colour)."
    )
    return f"{scale}{finer}{mixed}{cut}", _about_best(heat, choice, entries)


def _about_best(heat: SkillHeat, choice: Choice, entries: int) -> str:
    """The rule behind what is underlined, with test, correction and number of tests."""
    if entries == 1:
        return "A single metric is shown, so nothing is marked as the best."
    untested = sum(column.tests.best is None for column in heat.columns)
    ranges = "underlined where the rank range among all metrics reaches 1"
    if not heat.n_tests:
        return f"Nothing could be tested here, so {ranges}."
    others = (
        f" {count(untested, 'column')} marked “not tested”: {ranges}." if untested else ""
    )  # fmt: skip
    of = "the filter's metrics" if choice.filters.within else "all metrics of the board"
    return (
        "Underlined: the best of its column, or no significant difference from it at α = 0.05: "
        f"paired permutation tests by {choice.board.card.cluster}, Benjamini and Hochberg's "
        f"correction over all pairs of {of} in all columns ({count(heat.n_tests, 'test')}).{others}"
    )
