"""State of the place of models: what an address asks for, and what of it is there."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from benchmarks.prompt_sets.prompt_set import Judge, SetPrompt
from benchmarks.schema import Card
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery, Mean, ModelBoard, ModelSummary, SkillBoard
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import selection, slices_of
from leaderboard.publication.measure_names import in_card_order, skill_title
from leaderboard.publication.metric_facts import metric_label
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.text import clean, one_line
from leaderboard.views.addresses import address, page_number, query_of, texts_of
from leaderboard.views.figures import named
from leaderboard.views.parameters import parameter
from leaderboard.votes.revisions import sets_with_revisions

MOST_NAMED = 60  # Models that a link may name
_LONGEST_QUERY = 300
_LONGEST_PROMPT = 200
_TEXTS = ("skill", "split", "words", "judge", "seed")


@dataclass(frozen=True)
class ModelsQuery:
    """The state of a view of a prompt set. Everything is as asked for, and may not exist."""

    prompt_set: str = ""  # its name; empty: the first of `sets_in_order`
    skill: str = parameter("Key of a skill, to have it and its sub-skills. Without: all skills.")
    split: str = parameter("Only prompts of this split.")
    words: str = parameter("Only prompts that hold all these words.")
    judge: str = parameter(
        "Entry id of the one metric to judge by. Without: the qualified metrics."
    )
    seed: str = parameter(
        "Place, from 1, of the one seed of each model that counts. Without: their mean."
    )
    models: tuple[str, ...] = parameter(
        "Submission ids of the only models to compare, joined by commas.", default=()
    )

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> ModelsQuery:
        """Read an address; unknown parameters are left alone."""
        prompt_set = texts_of(params, "set")["set"]
        # A form names each model in a parameter of its own, a link all of them in one.
        listed = getattr(params, "getlist", None)
        models = listed("models") if listed else [params.get("models", "")]
        named = (one.strip()[:_LONGEST_QUERY] for part in models for one in str(part).split(","))
        kept = tuple(dict.fromkeys(one for one in named if one))[:MOST_NAMED]
        return cls(prompt_set, models=kept, **texts_of(params, *_TEXTS))

    def to_params(self) -> dict[str, str]:
        """The parameters of its address; what says nothing is left out."""
        given = {"set": self.prompt_set, **{name: getattr(self, name) for name in _TEXTS},
                 "models": ",".join(self.models)}  # fmt: skip
        return {name: value for name, value in given.items() if value}

    def to_data(self, part: str = "", **changes: Any) -> str:
        """The address of the table of this view in the API."""
        given = replace(self, **changes).to_params()
        name = given.pop("set", "")
        return f"./v1/models/{name}{f'/{part}' if part else ''}{query_of(given)}"


@dataclass(frozen=True)
class Choice:
    """A query resolved against what exists."""

    query: ModelsQuery  # the exact state, for links
    card: Card  # of the prompt set
    prompts: tuple[SetPrompt, ...]  # of it; empty where its files are not here
    places: tuple[int, ...]  # of the prompts that the filters keep, also by the skill of the query
    # the models with images of its prompts as they are now, oldest first
    entries: tuple[ModelEntry, ...]
    skills: tuple[str, ...]  # every skill and sub-skill of its prompts
    splits: tuple[str, ...]  # of its prompts
    # entry id of every metric that scored at least one of them, to its name
    judges: Mapping[str, str]
    n_seeds: int  # most seeds that a model has
    reader: ModelReader  # reads the models and their scores
    view: View  # the boards of metrics
    remarks: tuple[str, ...] = ()  # what was asked for and could not be shown, in sentences

    @property
    def own_judge(self) -> Judge | None:
        """The judge of the prompt set's authors, where they brought one."""
        return self.reader.prompt_sets[self.card.name].judge

    @property
    def board_query(self) -> BoardQuery:
        """The same as the board is asked for."""
        query = self.query
        return BoardQuery(
            prompt_set=self.card.name,
            split=query.split,
            words=query.words,
            judge=query.judge,
            models=query.models,
            seed=int(query.seed) - 1 if query.seed else None,
            skills=self.with_parts(query.skill) if query.skill else (),
        )

    def with_parts(self, skill: str) -> tuple[str, ...]:
        """A skill and its sub-skills."""
        return (skill, *(one for one in self.skills if one.startswith(f"{skill}:")))

    def of_all_models(self) -> Choice:
        """The same with every model of the board, by which the tests are corrected."""
        return replace(self, query=replace(self.query, models=()))

    def entry(self, submission_id: str) -> ModelEntry | None:
        """One of the models."""
        return next((one for one in self.entries if one.submission_id == submission_id), None)

    @property
    def whole_query(self) -> BoardQuery:
        """The board of all its prompts and skills by the qualified metrics."""
        return BoardQuery(self.card.name)

    def board(self, *skills: str | None, whole: bool = False) -> ModelBoard | None:
        """Its board, of some skills or all; None where there is nothing to compare."""
        if not (self.prompts and self.entries and self.judges) or not (whole or self.places):
            return None
        wanted = self.whole_query if whole else self.board_query
        if skills:
            wanted = replace(wanted, skills=skills)
        return model_board(self.reader, self.view, wanted)

    @cached_property
    def judge(self) -> str:
        """Entry id of the metric whose scores are shown: the chosen one, or the one that leads."""
        if self.query.judge or not self.judges:
            return self.query.judge
        skill = self.query.skill or None
        board = self.board(skill, whole=True)
        lead = board.skills[skill].lead if board and skill in board.skills else None
        return lead if lead in self.judges and lead else next(iter(self.judges))

    def drawn(self, entry: ModelEntry, places: Sequence[int]) -> tuple[Drawn, ...]:
        """The images of a model for some of the prompts, with the scores of `judge`."""
        return self.drawn_by(self.judge, entry, places)

    def drawn_by(self, judge: str, entry: ModelEntry, places: Sequence[int]) -> tuple[Drawn, ...]:
        """The images of a model for some of the prompts, with the scores of a metric."""
        ids = [one.prompt_id for one in self.prompts]
        found = self.reader.scores.of(entry, judge, ids) if judge else None
        seeds = tuple(sorted(set(entry.images.seeds) | set(found.seeds if found else ())))
        scores = np.full((len(seeds), len(places)), np.nan)
        if found is not None:
            rows = [seeds.index(seed) for seed in found.seeds]
            scores[rows] = found.scores[:, np.asarray(places, np.intp)]
        return tuple(Drawn(entry, seeds, tuple(column.tolist())) for column in scores.T)

    def drawn_at(self, place: int) -> list[Drawn]:
        """The images of one prompt by every model, or by those that the query names."""
        wanted = self.query.models
        return [
            one
            for entry in self.entries
            if not wanted or entry.submission_id in wanted
            for one in self.drawn(entry, [place])
        ]


def resolve(
    query: ModelsQuery, reader: ModelReader, view: View, rated: Collection[str] = ()
) -> Choice | None:
    """Find what a query asks for, saying so wherever something else is shown instead."""
    track, sets, said = reader.track(), reader.prompt_sets, list[str]()
    name = _known(query.prompt_set, sets, "prompt set", said)
    name = name or next(iter(sets_in_order(reader, rated)), "")
    if not name:
        return None
    card = sets[name].card
    prompts = reader.prompts(name) or ()
    revisions = {card.revision, *card.same_questions_as}
    entries = tuple(one for one in track.of(name) if one.images.revision in revisions)
    skills = in_card_order(card, slices_of(reader, prompts).skills) if prompts else ()
    splits = tuple(dict.fromkeys(one.split for one in prompts if one.split))
    n_seeds = max((len(one.images.seeds) for one in entries), default=0)
    ids = [one.submission_id for one in entries]
    models = tuple(one for one in query.models if _known(one, ids, "model", said))
    judges = judges_of([one for one in entries if not models or one.submission_id in models], view)
    exact = ModelsQuery(
        name,
        _known(query.skill, skills, "skill", said),
        _known(query.split, splits, "split", said),
        query.words,
        _known(query.judge, judges, "metric", said),
        _seed(query.seed, n_seeds, said),
        models,
    )
    choice = Choice(exact, card, prompts, (), entries, skills, splits, judges, n_seeds, reader, view,
                    tuple(said))  # fmt: skip
    if not prompts:
        return choice
    kept = selection(reader, view, choice.board_query).testing(exact.skill or None)
    return replace(choice, places=tuple(kept.tolist()))


def sets_in_order(reader: ModelReader, rated: Collection[str] = ()) -> tuple[str, ...]:
    """The prompt sets: those with models to compare first, of these the simulated ones last."""
    track, sets = reader.track(), reader.prompt_sets

    def place(name: str) -> tuple[bool, bool]:
        return not track.of(name) and name not in rated, sets[name].card.simulated

    return tuple(sorted(sets, key=place))


def judges_of(entries: Sequence[ModelEntry], view: View) -> dict[str, str]:
    """Every metric on the boards that scored one of some models, to its name and version."""
    scored = (
        entry_id for entry in entries for entry_id, run in entry.judges.items() if not run.failed
    )
    return {
        entry_id: metric_label(view.entries[entry_id])
        for entry_id in dict.fromkeys(scored)
        if entry_id in view.entries
    }


def _seed(asked: str, n_seeds: int, remarks: list[str]) -> str:
    if not asked:
        return ""
    usable = asked.isascii() and asked.isdecimal() and len(asked) < 4
    if usable and 1 <= int(asked) <= max(n_seeds, 1):
        return str(int(asked))
    remarks.append(f"No model has a seed number “{named(asked)}”; shown is the mean of all seeds.")
    return ""


def _known(asked: str, known: Any, what: str, remarks: list[str]) -> str:
    if not asked or asked in known:
        return asked
    remarks.append(f"There is no {what} “{named(asked)}” here.")
    return ""


Order = Literal["worst", "best", "set"]
ORDERS: tuple[Order, ...] = get_args(Order)
PER_PAGE = 12
_LONGEST_ENTRY = 100


@dataclass(frozen=True)
class ModelQuery:
    """The state of the page of a model."""

    submission_id: str  # whose images; may not exist
    of: ModelsQuery  # which of its prompts, and the metric whose scores are shown
    order: Order = "worst"  # of the prompts: by score, or as the set has them
    page: int = 1  # of the prompts, from 1

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> ModelQuery:
        """Read an address; unknown parameters are left alone."""
        order = next((one for one in ORDERS if one == params.get("order")), ORDERS[0])
        submission_id = texts_of(params, "id", most=_LONGEST_ENTRY)["id"]
        return cls(submission_id, ModelsQuery.from_params(params), order, page_number(params))

    def to_link(self, *, page: int = 1, **changes: str) -> str:
        """The address of this view, or of one that differs from it; not escaped for HTML yet."""
        of = replace(self.of, prompt_set="", models=(), **changes)
        order = "" if self.order == ORDERS[0] else self.order
        return address("model", id=self.submission_id, **of.to_params(), order=order, page=page)


ViewName = Literal["skills", "gallery", "seeds", "two", "prompt", "judges", "votes"]
VIEWS: tuple[ViewName, ...] = get_args(ViewName)


@dataclass(frozen=True)
class PlaceQuery:
    """The state of the place of models. Everything is as asked for, and may not exist."""

    of: ModelsQuery = ModelsQuery()  # the prompt set, the filters and the metric
    view: ViewName = "skills"  # which of its views; the first by default
    # column of the table of skills, with `-` before it where the highest comes first;
    # empty: the order of the board
    sort: str = ""
    prompt: str = ""  # id of the one prompt
    # a page begins with the first two of the board
    a: str = parameter("Submission id of a model; with b.")
    b: str = parameter("Submission id of the other.")
    page: int = 1  # of the gallery, from 1
    # whether the chosen models are tested among themselves; tests, tiers and ranks are
    # those of the whole board by default, whichever of its models are shown
    alone: bool = False

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> PlaceQuery:
        """Read an address; unknown parameters are left alone."""
        view = next((one for one in VIEWS if one == params.get("view")), VIEWS[0])
        of, given = ModelsQuery.from_params(params), texts_of(params, "sort", "prompt", "a", "b")
        alone = params.get("alone") == "1" and bool(of.models)
        return cls(of, view, page=page_number(params), alone=alone, **given)

    def to_link(self, **changes: Any) -> str:
        """The address of this view, or of one that differs from it; not escaped for HTML yet."""
        own = {name: changes.pop(name) for name in _OWN if name in changes}
        changed = replace(self, of=replace(self.of, **changes), **own)
        given = changed.of.to_params()
        state = {name: getattr(changed, name) for name in ("sort", "prompt", "a", "b")}
        view = "" if changed.view == VIEWS[0] else changed.view
        named = {"set": "", "view": view} | given | state
        alone = "1" if changed.alone else ""
        return address("models", **named, page=changed.page, alone=alone)

    def to_view(self, view: ViewName, **changes: Any) -> str:
        """The address of another view of the same models; what only one view knows is left out."""
        return PlaceQuery(self.of).to_link(view=view, **changes)

    @property
    def query(self) -> str:
        """The query string of this view, with its question mark; empty for the default."""
        return self.to_link().removeprefix("./models")


def with_votes(query: PlaceQuery, reader: ModelReader) -> PlaceQuery:
    """The query; where it is of votes and names no prompt set, of the first one that has some."""
    if query.view != "votes" or query.of.prompt_set:
        return query
    first = next(iter(sets_with_revisions(reader.public)), "")
    return replace(query, of=replace(query.of, prompt_set=first))


_OWN = ("view", "sort", "prompt", "a", "b", "page", "alone")


VIEW_TITLES: Mapping[ViewName, str] = {
    "skills": "Skills",
    "gallery": "Gallery",
    "seeds": "Seeds",
    "two": "Two models",
    "prompt": "One prompt",
    "judges": "Judges",
    "votes": "Votes",
}


def opponents(
    query: PlaceQuery, choice: Choice, order: tuple[str, ...]
) -> tuple[ModelEntry, ModelEntry, list[str]] | None:
    """The two models, and what was asked for and is not there; None where there are no two."""
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
        said.append("A model is not compared with itself; another is shown.")
        b = ""
    b = b or next(one for one in known if one != a)
    return by_id[a], by_id[b], said


@dataclass(frozen=True)
class Drawn:
    """The images of one model for one prompt."""

    entry: ModelEntry  # the model
    seeds: tuple[int, ...]  # ascending
    scores: tuple[float, ...]  # one for each seed, higher is better; NaN where there is none

    @property
    def mean(self) -> float:
        """Mean of the scores that there are; NaN where there is none."""
        known = [one for one in self.scores if not math.isnan(one)]
        return sum(known) / len(known) if known else math.nan


def plain_name(entry: ModelEntry, limit: int = 60) -> str:
    """Name and version as one line of text; not escaped yet."""
    return one_line(entry.title, limit)


def place_title(query: PlaceQuery, choice: Choice) -> str:
    """Title of a view of the place: the two models, the prompt, or the view and its prompt set."""
    pair = choice.entry(query.a), choice.entry(query.b)
    if query.view == "two" and pair[0] is not None and pair[1] is not None:
        names = " and ".join(plain_name(one, 40) for one in pair if one is not None)
        return f"{names} on {choice.card.title}"
    prompt = next((one for one in choice.prompts if one.prompt_id == query.prompt), None)
    if query.view == "prompt" and prompt is not None:
        return f"“{clean(prompt.text)[:_LONGEST_PROMPT]}”"
    skill = choice.query.skill
    where = choice.card.title + (f": {skill_title(choice.card, skill)}" if skill else "")
    return f"Models on {where}" if query.view == "skills" else f"{VIEW_TITLES[query.view]}: {where}"


def lead_mean(board: SkillBoard, standing: ModelSummary) -> Mean | None:
    """The mean that stands for a model: that of the metric that leads the skill."""
    return standing.means.get(board.lead) if board.lead else None


def models_in_order(board: ModelBoard) -> tuple[str, ...]:
    """Submission ids in the order of the first skill, then those it does not have."""
    found = dict.fromkeys(one for of in board.skills.values() for one in of.standings)
    return tuple(one for one in found if one in board.entries)


PEOPLE_IDENT = "people"
