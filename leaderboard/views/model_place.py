"""Views of the place of models: skills, gallery, seeds, two models, one prompt, judges, one model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SetPrompt
from benchmarks.prompt_sets.reference import ReferenceTable, other_references, references_of
from benchmarks.schema import Card
from leaderboard.models.board_types import (
    ModelBoard,
    PairMatrix,
    PairReport,
    PromptDifference,
    SeedReport,
)
from leaderboard.models.pair import pair_matrix, pair_report
from leaderboard.models.people import ModelOrderings, PeopleBoard, model_orderings, people_boards
from leaderboard.models.reading import ModelReader
from leaderboard.models.variation import Robustness, robustness, seed_report
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.records import JudgeRun
from leaderboard.text import clean
from leaderboard.views.addresses import paged
from leaderboard.views.models import (
    PER_PAGE,
    Choice,
    Drawn,
    ModelQuery,
    PlaceQuery,
    board_of,
    drawn_of,
    judge_of,
    models_in_order,
    opponents,
    resolve,
)

DECIDING = 4  # Prompts that are shown for each of two models


@dataclass(frozen=True)
class People:
    """People's ratings of models on a prompt set; `missing` says why there are none to show."""

    boards: tuple[PeopleBoard, ...] = ()
    missing: str = ""


def people_of(choice: Choice, reader: ModelReader) -> People:
    """How people rate models on the prompts of a set."""
    try:
        return People(people_boards(reader.prompt_sets[choice.card.name], reader.data))
    except SubmitterError as error:
        return People(missing=f"{error.message} {error.hint}".strip())


@dataclass(frozen=True)
class SkillsView:
    """The board of models by skill."""

    board: ModelBoard | None  # the models; None where there is nothing to compare
    people: People  # how people rate models on the same prompts
    published: tuple[ReferenceTable, ...]  # figures of papers about the set
    elsewhere: tuple[ReferenceTable, ...]  # figures of papers about models on other prompts


def skills_view(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> SkillsView:
    """The board of a choice, with people's ratings and published figures beside it."""
    board = board_of(_tested(choice, query), reader, view)
    shown = board if board is not None and board.skills and board.entries else None
    name = choice.card.name
    return SkillsView(
        shown, people_of(choice, reader), tuple(references_of(name)), tuple(other_references())
    )


def _tested(choice: Choice, query: PlaceQuery) -> Choice:
    """The models that are tested against each other: all, unless the chosen ones alone are asked."""
    return choice if query.alone else choice.of_all_models()


@dataclass(frozen=True)
class GalleryCase:
    """A prompt and the first image of each model."""

    prompt: SetPrompt
    skill: str  # for which it was chosen; empty where a skill was asked for
    # of the models in the order of the board; the mean over all seeds is the score
    images: tuple[Drawn, ...]
    spread: float  # highest less lowest of these means; NaN where fewer than two have one


@dataclass(frozen=True)
class GalleryView:
    """Images by prompt, those first on which the models differ most."""

    judge: str  # entry id of the metric whose scores are shown; empty where there is none
    cases: tuple[GalleryCase, ...]  # of this page
    page: int = 1  # from 1
    pages: int = 1  # how many there are
    by_skill: bool = False  # whether there is one prompt for each skill


def gallery_view(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> GalleryView:
    """For each skill the prompt on which the models differ most; of one skill all its prompts."""
    judge = judge_of(choice, reader, view)
    entries = _compared_models(choice, reader, view)
    if not (entries and choice.places):
        return GalleryView(judge, ())
    spread = _spread(_means(choice, entries, judge, reader))
    ranked = sorted(choice.places, key=lambda at: -np.nan_to_num(spread[at], nan=-1.0))
    top = [one for one in choice.skills if ":" not in one]
    by_skill = not choice.query.skill and not choice.query.words and bool(top)
    if by_skill:
        chosen = _one_by_skill(choice, top, ranked)
        page, pages = 1, 1
    else:
        shown, page, pages = paged(ranked, query.page, PER_PAGE)
        chosen = [(at, "") for at in shown]
    places = [at for at, _ in chosen]
    drawn = [drawn_of(reader, one, judge, choice.prompts, places) for one in entries]
    cases = tuple(
        GalleryCase(choice.prompts[at], skill, tuple(of[k] for of in drawn), float(spread[at]))
        for k, (at, skill) in enumerate(chosen)
    )
    return GalleryView(judge, cases, page, pages, by_skill)


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


def _means(
    choice: Choice, entries: Sequence[ModelEntry], judge: str, reader: ModelReader
) -> FloatArray:
    """Shape (M, P), the mean over the seeds of each model's scores of each prompt."""
    ids = [one.prompt_id for one in choice.prompts]
    found = np.full((len(entries), len(ids)), np.nan)
    for row, entry in enumerate(entries):
        scores = reader.scores.of(entry, judge, ids) if judge else None
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


def _compared_models(choice: Choice, reader: ModelReader, view: View) -> tuple[ModelEntry, ...]:
    """The models that are compared, in the order of the board where there is one."""
    board = board_of(choice.of_all_models(), reader, view, choice.query.skill or None)
    order = [board.entries[one] for one in models_in_order(board)] if board else choice.entries
    wanted = choice.query.models
    return tuple(one for one in order if not wanted or one.submission_id in wanted)


@dataclass(frozen=True)
class SeedsView:
    """The models over their seeds, by every metric; `judge` is the one whose ranks are drawn."""

    report: SeedReport | None
    judge: str = ""


def seeds_view(choice: Choice, reader: ModelReader, view: View) -> SeedsView:
    """How the order of the models holds over seeds, and how much each varies."""
    if not (choice.places and choice.entries and choice.judges):
        return SeedsView(None)
    skill = choice.query.skill or None
    # By every metric: whether others agree is what the reader wants to see.
    wanted = replace(choice.board_query, skills=(skill,), judge="", seed=None)
    return SeedsView(seed_report(reader, view, wanted), judge_of(choice, reader, view))


@dataclass(frozen=True)
class Deciding:
    """A prompt that decides between two models, with the images of both."""

    difference: PromptDifference
    prompt: SetPrompt
    images: tuple[Drawn, Drawn]


@dataclass(frozen=True)
class TwoView:
    """Two models compared."""

    # tests by every metric on every skill; None where there are no two models
    report: PairReport | None = None
    judge: str = ""  # entry id of the metric of the matrix and the deciding prompts
    # each two models of the board by that metric; None below three models
    matrix: PairMatrix | None = None
    # the prompts that say most for the first, and for the second
    deciding: tuple[tuple[Deciding, ...], tuple[Deciding, ...]] = ((), ())
    remarks: tuple[str, ...] = ()  # what was asked for and is not there


def two_view(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> TwoView:
    """The tests between two models of the board, and what decides between them."""
    skill = choice.query.skill or None
    choice = _tested(choice, query)
    board = board_of(choice, reader, view, skill)
    found = opponents(query, choice, models_in_order(board)) if board else None
    if board is None or found is None:
        return TwoView()
    first, second, said = found
    pair = first.submission_id, second.submission_id
    report = pair_report(reader, view, *pair, choice.board_query)
    judge = judge_of(choice, reader, view)
    of_skill = report
    if skill:  # Among sub-skills the report would name the prompts of all skills.
        of_skill = pair_report(reader, view, *pair, replace(choice.board_query, skills=(skill,)))
    deciding_by = judge if judge in of_skill.deciding else next(iter(of_skill.deciding), "")
    matrix = None
    if judge and len(board.entries) > 2:
        matrix = pair_matrix(reader, view, choice.board_query, skill, judge)
    deciding = _deciding(of_skill, deciding_by, choice, reader)
    return TwoView(report, deciding_by or judge, matrix, deciding, tuple(said))


def telling(
    found: Sequence[PromptDifference],
) -> tuple[list[PromptDifference], list[PromptDifference]]:
    """The prompts that say most for the first, and those that say most for the second."""
    known = [one for one in found if math.isfinite(one.first) and math.isfinite(one.second)]
    first = [one for one in known if one.first > one.second][:DECIDING]
    second = [one for one in reversed(known) if one.second > one.first][:DECIDING]
    return first, second


def _deciding(
    report: PairReport, judge: str, choice: Choice, reader: ModelReader
) -> tuple[tuple[Deciding, ...], tuple[Deciding, ...]]:
    place = {one.prompt_id: k for k, one in enumerate(choice.prompts)}
    first, second = telling(report.deciding.get(judge, ()))

    def of(side: Sequence[PromptDifference]) -> tuple[Deciding, ...]:
        places = [place[one.prompt_id] for one in side]
        images = [
            drawn_of(reader, entry, judge, choice.prompts, places)
            for entry in (report.first, report.second)
        ]
        return tuple(
            Deciding(one, choice.prompts[at], (images[0][k], images[1][k]))
            for k, (one, at) in enumerate(zip(side, places, strict=True))
        )

    return of(first), of(second)


@dataclass(frozen=True)
class PromptView:
    """One prompt and the images of every model."""

    prompt: SetPrompt | None  # None where the filters keep none
    judge: str = ""  # entry id of the metric whose scores are shown; empty where there is none
    images: tuple[Drawn, ...] = ()  # the highest mean score first, models without one last
    # its place, from 1, among the prompts that the filters keep; None: it is not among them
    at: int | None = None
    before: str = ""  # id of the prompt before it among these; empty where there is none
    after: str = ""  # of the next
    remarks: tuple[str, ...] = ()  # what was asked for and is not there


def prompt_view(choice: Choice, query: PlaceQuery, reader: ModelReader, view: View) -> PromptView:
    """One prompt: that which is asked for, or the first that the filters keep."""
    ids = [one.prompt_id for one in choice.prompts]
    known = query.prompt in ids
    place = ids.index(query.prompt) if known else next(iter(choice.places), None)
    asked = bool(query.prompt) and not known
    said = (f"There is no prompt “{clean(query.prompt)[:60]}” here.",) if asked else ()
    if place is None:
        return PromptView(None, remarks=said)
    judge, wanted = judge_of(choice, reader, view), choice.query.models
    drawn = [
        one
        for entry in choice.entries
        if not wanted or entry.submission_id in wanted
        for one in drawn_of(reader, entry, judge, choice.prompts, [place])
    ]
    at = choice.places.index(place) if place in choice.places else None

    def near(step: int) -> str:
        to = None if at is None else at + step
        inside = to is not None and 0 <= to < len(choice.places)
        return ids[choice.places[to]] if inside and to is not None else ""

    return PromptView(
        choice.prompts[place], judge, tuple(by_score(drawn)),
        None if at is None else at + 1, near(-1), near(1), said,
    )  # fmt: skip


def by_score(drawn: Sequence[Drawn]) -> list[Drawn]:
    """The highest mean score first, models without any last."""
    return sorted(
        drawn, key=lambda one: (math.isnan(one.mean), 0.0 if math.isnan(one.mean) else -one.mean)
    )


@dataclass(frozen=True)
class JudgesView:
    """The metrics that judge each skill, and what speaks for and against them."""

    board: ModelBoard | None  # the skills with their judges; None where there is nothing to judge
    cards: Mapping[str, Card]  # of the boards of metrics, by name
    # the one-pixel change by every metric that scored changed images
    robustness: tuple[Robustness, ...] = ()
    # how the metrics order other models, where people rated these
    orderings: ModelOrderings | None = None


def judges_view(choice: Choice, reader: ModelReader, view: View) -> JudgesView:
    """Who judges each skill of a choice, and why."""
    cards = {name: one.card for name, one in view.boards.items()}
    board = board_of(choice, reader, view)
    if board is None:
        return JudgesView(None, cards)
    changed = tuple(one for one in robustness(reader, view, choice.board_query) if one.n_images)
    return JudgesView(board, cards, changed, model_orderings(reader, view, choice.board_query))


@dataclass(frozen=True)
class AbsentModel:
    """In place of a model that is not there."""

    submission_id: str  # that was asked for; empty: none was
    entries: tuple[ModelEntry, ...]  # of the models on the boards
    known: bool  # whether it is on the boards, but its prompt set is not here


@dataclass(frozen=True)
class ModelView:
    """One model."""

    query: ModelQuery  # the exact state
    entry: ModelEntry  # the model
    choice: Choice  # its prompt set, and what of it is shown
    known: Mapping[str, ModelEntry]  # models on the boards, by submission id
    runs: Mapping[str, JudgeRun]  # of the metrics on the boards, by entry id
    board: ModelBoard | None = None  # of the whole set; None where the model stands on none
    seeds: SeedReport | None = None  # of the models by one metric; None likewise
    # the one-pixel change by each metric
    changes: Mapping[str, Robustness] = field(default_factory=dict)
    judge: str = ""  # entry id of the metric whose scores are shown; empty where there is none
    # of this page of prompts: place in the set, and the images
    images: tuple[tuple[int, Drawn], ...] = ()
    page: int = 1  # from 1
    pages: int = 1  # how many there are

    @property
    def current(self) -> bool:
        """Whether its images are of the prompts as they are now."""
        return self.entry in self.choice.entries


def model_view(query: ModelQuery, reader: ModelReader, view: View) -> ModelView | AbsentModel:
    """One model, or which there are where it is not there."""
    track = reader.track()
    entry = track.entries.get(query.submission_id)
    every = tuple(track.entries.values())
    if entry is None or entry.prompt_set not in reader.prompt_sets:
        return AbsentModel(query.submission_id, every, known=entry is not None)
    choice = resolve(replace(query.of, prompt_set=entry.prompt_set, models=()), reader, view)
    if choice is None:
        return AbsentModel(query.submission_id, (), known=True)
    query = replace(query, of=choice.query)
    # Metrics that were taken off the boards are named nowhere.
    runs = {one: run for one, run in entry.judges.items() if one in view.entries}
    # Of an earlier revision nothing is compared: its prompts may be others.
    whole = board_of(choice, reader, view, whole=True) if entry in choice.entries else None
    if whole is None:
        return ModelView(query, entry, choice, track.entries, runs)
    judge = judge_of(choice, reader, view)
    every_prompt = replace(
        choice.board_query, split="", words="", judge="", models=(), seed=None, skills=()
    )
    changes = {one.judge.entry_id: one for one in robustness(reader, view, every_prompt)}
    seeds = seed_report(reader, view, replace(every_prompt, judge=judge))
    drawn = drawn_of(reader, entry, judge, choice.prompts, choice.places)
    order = in_order(drawn, query)
    shown, page, pages = paged(order, query.page, PER_PAGE)
    images = tuple((choice.places[at], drawn[at]) for at in shown)
    return ModelView(query, entry, choice, track.entries, runs, whole, seeds, changes, judge,
                     images, page, pages)  # fmt: skip


def in_order(drawn: Sequence[Drawn], query: ModelQuery) -> list[int]:
    """Places of the prompts in the order of a query; those without a score come last."""
    places = list(range(len(drawn)))
    if query.order == "set":
        return places
    sign = 1.0 if query.order == "worst" else -1.0
    means = [one.mean for one in drawn]
    return sorted(
        places, key=lambda at: sign * means[at] if not math.isnan(means[at]) else math.inf
    )
