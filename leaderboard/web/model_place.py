"""Place of models as HTML: one of its views in the frame that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from benchmarks.published import papers
from benchmarks.schema import Card
from leaderboard.models.board_types import Disagreement, Evidence, ModelBoard, SkillBoard
from leaderboard.models.people import rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.publication.measure_names import info, skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.rendering import render
from leaderboard.text import clean, count, signed
from leaderboard.views.figures import Verdict, in_words
from leaderboard.views.model_place import (
    Deciding,
    GalleryView,
    JudgesView,
    PromptView,
    SeedsView,
    SkillsView,
    TwoView,
    gallery_view,
    judges_view,
    prompt_view,
    seeds_view,
    skills_view,
    two_view,
)
from leaderboard.views.model_verdict import (
    verdict_of_board,
    verdict_of_pair,
    verdict_of_people,
)
from leaderboard.views.models import (
    VIEW_TITLES,
    Choice,
    PlaceQuery,
    ViewName,
    board_of,
    judge_of,
    models_in_order,
    place_title,
    plain_name,
    resolve,
    sets_in_order,
)
from leaderboard.web.components import Link, Tab
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

Option = tuple[str, str]
"""What is read, and the value behind it."""
SIMULATED = "Try it yourself (simulated)"
QUALIFIED = "qualified metrics"


@dataclass(frozen=True)
class Select:
    """A field to choose one of several."""

    name: str  # in the address
    label: str  # of the field
    options: tuple[Option, ...]  # to choose from
    chosen: str  # value of the one that is
    group: str = ""  # title of further options that stand together below these
    grouped: tuple[Option, ...] = ()  # these options


def set_field(reader: ModelReader, choice: Choice, rated: Collection[str] = ()) -> Select:
    """The prompt sets: those with models to compare first, simulated ones in a group below."""
    track, real, simulated = reader.track(), list[Option](), list[Option]()
    for name in sets_in_order(reader, rated):
        card = reader.prompt_sets[name].card
        none = not track.of(name) and name not in rated
        title = f"{card.title} (no models yet)" if none else card.title
        (simulated if card.simulated else real).append((title, name))
    return Select("set", "Prompt set", tuple(real), choice.card.name, SIMULATED, tuple(simulated))


def skill_field(choice: Choice, every: str = "All skills") -> tuple[Select, ...]:
    """The skills, if the prompts have any."""
    if not choice.skills:
        return ()
    options = ((every, ""), *((skill_title(choice.card, one), one) for one in choice.skills))
    return (Select("skill", "Skill", options, choice.query.skill),)


def split_field(choice: Choice) -> tuple[Select, ...]:
    """The splits, if the prompts have any."""
    if not choice.splits:
        return ()
    splits = ((choice.card.splits.get(one, one), one) for one in choice.splits)
    return (Select("split", "Split", (("All splits", ""), *splits), choice.query.split),)


def judge_field(
    choice: Choice, standard: str = QUALIFIED, chosen: str | None = None
) -> tuple[Select, ...]:
    """The metrics that scored the models."""
    if not choice.judges:
        return ()
    first = ((standard, ""),) if standard else ()
    options = (*first, *_judge_options(choice.judges))
    return (Select("judge", "Judged by", options,
                   choice.query.judge if chosen is None else chosen),)  # fmt: skip


def seed_field(choice: Choice) -> tuple[Select, ...]:
    """One seed of each model, by its place; models may have different seeds."""
    if choice.n_seeds < 2:
        return ()
    places = ((f"Seed no. {n}", f"{n}") for n in range(1, choice.n_seeds + 1))
    return (Select("seed", "Seed", (("Mean of all", ""), *places), choice.query.seed),)


def model_options(entries: Sequence[ModelEntry]) -> tuple[Option, ...]:
    """Models by name; equal names get their submission."""
    labels = [plain_name(entry) for entry in entries]
    return tuple(
        (f"{label} ({one.submission_id})" if labels.count(label) > 1 else label, one.submission_id)
        for label, one in zip(labels, entries, strict=True)
    )


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


def _judge_options(judges: Mapping[str, str]) -> tuple[Option, ...]:
    """Metrics by name; equal names get their submission."""
    labels = [clean(title) for title in judges.values()]
    return tuple(
        (f"{label} ({entry.partition('/')[0]})" if labels.count(label) > 1 else label, entry)
        for label, entry in zip(labels, judges, strict=True)
    )


MOST_DISAGREEMENTS = 12
"""Pairs that are listed of a skill; the rest is in the download."""
_ALL = "all prompts"
Values = dict[str, Any]


def place_html(query: PlaceQuery, reader: ModelReader, view: View) -> tuple[str, PlaceQuery, str]:
    """A view of the place."""
    rated = rated_sets(reader)
    choice = resolve(query.of, reader, view, rated)
    if choice is None:
        return render("models/place.html", **NAMES, choice=None), query, "Models"
    exact = _exact(query, choice)
    part = _PARTS[exact.view](choice, exact, reader, view)
    exact = part.get("exact", exact)
    values = {
        **part,
        **_frame(choice, exact, reader, rated, part),
        "query": exact,
        "remarks": (*choice.remarks, *part.get("remarks", ())),
    }
    return render("models/place.html", **values), exact, place_title(exact, choice)


def _exact(query: PlaceQuery, choice: Choice) -> PlaceQuery:
    """What was asked for, as far as it is there."""
    of = choice.query
    if not query.of.prompt_set and not any(
        (of.skill, of.split, of.words, of.judge, of.seed, of.models)
    ):
        of = query.of  # The first prompt set need not be named.
    return PlaceQuery(
        of, query.view, query.sort if query.view == "skills" else "",
        query.prompt if query.view == "prompt" else "",
        query.a if query.view == "two" else "", query.b if query.view == "two" else "",
        query.page if query.view == "gallery" else 1, query.alone and bool(of.models),
    )  # fmt: skip


def _frame(
    choice: Choice, query: PlaceQuery, reader: ModelReader, rated: Mapping[str, Any], part: Values
) -> Values:
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
    fields: tuple[Select, ...] = (set_field(reader, choice, rated),)
    if choice.entries:
        fields = (*fields, *part.get("fields", ()))
    reset = query.to_link(words="", split="", skill="", models=(), alone=False)
    return {
        **NAMES,
        "choice": choice,
        "part": f"models/{query.view}.html",
        "views": views,
        "fields": fields,
        "keeps": keeps,
        "words": choice.query.words if choice.entries else None,
        "models": model_options(choice.entries) if offers_models else (),
        "filters": filter_links(choice, query),
        "reset_links": (Link("Remove the filters", reset, "reset"),),
        "queue_links": (Link("Queue", "./submit"),),
    }


def _fields(choice: Choice, judge: str | None = None, *, seed: bool = False) -> tuple[Select, ...]:
    """Metric, skill, split and seed; `judge` is the one that is shown where one always is."""
    judges = judge_field(choice) if judge is None else judge_field(choice, "", judge)
    seeds = seed_field(choice) if seed else ()
    return (*judges, *skill_field(choice), *split_field(choice), *seeds)


def _verdict(choice: Choice, board: ModelBoard | None, people: Any = None) -> Verdict:
    """What is said above every view."""
    title = choice.card.title
    if board is not None and board.skills and board.entries:
        return verdict_of_board(board, title)
    boards = people.boards if people is not None else ()
    if boards and not choice.entries:
        return verdict_of_people(boards[0], alone=True)
    if not choice.entries:
        return Verdict(f"No model has been submitted for {title} yet.", clean(choice.card.summary))
    if not choice.judges:
        said = f"No metric has scored the {count(len(choice.entries), 'model')} on {title} yet."
        return Verdict(said, clean(choice.card.summary))
    if not choice.places and choice.prompts:
        return Verdict(f"No prompt of {title} is left by these filters.")
    return Verdict(f"The models on {title} cannot be compared here.", clean(choice.card.summary))


# Skills.


def _skills(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> Values:
    found = skills_view(choice, query, reader, view)
    values: Values = {
        "view": found,
        "said": _verdict(choice, found.board, found.people),
        "fields": _fields(choice, seed=True),
        "people": _people(found),
        "published": tuple(
            published_table(one, choice.card) for one in (*found.published, *found.elsewhere)
        ),
        "papers": papers(),
        "citation": _citation(choice),
    }
    if found.board is not None:
        values |= _board_values(found.board, choice, query)
    return values


def _board_values(board: ModelBoard, choice: Choice, query: PlaceQuery) -> Values:
    only = choice.query.models if not query.alone else ()
    sort = query.sort if query.sort.removeprefix("-") != "board" else ""
    first = next(iter(board.skills.values()))
    whole = query if query.alone else PlaceQuery(choice.of_all_models().query)
    inside = () if query.of.skill else tuple(
        Link(of.title, query.to_link(skill=of.skill), f"inside-{of.skill}")
        for of in board.skills.values()
        if of.skill is not None and len(choice.with_parts(of.skill)) > 1
    )  # fmt: skip
    listed = [
        (of.title, _disagreements(of, board, query), max(0, n - MOST_DISAGREEMENTS))
        for of in board.skills.values()
        if (n := len(of.disagreements))
    ]
    return {
        "table": skill_table(board, sort, only),
        "data": whole.of.to_data(),
        "inside": inside,
        "outside_skill": query.to_link(skill="") if query.of.skill else "",
        "narrowed": query.to_link(alone=True) if only else "",
        "notes": _notes(board),
        "unranked": [
            (plain_name(board.entries[one]), standing.unranked)
            for one, standing in first.standings.items()
            if standing.unranked and one in board.entries
        ],
        "disagreements": listed,
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
            "href": _two_link(one, of, query),
        }
        for one in of.disagreements[:MOST_DISAGREEMENTS]
    ]


def _two_link(one: Disagreement, of: SkillBoard, query: PlaceQuery) -> str:
    return query.to_view("two", skill=of.skill or "", a=one.first, b=one.second)


def _people(found: SkillsView) -> list[Values]:
    return [
        {
            "board": board,
            "table": people_table(board),
            "said": verdict_of_people(board, alone=False),
            "first": not k and found.board is None,
        }
        for k, board in enumerate(found.people.boards)
    ]


def people_html(name: str, reader: ModelReader) -> str:
    """People's ratings of the models of a prompt set, for a page that shows these alone."""
    boards = rated_sets(reader).get(name, ())
    values = [
        {"board": board, "table": people_table(board), "said": verdict_of_people(board, alone=False),
         "first": False}
        for board in boards[:1]
    ]  # fmt: skip
    card = reader.prompt_sets[name].card
    return render("models/people_alone.html", **NAMES, people=values, card=card)


def _citation(choice: Choice) -> str:
    card = choice.card
    own = f"Assay. Text-to-image models on {card.title} (prompt set {card.name}, revision {card.revision})."
    return "\n".join(filter(None, [own, card.citation]))


# Gallery, seeds, two models, one prompt, judges.


def _gallery(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> Values:
    found: GalleryView = gallery_view(choice, query, reader, view)
    shown = [by_model(case.images, case.prompt, found.judge) for case in found.cases]
    cases = [
        {
            "prompt": case.prompt,
            "skill": skill_title(choice.card, case.skill) if case.skill else "",
            "tiles": images,
            "href": query.to_view("prompt", prompt=case.prompt.prompt_id),
        }
        for case, images in zip(found.cases, shown, strict=True)
    ]
    tiles = [tile for images in shown for tile in images]
    return {
        "view": found,
        "said": _verdict(choice, board_of(choice.of_all_models(), reader, view)),
        "fields": _fields(choice, found.judge),
        "cases": cases,
        "no_images": bool(tiles) and not any(tile.src for tile in tiles),
        "to_page": lambda page: query.to_link(page=page),
    }


def _seeds(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> Values:
    del query
    found: SeedsView = seeds_view(choice, reader, view)
    values: Values = {
        "view": found,
        "said": _verdict(choice, board_of(choice.of_all_models(), reader, view)),
        "fields": _fields(choice, found.judge),
        "own": None,
    }
    report = found.report
    if report is None:
        return values
    own = next((one for one in report.judges if one.judge.entry_id == found.judge), None)
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


def _two(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> Values:
    found: TwoView = two_view(choice, query, reader, view)
    shown = choice if query.alone else choice.of_all_models()
    values: Values = {
        "view": found,
        "said": _verdict(choice, board_of(shown, reader, view)),
        "fields": (),
        "remarks": found.remarks,
    }
    report = found.report
    if report is None:
        return values
    a, b = report.first.submission_id, report.second.submission_id
    exact = query
    if query.a or query.b:
        exact = PlaceQuery(query.of, "two", a=a, b=b, alone=query.alone)
    skill, chosen = choice.query.skill or None, choice.query.judge
    titles: dict[str | None, str] = {
        one: _ALL.capitalize() if one is None else skill_title(choice.card, one)
        for one in report.judges
    }
    judging = {j.entry_id for j in report.judges.get(skill, ()) if j.trusted}
    judging = {chosen} if chosen else judging
    tests = [one for one in report.tests if one.skill == skill and one.judge in judging]
    names = {j.entry_id: j.title for of in report.judges.values() for j in of}
    lead = next((one for one in tests if one.judge == found.judge), next(iter(tests), None))
    data = shown.query.to_data("pairs")
    judge = judge_of(shown, reader, view)
    values |= {
        "exact": exact,
        "fields": (*pair_fields(choice, a, b), *_fields(choice, seed=True)),
        "where": titles.get(skill, _ALL),
        "two_said": verdict_of_pair(report, tests, titles.get(skill, _ALL)).sentence,
        "swapped": PlaceQuery(query.of, "two", a=b, b=a, alone=query.alone).to_link(),
        "first_name": plain_name(report.first, 30),
        "second_name": plain_name(report.second, 30),
        "judged": test_rows(report, titles, qualified=True, chosen=chosen),
        "others": test_rows(report, titles, qualified=False, chosen=chosen),
        "lead_test": lead,
        "lead_title": names.get(lead.judge, "") if lead else "",
        "shares": _shares(lead) if lead else (),
        "data": f"{data}{'&' if '?' in data else '?'}a={a}&b={b}",
        "pairs_data": data,
        "matrix": None,
        "matrix_judge": judge,
        "deciding": _deciding(found, query),
    }
    if found.matrix is not None:
        entries = {one.submission_id: one for one in choice.entries}
        values["matrix"] = model_matrix(found.matrix, entries, query)
    return values


def _shares(test: Any) -> tuple[int, int, int]:
    """Prompts on which the first is better, both are equal, the second is."""
    first, second = (round(share * test.n_prompts) for share in
                     (test.dominance, test.dominance_back))  # fmt: skip
    return first, max(0, test.n_prompts - first - second), second


def _deciding(found: TwoView, query: PlaceQuery) -> list[tuple[Any, list[Values]]]:
    report = found.report
    if report is None or not any(found.deciding):
        return []

    def case(one: Deciding) -> Values:
        difference = one.difference
        # Of what speaks against the whole difference a share of it would be negative.
        part = (
            f", {whole_percent(difference.share)} of the whole difference"
            if difference.share > 0
            else ""
        )
        return {
            "prompt": one.prompt,
            "said": f"{signed(difference.first - difference.second)}{part}",
            "tiles": [
                tile
                for images in one.images
                for tile in by_seed(images, one.prompt, named=True).tiles[:3]
            ],
            "href": query.to_view("prompt", prompt=one.prompt.prompt_id),
        }

    sides = (report.first, report.second)
    return [
        (entry, [case(one) for one in of]) for entry, of in zip(sides, found.deciding, strict=True)
    ]


def _prompt(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> Values:
    found: PromptView = prompt_view(choice, query, reader, view)
    prompt = found.prompt
    part = f"prompts/{_quoted(prompt.prompt_id)}" if prompt else ""
    return {
        "view": found,
        "said": _verdict(choice, board_of(choice.of_all_models(), reader, view)),
        "fields": _fields(choice, found.judge),
        "remarks": found.remarks,
        "to_prompt": lambda prompt_id: query.to_link(prompt=prompt_id),
        "models_images": [by_seed(one, prompt) for one in found.images] if prompt else [],
        "data": choice.query.to_data(part, judge=found.judge, skill="", split="", words="",
                                     seed="") if part else "",
    }  # fmt: skip


def _quoted(prompt_id: str) -> str:
    return quote(prompt_id, safe="")


def _judges(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> Values:
    del query
    found: JudgesView = judges_view(choice, reader, view)
    values: Values = {
        "view": found,
        "said": _verdict(choice, found.board),
        "fields": _fields(choice),
        **_evidence_names(found.cards),
    }
    if found.orderings is not None:
        records = {(one.entry_id, one.benchmark): one for one in found.orderings.found}
        names = list(dict.fromkeys(one.benchmark for one in found.orderings.found))
        values |= {
            "ordering_names": names,
            "ordering_rows": [
                (entry_id, title, [records.get((entry_id, name)) for name in names])
                for entry_id, title in choice.judges.items()
                if any((entry_id, name) in records for name in names)
            ],
        }
    return values


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


_PARTS: Mapping[ViewName, Callable[[Choice, PlaceQuery, ModelReader, View], Values]] = {
    "skills": _skills,
    "gallery": _gallery,
    "seeds": _seeds,
    "two": _two,
    "prompt": _prompt,
    "judges": _judges,
}
