"""Place of models: one of its views in the frame that all of them share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.reference import other_references, references_of
from benchmarks.published import papers
from benchmarks.schema import Card
from leaderboard.models.board_types import (
    Evidence,
    ModelBoard,
    PairReport,
    PairTest,
    PromptDifference,
    SkillBoard,
)
from leaderboard.models.pair import pair_matrix, pair_report
from leaderboard.models.people import PeopleBoard, model_orderings, people_boards, rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.models.variation import robustness, seed_report
from leaderboard.publication.measure_names import info, skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.rendering import render
from leaderboard.text import clean, count, signed
from leaderboard.views.addresses import paged
from leaderboard.views.citation import NOWHERE, CitedAt, model_board_citation
from leaderboard.views.figures import Option, Verdict, in_words, told_apart
from leaderboard.views.model_verdict import (
    verdict_of_board,
    verdict_of_pair,
    verdict_of_people,
    verdict_of_votes,
)
from leaderboard.views.models import (
    PER_PAGE,
    VIEW_TITLES,
    Choice,
    Drawn,
    ModelsQuery,
    PlaceQuery,
    ViewName,
    models_in_order,
    opponents,
    place_title,
    plain_name,
    resolve,
    sets_in_order,
    with_votes,
)
from leaderboard.views.validation_age import age_note, release_date, validation_age
from leaderboard.votes.revisions import read_results
from leaderboard.web.components import Link, Tab, Values
from leaderboard.web.model_parts import (
    NAMES,
    bump_of,
    by_model,
    by_seed,
    model_matrix,
    people_table,
    published_table,
    ranks_of,
    skill_table,
    test_rows,
    whole_percent,
)

SIMULATED = "Try it yourself (simulated)"


@dataclass(frozen=True)
class Select:
    """A field to choose one of several."""

    name: str  # in the address
    label: str  # of the field
    options: tuple[Option, ...]  # to choose from
    chosen: str  # value of the one that is
    group: str = ""  # title of further options that stand together below these
    grouped: tuple[Option, ...] = ()  # these options


def set_field(choice: Choice, rated: Collection[str] = ()) -> Select:
    """The prompt sets: those with models to compare first, simulated ones in a group below."""
    track, real, simulated = choice.reader.track(), list[Option](), list[Option]()
    for name in sets_in_order(choice.reader, rated):
        card = choice.reader.prompt_sets[name].card
        none = not track.of(name) and name not in rated
        title = f"{card.title} (no models yet)" if none else card.title
        (simulated if card.simulated else real).append(Option(name, title))
    return Select("set", "Prompt set", tuple(real), choice.card.name, SIMULATED, tuple(simulated))


def skill_field(choice: Choice) -> tuple[Select, ...]:
    """The skills, if the prompts have any."""
    if not choice.skills:
        return ()
    skills = (Option(one, skill_title(choice.card, one)) for one in choice.skills)
    options = (Option("", "All skills"), *skills)
    return (Select("skill", "Skill", options, choice.query.skill),)


def split_field(choice: Choice) -> tuple[Select, ...]:
    """The splits, if the prompts have any."""
    if not choice.splits:
        return ()
    splits = (Option(one, choice.card.splits.get(one, one)) for one in choice.splits)
    return (Select("split", "Split", (Option("", "All splits"), *splits), choice.query.split),)


def judge_field(choice: Choice, shown: str | None = None) -> tuple[Select, ...]:
    """The metrics that scored the models; `shown` is the one whose scores are, where one always is."""
    if not choice.judges:
        return ()
    judges = told_apart({one: clean(title) for one, title in choice.judges.items()})
    if shown is not None:
        return (Select("judge", "Judged by", judges, shown),)
    options = (Option("", "qualified metrics"), *judges)
    return (Select("judge", "Judged by", options, choice.query.judge),)


def seed_field(choice: Choice) -> tuple[Select, ...]:
    """One seed of each model, by its place; models may have different seeds."""
    if choice.n_seeds < 2:
        return ()
    places = (Option(f"{n}", f"Seed no. {n}") for n in range(1, choice.n_seeds + 1))
    return (Select("seed", "Seed", (Option("", "Mean of all"), *places), choice.query.seed),)


def model_options(entries: Sequence[ModelEntry]) -> tuple[Option, ...]:
    """Models by name."""
    return told_apart({one.submission_id: plain_name(one) for one in entries})


def pair_fields(choice: Choice, a: str, b: str) -> tuple[Select, ...]:
    """The two models, where there are two."""
    if len(choice.entries) < 2:
        return ()
    options = model_options(choice.entries)
    return Select("a", "First", options, a), Select("b", "Second", options, b)


def filter_links(choice: Choice, query: PlaceQuery) -> tuple[Link, ...]:
    """What is filtered, each with the address of the state without it."""
    asked, card = choice.query, choice.card
    named = {
        "skill": f"skill: {skill_title(card, asked.skill)}",
        "split": f"split: {card.splits.get(asked.split, asked.split)}",
        "words": f"words: {asked.words}",
        "judge": f"only {choice.judges.get(asked.judge, asked.judge)}",
        "seed": f"seed no. {asked.seed}",
        "models": f"{len(asked.models)} of {count(len(choice.entries), 'model')}",
    }
    return tuple(
        Link(clean(said)[:80], _without(query, name), f"without-{name}")
        for name, said in named.items()
        if getattr(asked, name)
    )


def _without(query: PlaceQuery, name: str) -> str:
    return query.to_link(models=()) if name == "models" else query.to_link(**{name: ""})


MOST_DISAGREEMENTS = 12
"""Pairs that are listed of a skill; the rest is in the download."""
DECIDING = 4  # Prompts that are shown for each of two models
_ALL = "all prompts"


def place_html(
    query: PlaceQuery, reader: ModelReader, view: View, at: CitedAt = NOWHERE
) -> tuple[str, PlaceQuery, str]:
    """A view of the place, its exact state and its title."""
    query, rated = with_votes(query, reader), rated_sets(reader)
    choice = resolve(query.of, reader, view, rated)
    if choice is None:
        return render("models/place.html", **NAMES, choice=None), query, "Models"
    exact = _exact(query, choice)
    part = part_of(choice, exact)
    exact = part.get("exact", exact)
    values = {
        **part,
        **_frame(choice, exact, rated, part),
        "query": exact,
        "cite": model_board_citation(choice, exact.to_link(), at),
        "remarks": (*choice.remarks, *part.get("remarks", ())),
    }
    return render("models/place.html", **values), exact, place_title(exact, choice)


def part_of(choice: Choice, query: PlaceQuery) -> Values:
    """What the view prints that a query asks for."""
    return _PARTS[query.view](choice, query)


def _exact(query: PlaceQuery, choice: Choice) -> PlaceQuery:
    """What was asked for, as far as it is there."""
    of = choice.query
    if not query.of.prompt_set and of == ModelsQuery(of.prompt_set):
        of = query.of  # The first prompt set need not be named.
    return PlaceQuery(
        of, query.view, query.sort if query.view == "skills" else "",
        query.prompt if query.view == "prompt" else "",
        query.a if query.view == "two" else "", query.b if query.view == "two" else "",
        query.page if query.view == "gallery" else 1, query.alone and bool(of.models),
    )  # fmt: skip


def _frame(choice: Choice, query: PlaceQuery, rated: Mapping[str, Any], part: Values) -> Values:
    """What all views share: tabs, fields, filters, links that help."""
    views = tuple(
        Tab(title, query.to_view(name), current=name == query.view, go=f"view-{name}")
        for name, title in VIEW_TITLES.items()
    )
    keeps = {"view": "" if query.view == "skills" else query.view, "sort": query.sort,
             "prompt": query.prompt, "alone": "1" if query.alone else ""}  # fmt: skip
    offers_models = query.view in ("skills", "gallery") and len(choice.entries) > 2
    if not offers_models:
        keeps["models"] = ",".join(choice.query.models)
    reset = query.to_link(words="", split="", skill="", models=(), alone=False)
    return {
        **NAMES,
        "choice": choice,
        "part": f"models/{query.view}.html",
        "views": views,
        "fields": (set_field(choice, rated), *(part["fields"] if choice.entries else ())),
        "keeps": keeps,
        "words": choice.query.words if choice.entries else None,
        "models": model_options(choice.entries) if offers_models else (),
        "filters": filter_links(choice, query),
        "reset_links": (Link("Remove the filters", reset, "reset"),),
        "queue_links": (Link("Queue", "./submit"),),
    }


def _fields(choice: Choice, judge: str | None = None, *, seed: bool = False) -> tuple[Select, ...]:
    """Metric, skill, split and seed; `judge` is the one that is shown where one always is."""
    seeds = seed_field(choice) if seed else ()
    return (*judge_field(choice, judge), *skill_field(choice), *split_field(choice), *seeds)


def _verdict(
    choice: Choice, board: ModelBoard | None, people: Sequence[PeopleBoard] = ()
) -> Verdict:
    """What is said above every view."""
    title = choice.card.title
    if board is not None and board.skills and board.entries:
        return verdict_of_board(board, title)
    if people and not choice.entries:
        return verdict_of_people(people[0], alone=True)
    if not choice.entries:
        return Verdict(f"No model has been submitted for {title} yet.", clean(choice.card.summary))
    if not choice.judges:
        said = f"No metric has scored the {count(len(choice.entries), 'model')} on {title} yet."
        return Verdict(said, clean(choice.card.summary))
    if not choice.places and choice.prompts:
        return Verdict(f"No prompt of {title} is left by these filters.")
    return Verdict(f"The models on {title} cannot be compared here.", clean(choice.card.summary))


def _tested(choice: Choice, query: PlaceQuery) -> Choice:
    """The models that are tested against each other: all, unless the chosen ones alone are asked."""
    return choice if query.alone else choice.of_all_models()


# Skills.


def _skills(choice: Choice, query: PlaceQuery) -> Values:
    board = _tested(choice, query).board()
    if board is not None and not (board.skills and board.entries):
        board = None
    people: Sequence[PeopleBoard] = ()
    missing = ""
    try:
        people = people_boards(choice.reader.prompt_sets[choice.card.name], choice.reader.data)
    except SubmitterError as error:
        missing = f"{error.message} {error.hint}".strip()
    card = choice.card
    return {
        "board": board,
        "people_missing": missing,
        "said": _verdict(choice, board, people),
        "fields": _fields(choice, seed=True),
        "people": _people(people, alone=board is None),
        "published": tuple(
            published_table(one, card) for one in (*references_of(card.name), *other_references())
        ),
        "papers": papers(),
        **(_board_values(board, choice, query) if board is not None else {}),
    }


def _board_values(board: ModelBoard, choice: Choice, query: PlaceQuery) -> Values:
    only = choice.query.models if not query.alone else ()
    sort = query.sort if query.sort.removeprefix("-") != "board" else ""
    first = next(iter(board.skills.values()))
    inside = () if query.of.skill else tuple(
        Link(of.title, query.to_link(skill=of.skill), f"inside-{of.skill}")
        for of in board.skills.values()
        if of.skill is not None and len(choice.with_parts(of.skill)) > 1
    )  # fmt: skip
    return {
        "table": skill_table(board, sort, only),
        "data": f"{choice.query.to_data()}{'&among=all' if only else ''}",
        "inside": inside,
        "outside_skill": query.to_link(skill="") if query.of.skill else "",
        "narrowed": query.to_link(alone=True) if only else "",
        "notes": _notes(board),
        "age": validation_age(board, choice.card, choice.view),
        "age_note": age_note,
        "release_date": release_date,
        "unranked": [
            (plain_name(board.entries[one]), standing.unranked)
            for one, standing in first.standings.items()
            if standing.unranked and one in board.entries
        ],
        "disagreements": [
            (of.title, _disagreements(of, board, query), max(0, n - MOST_DISAGREEMENTS))
            for of in board.skills.values()
            if (n := len(of.disagreements))
        ],
        "n_disagreements": sum(len(of.disagreements) for of in board.skills.values()),
        "several": any(len(of.trusted) > 1 for of in board.skills.values()),
        "details": [board.entries[one] for one in models_in_order(board)],
    }


def _notes(board: ModelBoard) -> list[tuple[str, str]]:
    """What a reader must know of skills, and of which; a note of all is said once."""
    notes: dict[str, list[str]] = {}
    for of in board.skills.values():
        if of.note:
            notes.setdefault(of.note, []).append(of.title)
    every = len(board.skills) if len(board.skills) > 1 else 0
    return [
        ("All skills" if len(titles) == every else ", ".join(titles), note)
        for note, titles in notes.items()
    ]


def _disagreements(of: SkillBoard, board: ModelBoard, query: PlaceQuery) -> list[Values]:
    titles = {judge.entry_id: judge.title for judge in of.judges}

    def by(one: tuple[str, ...]) -> str:
        return in_words([clean(titles.get(entry_id, entry_id))[:40] for entry_id in one])

    return [
        {
            "by_first": by(one.for_first),
            "by_second": by(one.for_second),
            "first": board.entries[one.first],
            "second": board.entries[one.second],
            "href": query.to_view("two", skill=of.skill or "", a=one.first, b=one.second),
        }
        for one in of.disagreements[:MOST_DISAGREEMENTS]
    ]


def _people(boards: Sequence[PeopleBoard], *, alone: bool) -> list[Values]:
    return [
        {
            "board": board,
            "table": people_table(board),
            "said": verdict_of_people(board, alone=False),
            "first": not k and alone,
        }
        for k, board in enumerate(boards)
    ]


# Gallery.


def _gallery(choice: Choice, query: PlaceQuery) -> Values:
    """For each skill the prompt on which the models differ most; of one skill all its prompts."""
    entries = _compared_models(choice)
    top = [one for one in choice.skills if ":" not in one]
    by_skill = not choice.query.skill and not choice.query.words and bool(top)
    chosen: list[tuple[int, str]] = []
    page = pages = 1
    if entries and choice.places:
        spread = _spread(_means(choice, entries))
        ranked = sorted(choice.places, key=lambda at: -np.nan_to_num(spread[at], nan=-1.0))
        if by_skill:
            chosen = _one_by_skill(choice, top, ranked)
        else:
            shown, page, pages = paged(ranked, query.page, PER_PAGE)
            chosen = [(at, "") for at in shown]
    drawn = [choice.drawn(one, [at for at, _ in chosen]) for one in entries if chosen]
    cases: list[Values] = [
        {
            "prompt": (prompt := choice.prompts[at]),
            "skill": skill_title(choice.card, skill) if skill else "",
            "tiles": by_model([of[k] for of in drawn], prompt, choice.judge),
            "href": query.to_view("prompt", prompt=prompt.prompt_id),
        }
        for k, (at, skill) in enumerate(chosen)
    ]
    tiles = [tile for case in cases for tile in case["tiles"]]
    return {
        "judge": choice.judge,
        "said": _verdict(choice, choice.of_all_models().board()),
        "fields": _fields(choice, choice.judge),
        "cases": cases,
        "by_skill": by_skill,
        "page": page,
        "pages": pages,
        "no_images": bool(tiles) and not any(tile.src for tile in tiles),
        "to_page": lambda page: query.to_link(page=page),
    }


def _one_by_skill(
    choice: Choice, skills: Sequence[str], ranked: Sequence[int]
) -> list[tuple[int, str]]:
    """The first of the ranked prompts of each skill that no skill before it took."""
    taken: dict[int, str] = {}
    for skill in skills:
        parts = set(choice.with_parts(skill))
        of_skill = (at for at in ranked if parts & set(choice.prompts[at].skills))
        at = next((one for one in of_skill if one not in taken), None)
        if at is not None:
            taken[at] = skill
    return list(taken.items())


def _means(choice: Choice, entries: Sequence[ModelEntry]) -> FloatArray:
    """Shape (M, P), the mean over the seeds of each model's scores of each prompt."""
    ids = [one.prompt_id for one in choice.prompts]
    found = np.full((len(entries), len(ids)), np.nan)
    for row, entry in enumerate(entries):
        scores = choice.reader.scores.of(entry, choice.judge, ids) if choice.judge else None
        if scores is not None:
            n = np.isfinite(scores.scores).sum(axis=0)
            total = np.nansum(scores.scores, axis=0)
            found[row] = np.where(n > 0, total / np.maximum(n, 1), np.nan)
    return found


def _spread(means: FloatArray) -> FloatArray:
    """Shape (P,), highest less lowest mean; NaN where fewer than two models have one."""
    known = np.isfinite(means)
    high = np.where(known, means, -np.inf).max(axis=0)
    low = np.where(known, means, np.inf).min(axis=0)
    found: FloatArray = np.where(known.sum(axis=0) > 1, high - low, np.nan)
    return found


def _compared_models(choice: Choice) -> tuple[ModelEntry, ...]:
    """The models that are compared, in the order of the board where there is one."""
    board = choice.of_all_models().board(choice.query.skill or None)
    order = [board.entries[one] for one in models_in_order(board)] if board else choice.entries
    wanted = choice.query.models
    return tuple(one for one in order if not wanted or one.submission_id in wanted)


# Seeds, two models, one prompt, judges.


def _seeds(choice: Choice, _: PlaceQuery) -> Values:
    report, judge = None, ""
    if choice.places and choice.entries and choice.judges:
        # By every metric: whether others agree is what the reader wants to see.
        skills = (choice.query.skill or None,)
        wanted = replace(choice.board_query, skills=skills, judge="", seed=None)
        report, judge = seed_report(choice.reader, choice.view, wanted), choice.judge
    values: Values = {
        "report": report,
        "said": _verdict(choice, choice.of_all_models().board()),
        "fields": _fields(choice, judge),
        "own": None,
    }
    if report is None:
        return values
    own = next((one for one in report.judges if one.judge.entry_id == judge), None)
    names = {one: plain_name(entry) for one, entry in report.entries.items()}
    values |= {
        "own": own,
        "where": skill_title(choice.card, report.skill) if report.skill else _ALL,
        "one_seed": [names[one] for one in report.one_seed if one in names],
    }
    if own is not None and own.stability is not None:
        ranks, seeds = ranks_of(own)
        chart = bump_of(ranks, names, seeds, own.judge.title)
        values |= {"ranks": ranks, "seeds": seeds, "chart": chart}
    return values


def _two(choice: Choice, query: PlaceQuery) -> Values:
    skill, judged = choice.query.skill or None, choice.query.judge
    tested = _tested(choice, query)
    board = tested.board(skill)
    found = opponents(query, tested, models_in_order(board)) if board else None
    said = _verdict(choice, tested.board())
    if board is None or found is None:
        return {"report": None, "said": said, "fields": (), "remarks": ()}
    first, second, remarks = found
    a, b = first.submission_id, second.submission_id
    report = of_skill = pair_report(tested.reader, tested.view, a, b, tested.board_query)
    if skill:  # Among sub-skills the report would name the prompts of all skills.
        alone = replace(tested.board_query, skills=(skill,))
        of_skill = pair_report(tested.reader, tested.view, a, b, alone)
    judge = tested.judge
    decides = judge if judge in of_skill.deciding else next(iter(of_skill.deciding), "")
    matrix = None
    if judge and len(board.entries) > 2:
        made = pair_matrix(tested.reader, tested.view, tested.board_query, skill, judge)
        matrix = model_matrix(made, {one.submission_id: one for one in choice.entries}, query)
    exact = query
    if query.a or query.b:
        exact = PlaceQuery(query.of, "two", a=a, b=b, alone=query.alone)
    titles: dict[str | None, str] = {
        one: _ALL.capitalize() if one is None else skill_title(choice.card, one)
        for one in report.judges
    }
    where = titles.get(skill, _ALL)
    judging = {j.entry_id for j in report.judges.get(skill, ()) if j.trusted}
    judging = {judged} if judged else judging
    tests = [one for one in report.tests if one.skill == skill and one.judge in judging]
    names = {j.entry_id: j.title for of in report.judges.values() for j in of}
    by = decides or judge
    lead = next((one for one in tests if one.judge == by), next(iter(tests), None))
    data = tested.query.to_data("pairs")
    return {
        "report": report,
        "judge": by,
        "said": said,
        "remarks": remarks,
        "exact": exact,
        "fields": (*pair_fields(choice, a, b), *_fields(choice, seed=True)),
        "where": where,
        "two_said": verdict_of_pair(report, tests, where).sentence,
        "swapped": PlaceQuery(query.of, "two", a=b, b=a, alone=query.alone).to_link(),
        "first_name": plain_name(report.first, 30),
        "second_name": plain_name(report.second, 30),
        "judged": test_rows(report, titles, qualified=True, chosen=judged),
        "others": test_rows(report, titles, qualified=False, chosen=judged),
        "lead_test": lead,
        "lead_title": names.get(lead.judge, "") if lead else "",
        "shares": _shares(lead) if lead else (),
        "data": f"{data}{'&' if '?' in data else '?'}a={a}&b={b}",
        "pairs_data": data,
        "matrix": matrix,
        "matrix_judge": judge,
        "deciding": _deciding(of_skill, decides, tested, query),
    }


def _shares(test: PairTest) -> tuple[int, int, int]:
    """Prompts on which the first is better, both are equal, the second is."""
    first, second = (round(share * test.n_prompts) for share in
                     (test.dominance, test.dominance_back))  # fmt: skip
    return first, max(0, test.n_prompts - first - second), second


def telling(
    found: Sequence[PromptDifference],
) -> tuple[list[PromptDifference], list[PromptDifference]]:
    """The prompts that say most for the first, and those that say most for the second."""
    known = [one for one in found if math.isfinite(one.first) and math.isfinite(one.second)]
    first = [one for one in known if one.first > one.second][:DECIDING]
    second = [one for one in reversed(known) if one.second > one.first][:DECIDING]
    return first, second


def _deciding(
    report: PairReport, judge: str, choice: Choice, query: PlaceQuery
) -> list[tuple[ModelEntry, list[Values]]]:
    """Each of two models with the prompts that say most for it; none where no prompt decides."""
    place = {one.prompt_id: k for k, one in enumerate(choice.prompts)}
    sides = telling(report.deciding.get(judge, ()))
    if not any(sides):
        return []

    def case(one: PromptDifference) -> Values:
        prompt = choice.prompts[place[one.prompt_id]]
        # Of what speaks against the whole difference a share of it would be negative.
        part = f", {whole_percent(one.share)} of the whole difference" if one.share > 0 else ""
        drawn = (
            choice.drawn_by(judge, entry, [place[one.prompt_id]])[0]
            for entry in (report.first, report.second)
        )
        return {
            "prompt": prompt,
            "said": f"{signed(one.first - one.second)}{part}",
            "tiles": [
                tile for of in drawn for tile in by_seed(of, prompt, named=True)["tiles"][:3]
            ],
            "href": query.to_view("prompt", prompt=one.prompt_id),
        }

    both = zip((report.first, report.second), sides, strict=True)
    return [(entry, [case(one) for one in of]) for entry, of in both]


def _prompt(choice: Choice, query: PlaceQuery) -> Values:
    """One prompt: that which is asked for, or the first that the filters keep."""
    ids = [one.prompt_id for one in choice.prompts]
    known = query.prompt in ids
    place = ids.index(query.prompt) if known else next(iter(choice.places), None)
    remarks = (f"There is no prompt “{clean(query.prompt)[:60]}” here.",)
    values: Values = {
        "prompt": None,
        "said": _verdict(choice, choice.of_all_models().board()),
        "fields": _fields(choice, "" if place is None else choice.judge),
        "remarks": remarks if query.prompt and not known else (),
    }
    if place is None:
        return values
    prompt = choice.prompts[place]
    at = choice.places.index(place) if place in choice.places else None

    def near(step: int) -> str:
        to = -1 if at is None else at + step
        return ids[choice.places[to]] if 0 <= to < len(choice.places) else ""

    return values | {
        "prompt": prompt,
        "judge": choice.judge,
        "at": None if at is None else at + 1,
        "before": near(-1),
        "after": near(1),
        "to_prompt": lambda prompt_id: query.to_link(prompt=prompt_id),
        "models_images": [by_seed(one, prompt) for one in by_score(choice.drawn_at(place))],
        "data": choice.query.to_data(f"prompts/{quote(prompt.prompt_id, safe='')}",
                                     judge=choice.judge, skill="", split="", words="", seed=""),
    }  # fmt: skip


def by_score(drawn: Sequence[Drawn]) -> list[Drawn]:
    """The highest mean score first, models without any last."""
    return sorted(
        drawn, key=lambda one: (math.isnan(one.mean), 0.0 if math.isnan(one.mean) else -one.mean)
    )


def _judges(choice: Choice, _: PlaceQuery) -> Values:
    board = choice.board()
    values: Values = {
        "board": board,
        "said": _verdict(choice, board),
        "fields": _fields(choice),
        **_evidence_names({name: one.card for name, one in choice.view.boards.items()}),
    }
    if board is None:
        return values
    asked = choice.reader, choice.view, choice.board_query
    orderings = model_orderings(*asked)
    records = {(one.entry_id, one.benchmark): one for one in orderings.found}
    names = list(dict.fromkeys(one.benchmark for one in orderings.found))
    return values | {
        "robustness": [one for one in robustness(*asked) if one.n_images],
        "orderings": orderings,
        "ordering_names": names,
        "ordering_rows": [
            (entry_id, title, [records.get((entry_id, name)) for name in names])
            for entry_id, title in choice.judges.items()
            if any((entry_id, name) in records for name in names)
        ],
    }


def _votes(choice: Choice, _: PlaceQuery) -> Values:
    """People's votes, with the ranks that the qualified metrics leave open beside them."""
    name, title = choice.card.name, choice.card.title
    results = read_results(choice.reader.public, name)
    board = choice.of_all_models().board()
    overall = board.skills.get(None) if board is not None else None
    return {
        "said": verdict_of_votes(results, title),
        "fields": (),
        "results": results,
        "by_metrics": dict(overall.standings) if overall is not None else {},
    }


def _evidence_names(cards: Mapping[str, Card]) -> dict[str, Callable[..., str]]:
    """Names of boards, skills and measures of the evidence, as far as these are known."""

    def card_title(name: str) -> str:
        return cards[name].title if name in cards else name

    def evidence_title(one: Evidence) -> str:
        card = cards.get(one.benchmark)
        if not one.skill:
            return card_title(one.benchmark)
        skill = skill_title(card, one.skill) if card else one.skill
        return f"{card_title(one.benchmark)}, {skill}"

    def evidence_measure(one: Evidence) -> str:
        card = cards.get(one.benchmark)
        return info(card, one.measure).title if card else one.measure

    return {"card_title": card_title, "evidence_title": evidence_title,
            "evidence_measure": evidence_measure}  # fmt: skip


_PARTS: Mapping[ViewName, Callable[[Choice, PlaceQuery], Values]] = {
    "skills": _skills,
    "gallery": _gallery,
    "seeds": _seeds,
    "two": _two,
    "prompt": _prompt,
    "judges": _judges,
    "votes": _votes,
}
