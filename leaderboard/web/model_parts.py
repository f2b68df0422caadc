"""Tables, images and names of models, as the templates below `models/` print them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from benchmarks.errata import Erratum, errata
from benchmarks.model_boards import LEVEL
from benchmarks.prompt_sets.prompt_set import SetPrompt
from benchmarks.prompt_sets.reference import ReferenceRow, ReferenceTable
from benchmarks.rethinking.measures import MetricStability
from benchmarks.schema import Card
from leaderboard.models.board_types import (
    Judge,
    JudgeSeeds,
    Mean,
    ModelBoard,
    ModelSummary,
    PairMatrix,
    PairReport,
    PairTest,
    SkillBoard,
)
from leaderboard.models.people import PeopleBoard, RatedSkill
from leaderboard.publication.entries import shown_account
from leaderboard.publication.measure_names import leaves, skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.records import ModelCard
from leaderboard.text import MISSING, clean, count, interval, number, one_line, signed
from leaderboard.views.addresses import (
    board_address,
    metric_address,
    model_address,
    models_address,
    picture_address,
)
from leaderboard.views.badges import Tag
from leaderboard.views.figures import rank_range
from leaderboard.views.model_verdict import DIGITS, differs, no_order
from leaderboard.views.models import Drawn, PlaceQuery, lead_mean, models_in_order, plain_name
from leaderboard.web.components import (
    Column,
    HeatCell,
    Line,
    LineChart,
    Scale,
    Sorted,
    Tier,
    Values,
)

MOST_MODELS = 200
"""More rows than this help nobody's eyes; the rest is in the download."""
MOST_PAIRED = 30
"""More rows and columns of a matrix, or lines of a chart, than this cannot be followed."""
ALL = "all"
"""Key of the column of all prompts."""
UNDECIDED = "No two models differ significantly."
_LONGEST = 40
Emphasis = Literal["", "a", "b", "l1", "l2", "l3", "l4"]


@dataclass(frozen=True)
class HeatRow:
    """A model and its cells; `entry` is None where people rated it and nobody submitted it."""

    name: str
    cells: tuple[HeatCell, ...]
    entry: ModelEntry | None = None
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True)
class HeatTable:
    """Models by skill."""

    caption: str  # what it shows
    columns: tuple[Column, ...]  # that of the names first
    # tiers and their rows; one group without a tier where it is sorted by a column
    groups: tuple[tuple[Tier | None, tuple[HeatRow, ...]], ...]
    left: int = 0  # models that are not shown


def tags_of(entry: ModelEntry) -> tuple[Tag, ...]:
    """What a reader must know of a model's images before comparing it."""
    seen, card, found = entry.images, entry.card, list[Tag]()
    if seen.shared:
        others = ", ".join(one.submission_id for one in seen.shared)
        found.append(Tag("shared images", "warn", f"To the eye the images of {others}"))
    if entry.same_content_as:
        same = ", ".join(entry.same_content_as)
        found.append(Tag("same content", "warn", f"The very same files as in {same}"))
    withheld = sum(seen.withheld.values())
    if withheld:
        why = ", ".join(f"{reason}: {n:,}" for reason, n in seen.withheld.items())
        found.append(Tag(f"{withheld:,} withheld", "warn", f"Withheld by the submitter ({why})"))
    absent = seen.wanted - seen.present - withheld
    if absent > 0:
        hint = f"{seen.present:,} of {count(seen.wanted, 'image')} are there"
        found.append(Tag(f"{absent:,} missing", "warn", hint))
    if card.selection == "best_of":
        by = f", selected by {card.selected_by}" if card.selected_by else ""
        label = f"best of {card.best_of or 'several'}"
        found.append(Tag(label, "warn", f"Not the first image that was generated{by}"))
    return tuple(found)


# Skills.


def skill_table(board: ModelBoard, sort: str = "", only: Collection[str] = ()) -> HeatTable:
    """The board: one row for each model in its tier, one column for each skill."""
    skills = {of.skill or ALL: of for of in board.skills.values()}
    order = [one for one in models_in_order(board) if not only or one in only]
    by = skills.get(sort.removeprefix("-"))
    if by is not None:
        order = _sorted(order, by, down=sort.startswith("-"))
    shown = order[:MOST_MODELS]
    makers = [_cell_maker(of, gap=not k) for k, of in enumerate(skills.values())]
    rows = {
        one: HeatRow(
            plain_name(board.entries[one]),
            tuple(make(one) for make in makers),
            board.entries[one],
            tags_of(board.entries[one]),
        )
        for one in shown
    }
    first = next(iter(skills.values()))
    groups: list[tuple[Tier | None, tuple[HeatRow, ...]]] = [(None, tuple(rows.values()))]
    if by is None:
        where = "" if first.skill is None else f"by {first.title}"
        groups = [
            (Tier(label, where), tuple(rows[one] for one in of))
            for label, of in groupby(shown, key=lambda one: _tier(first.standings.get(one)))
        ]
    return HeatTable(
        "Mean scores of models by skill, with rank ranges",
        (_names_column(sort), *_skill_columns(skills, board, sort)),
        tuple(groups),
        len(order) - len(shown),
    )


def _sorted(order: Sequence[str], by: SkillBoard, *, down: bool) -> list[str]:
    def place(one: str) -> tuple[bool, float]:
        standing = by.standings.get(one)
        mean = lead_mean(by, standing) if standing else None
        value = mean.value if mean else None
        return value is None, 0.0 if value is None else -value if down else value

    return sorted(order, key=place)


def _names_column(sort: str) -> Column:
    hint = "In the order of the board" if sort else ""
    return Column("board", "Model", first=True, hint=hint, sortable=bool(sort))


def _skill_columns(
    skills: Mapping[str, SkillBoard], board: ModelBoard, sort: str
) -> tuple[Column, ...]:
    columns = []
    for key, of in skills.items():
        titles = {judge.entry_id: judge.title for judge in of.judges}
        by = "no qualified metric"
        if of.lead:
            more = sum(judge.entry_id != of.lead for judge in of.trusted)
            by = one_line(titles.get(of.lead, of.lead), 20)
            by += f" +{more}" if more and not board.query.judge else ""
        turned: dict[str, Sorted] = {f"-{key}": "descending", key: "ascending"}
        columns.append(
            Column(key, of.title, f"{by} · n {of.n_prompts:,}", turned.get(sort, ""),
                   gap=key == ALL, hint=of.note)
        )  # fmt: skip
    return tuple(columns)


def _tier(standing: ModelSummary | None) -> str:
    if standing is None or standing.rank_low is None:
        return "No rank"
    return f"Tier {standing.tier}" if standing.tier is not None else "Ranked, without tiers"


def _cell_maker(of: SkillBoard, *, gap: bool) -> Callable[[str], HeatCell]:
    """What makes the cells of a column: the colour is within it."""
    means = {
        one: mean.value
        for one, standing in of.standings.items()
        if (mean := lead_mean(of, standing)) is not None and mean.value is not None
    }
    low, high = min(means.values(), default=0.0), max(means.values(), default=0.0)
    flat = UNDECIDED if no_order(of) else ""

    def cell(one: str) -> HeatCell:
        standing = of.standings.get(one)
        if standing is None or one not in means:
            why = standing.unranked if standing and standing.unranked else ""
            return HeatCell(None, hint=why or "No score by a qualified metric.", gap=gap)
        ranked = standing.rank_low is not None
        unordered = flat if ranked else standing.unranked
        hint = _hover(of, standing)
        return HeatCell(
            means[one], share(means[one], low, high), 3, rank_range(standing), hint,
            best=ranked and not flat and standing.rank_low == 1, gap=gap,
            unordered=f"{unordered} {hint}" if unordered else "",
            href=model_address(one, skill=of.skill or "", judge=of.lead or ""),
        )  # fmt: skip

    return cell


def share(value: float, low: float, high: float) -> float:
    """Place of a value in its column, from 0 (lowest) to 1."""
    return (value - low) / (high - low) if high > low else 0.5


def _hover(of: SkillBoard, standing: ModelSummary) -> str:
    """All that a cell rests on."""
    mean = lead_mean(of, standing)
    titles = {judge.entry_id: judge.title for judge in of.judges}
    said = []
    if mean is not None:
        said.append(f"{titles.get(of.lead or '', '')}: {number(mean.value)} "
                    f"{interval(mean.ci_low, mean.ci_high)}, n {mean.n_prompts:,}")  # fmt: skip
        said += [f"{mean.n_missing:,} without a score"] if mean.n_missing else []
    for judge in of.trusted:
        other = standing.means.get(judge.entry_id)
        if judge.entry_id != of.lead and other is not None:
            said.append(f"{judge.title}: {number(other.value)}")
    if standing.unranked:
        said.append(f"no rank: {standing.unranked}")
    else:
        said.append(f"significantly better than {len(standing.better_than):,}, worse than "
                    f"{len(standing.worse_than):,} of {len(of.standings) - 1:,}")  # fmt: skip
    return "; ".join(said)


# People's ratings.


def people_table(board: PeopleBoard) -> HeatTable:
    """Models in tiers over all prompts, one column for each skill."""
    overall, skills = board.overall, list(board.skills.values())
    rows = {
        model: HeatRow(
            board.models[model],
            tuple(_rated_cell(of, of.means[model]) for of in skills),
        )
        for model in overall.means
    }
    groups = tuple(
        (Tier("No rank" if tier is None else f"Tier {tier}"), tuple(rows[one] for one in models))
        for tier, models in groupby(overall.means, key=lambda one: overall.means[one].tier)
    )
    label = f"People’s ratings of models on {board.benchmark.title}"
    label += f": {board.gold_title}" if board.gold else ""
    columns = (
        Column("board", "Model", "mean rating, 1–5", first=True, sortable=False),
        *(_rated_column(of) for of in skills),
    )
    return HeatTable(label, columns, groups)


def _rated_column(of: RatedSkill) -> Column:
    hint = of.note or (UNDECIDED if of.undecided else "")
    short = " · no order" if of.note else " · n.s." if of.undecided else ""
    note = f"n {of.n_prompts:,}{short}"
    return Column(of.skill or ALL, of.title, note, gap=of.skill is None, hint=hint, sortable=False)


def _rated_cell(of: RatedSkill, mean: Mean) -> HeatCell:
    gap = of.skill is None
    if mean.value is None:
        return HeatCell(None, hint="No rating", gap=gap)
    known = [one.value for one in of.means.values() if one.value is not None]
    ends = interval(mean.ci_low, mean.ci_high, DIGITS)
    hint = f"{number(mean.value, DIGITS)} {ends}, n {mean.n_prompts:,}"
    if mean.rank is not None:
        hint += f"; rank {mean.rank}, tests leave {rank_range(mean)} open; tier {mean.tier}"
    flat = of.note or (UNDECIDED if of.undecided else "")
    small = f"{ends} {rank_range(mean)}" if gap else rank_range(mean)
    return HeatCell(
        mean.value, share(mean.value, min(known), max(known)), DIGITS, small, hint,
        best=not flat and mean.rank_low == 1, gap=gap, unordered=f"{flat} {hint}" if flat else "",
    )  # fmt: skip


# Two models.


def test_rows(
    report: PairReport, titles: Mapping[str | None, str], *, qualified: bool, chosen: str = ""
) -> list[Values]:
    """One row for each metric and skill; `again` repeats the skill above."""
    rows: list[Values] = []
    for skill, title in titles.items():
        judges = {judge.entry_id: judge for judge in report.judges.get(skill, ())}
        of = [
            test
            for test in report.tests
            if test.skill == skill
            and (judge := judges.get(test.judge)) is not None
            and (judge.entry_id == chosen if chosen else judge.trusted) is qualified
        ]
        rows += [
            {"skill": title, "judge": judges[one.judge], "test": one, "again": k > 0,
             "significant": differs(one)}
            for k, one in enumerate(of)
        ]  # fmt: skip
    return rows


def p_value(p: float) -> str:
    """A p-value for a narrow cell; a dash where there is none."""
    if math.isnan(p):
        return MISSING
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def whole_percent(share: float | None) -> str:
    """A share as per cent without digits after the point; a dash where there is none."""
    return MISSING if share is None or math.isnan(share) else f"{100 * share:.0f}%"


def dominance(test: PairTest, first: str, second: str) -> str:
    """Shares of prompts on which each of two models is strictly better, in words."""
    if math.isnan(test.dominance) or math.isnan(test.dominance_back):
        return ""
    tied = max(0.0, 1.0 - test.dominance - test.dominance_back)
    return (
        f"{first} is better on {whole_percent(test.dominance)}, {second} on "
        f"{whole_percent(test.dominance_back)}, equal on {whole_percent(tied)}"
    )


@dataclass(frozen=True)
class MatrixCell:
    """Above the diagonal a share of prompts, below it a p-value; `state` is a class of the table."""

    shown: str
    state: str = ""
    hint: str = ""
    href: str = ""
    strength: int | None = None


def model_matrix(
    found: PairMatrix, entries: Mapping[str, ModelEntry], query: PlaceQuery
) -> Values | None:
    """Shares of prompts on which the row is better above the diagonal, p-values below it."""
    shown = found.models[:MOST_PAIRED]
    if len(shown) < 2:
        return None
    names = [plain_name(entries[one], _LONGEST) for one in shown]
    cells = tuple(
        tuple(_matrix_cell(found, names, query, i, j) for j in range(len(shown)))
        for i in range(len(shown))
    )
    left = len(found.models) - len(shown)
    return {"entries": [entries[one] for one in shown], "cells": cells, "left": left}


def _matrix_cell(
    found: PairMatrix, names: Sequence[str], query: PlaceQuery, i: int, j: int
) -> MatrixCell:
    if i == j:
        return MatrixCell("", "is-self")
    a, b = min(i, j), max(i, j)
    difference, p = float(found.difference[a, b]), float(found.t_p_holm[a, b])
    won, lost = float(found.dominance[a, b]), float(found.dominance[b, a])
    if math.isnan(difference):
        return MatrixCell(MISSING, "as-none", "not tested")
    sure = p < LEVEL
    star = "*" if sure else ""
    hint = (
        f"{names[a]} minus {names[b]}: {signed(difference)}; better on {whole_percent(won)}, worse on "
        f"{whole_percent(lost)} of the prompts; corrected p {p_value(p)}"
    )
    if i > j:
        return MatrixCell(f"{p_value(p)}{star}", "" if sure else "is-ns", hint)
    state = "is-ns" if not sure else "is-sig" if won >= lost else "is-neg"
    href = query.to_view("two", a=found.models[a], b=found.models[b])
    return MatrixCell(f"{whole_percent(won)}{star}", state, hint, href)


# Seeds.


Ranks = Mapping[str, Sequence[tuple[int | None, float]]]
"""Model to its rank and mean score with each seed."""


def ranks_of(own: JudgeSeeds) -> tuple[dict[str, list[tuple[int | None, float]]], tuple[str, ...]]:
    """Rank and mean of every model with every seed, and what each seed is called."""
    seeds = tuple(dict.fromkeys(one.seed for one in own.scores))
    found: dict[str, list[tuple[int | None, float]]] = {}
    for one in own.scores:
        found.setdefault(one.model, [(None, math.nan)] * len(seeds))
        found[one.model][seeds.index(one.seed)] = one.rank, one.value
    order = sorted(found, key=lambda model: [rank or 10**6 for rank, _ in found[model]])
    return {one: found[one] for one in order}, tuple(f"Seed no. {seed}" for seed in seeds)


def bump_of(
    ranks: Ranks, names: Mapping[str, str], seeds: Sequence[str], judge: str
) -> LineChart | None:
    """Ranks with each seed, joined by lines; where lines cross, seeds disagree."""
    shown = [one for one, of in ranks.items() if any(rank for rank, _ in of)][:MOST_PAIRED]
    if not shown or len(seeds) < 2:
        return None
    marks: tuple[Emphasis, ...] = ("l1", "l2", "l3", "l4")
    lines = tuple(
        Line(
            names.get(one, one),
            tuple(None if rank is None else float(rank) for rank, _ in ranks[one]),
            marks[k] if k < len(marks) else "",
        )
        for k, one in enumerate(shown)
    )
    lowest = max(value for line in lines for value in line.values if value is not None)
    crossing = sum(len({value for value in line.values if value is not None}) > 1 for line in lines)
    said = f"The rank of {count(crossing, 'model')} changes" if crossing else "No rank changes"
    return LineChart(
        f"Rank of each model with each seed by {clean(judge)}", f"{said} with the seed.",
        tuple(seeds), lines, Scale(1.0, max(2.0, lowest)),
    )  # fmt: skip


def stability_tag(stability: MetricStability | None) -> Tag:
    """Whether one metric ranks the models alike with every seed."""
    if stability is None or stability.over_seeds.stable is None:
        return Tag("not known", "", "Fewer than two models have two seeds")
    if stability.over_seeds.stable and math.isnan(stability.over_seeds.tau_mean):
        return Tag("no order", "", "Every seed gives all models the same mean")
    if stability.over_seeds.stable:
        return Tag("stable", "good", "Every seed gives the same order")
    return Tag("not stable", "warn", "Some seeds give another order")


# Figures of one model and of papers.


def judges_of_boards(boards: Sequence[SkillBoard], most: int = 8) -> list[Judge]:
    """Columns of metrics; those that are qualified on most skills come first."""
    qualified: dict[str, int] = {}
    first: dict[str, Judge] = {}
    for of in boards:
        for judge in of.judges:
            first.setdefault(judge.entry_id, judge)
            qualified[judge.entry_id] = qualified.get(judge.entry_id, 0) + judge.trusted
    return sorted(first.values(), key=lambda one: -qualified[one.entry_id])[:most]


def parameters(value: int | None) -> str:
    """A number of weights: `2.6 B`, `860 M`."""
    if value is None:
        return MISSING
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:.3g}\u00a0{unit}"
    return str(value)


def published_table(found: ReferenceTable, card: Card) -> Values:
    """Models down, and across what the paper prints of each."""
    places = list(dict.fromkeys(row.place for row in found.rows))
    of = {(row.model, row.place): row for row in found.rows}
    first = {row.place: row for row in reversed(found.rows)}
    heads = tuple((_head(first[place], card), first[place].metric) for place in places)
    rows = tuple(
        (model, tuple(of.get((model, place)) for place in places)) for model in found.models
    )
    return {"found": found, "heads": heads, "rows": rows}


def _head(row: ReferenceRow, card: Card) -> str:
    parts = [
        card.splits.get(row.split, row.split) if row.split else "",
        skill_title(card, row.skill) if row.skill else "",
        card.facets.get(row.facet, row.facet) if row.facet else "",
        f"seed {row.seed}" if row.seed is not None else "",
    ]
    return " · ".join(filter(None, parts)) or "All prompts"


MOST_SEEDS = 16
"""Images of one model and prompt that are shown."""
NO_SCORE = "no score"


@dataclass(frozen=True)
class ImageTile:
    """An image with what stands below it."""

    model: str  # that generated it, and the seed where several are shown
    prompt: str  # it was generated for
    label: str  # below it: the model or the seed
    score: str  # below it
    src: str = ""  # its address; empty where it is not published
    href: str = ""  # of the model


def by_model(drawn: Sequence[Drawn], prompt: SetPrompt, judge: str = "") -> tuple[ImageTile, ...]:
    """One image of each model, that of its first seed, with its mean score."""
    return tuple(
        ImageTile(
            plain_name(one.entry, 40),
            prompt.text,
            plain_name(one.entry, 40),
            _score(one.mean),
            _address(one.entry, prompt, one.seeds[0]) if one.seeds else "",
            model_address(one.entry.submission_id, judge=judge),
        )
        for one in drawn
    )


def by_seed(drawn: Drawn, prompt: SetPrompt, *, named: bool = False) -> Values:
    """The images of one model with its seeds; `left` are not shown."""
    name = plain_name(drawn.entry, 40)
    shown = list(zip(drawn.seeds, drawn.scores, strict=True))[:MOST_SEEDS]
    tiles = tuple(
        ImageTile(
            f"{name}, seed {seed}",
            prompt.text,
            f"{name}, seed {seed}" if named else f"seed {seed}",
            _score(score),
            _address(drawn.entry, prompt, seed),
        )
        for seed, score in shown
    )
    mean = "" if math.isnan(drawn.mean) else number(drawn.mean)
    left = len(drawn.seeds) - len(shown)
    return {"entry": drawn.entry, "mean": mean, "tiles": tiles, "left": left}


def _score(score: float) -> str:
    return NO_SCORE if math.isnan(score) else number(score)


def _address(entry: ModelEntry, prompt: SetPrompt, seed: int) -> str:
    if not entry.pictures:
        return ""
    return picture_address(entry.submission_id, prompt.prompt_id, seed)


_SIZES = 3
_LONGEST_HINT = 300


def model_hint(entry: ModelEntry) -> str:
    """Submitter and description, on hover."""
    key = shown_account(entry.account)
    hint = f"{entry.title} by {entry.submitter}{f' ({key})' if key else ''}"
    return clean(f"{hint}: {entry.description}" if entry.description else hint)[:_LONGEST_HINT]


def signature(entry: ModelEntry) -> tuple[str, str]:
    """The name that it is signed with and its account; not both where they say the same."""
    key = shown_account(entry.account)
    return "" if key and entry.submitter == key.partition(":")[2] else entry.submitter, key


def taken(card: ModelCard) -> str:
    """How the image of a prompt and seed came about."""
    if card.selection == "first":
        return "first image"
    by = f" by {clean(card.selected_by)[:40]}" if card.selected_by else ""
    return f"best of {card.best_of or 'several'}{by}"


def images_said(entry: ModelEntry) -> str:
    """How many images there are, and of which sizes."""
    seen = entry.images
    sizes = sorted(seen.sizes.items(), key=lambda one: -one[1])
    found = ", ".join(size.replace("x", " × ") for size, _ in sizes[:_SIZES])
    more = f" and {count(len(sizes) - _SIZES, 'more size')}" if len(sizes) > _SIZES else ""
    return f"{seen.present:,}{f', {found}{more}' if found else ''}"


def fine_percent(share: float | None) -> str:
    """A share as per cent with two digits that matter, and never a power of ten."""
    if share is None:
        return MISSING
    of_hundred = 100 * share
    return f"{of_hundred:.0f}%" if of_hundred >= 10 else f"{of_hundred:.2g}%"


def errata_of(found: ReferenceTable) -> list[Erratum]:
    """The errata about a table of a paper."""
    return [one for one in errata() if one.id in found.errata]


NAMES: Mapping[str, Callable[..., Any]] = {
    "board_address": board_address,
    "differs": differs,
    "dominance": dominance,
    "errata_of": errata_of,
    "fine_percent": fine_percent,
    "images_said": images_said,
    "leaves": leaves,
    "metric_address": metric_address,
    "model_address": model_address,
    "model_hint": model_hint,
    "models_address": models_address,
    "p_value": p_value,
    "parameters": parameters,
    "percent": whole_percent,
    "signed": signed,
    "signature": signature,
    "skill_title": skill_title,
    "stability_tag": stability_tag,
    "tags_of": tags_of,
    "taken": taken,
}
"""What every template of models may use."""
