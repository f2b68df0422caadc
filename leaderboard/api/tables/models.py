"""Text-to-image models: which there are, the board of a prompt set, tests, images, people's ratings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Annotated, Any

from fastapi import Path

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SetPrompt
from leaderboard.api.replies import bad_query, not_found
from leaderboard.api.schemas import Parameters, model_of
from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import as_of
from leaderboard.models.board import model_board as judged_board
from leaderboard.models.board_types import (
    Judge,
    ModelBoard,
    ModelSummary,
    PairMatrix,
    PairReport,
    PairTest,
    SkillBoard,
)
from leaderboard.models.pair import pair_matrix, pair_report
from leaderboard.models.people import PeopleBoard, people_boards
from leaderboard.models.reading import ModelReader
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.addresses import models_address, picture_address
from leaderboard.views.models import (
    PEOPLE_IDENT,
    Choice,
    Drawn,
    ModelsQuery,
    PlaceQuery,
    judges_of,
    resolve,
)
from leaderboard.views.parameters import text
from leaderboard.views.validation_age import ValidationAge, release_date, validation_age

_MODELS = (
    "prompt_set", "submission_id", "model", "version", "submitter", "account", "description",
    "licence", "hub_model", "hub_revision", "parameters", "steps", "guidance", "drawn_on",
    "selection", "best_of", "selected_by", "seeds", "n_images", "n_wanted", "n_withheld",
    "shares_images_with", "same_content_as", "n_judges", "revision", "received_at", "published_at",
    "released",
)  # fmt: skip
_BOARD = (
    "skill", "skill_title", "model", "version", "submission_id", "metric", "metric_title",
    "trusted", "pinned", "lead", "value", "ci_low", "ci_high", "n_prompts", "n_missing",
    "metric_rank_low", "metric_rank", "metric_rank_high", "metric_tier", "rank_low", "rank_high",
    "tier", "unranked", "better_than", "worse_than",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "guidance value ci_low ci_high",
    Type.COUNT: "parameters steps best_of n_images n_wanted n_withheld n_judges n_prompts n_missing "
    "metric_rank_low metric_rank metric_rank_high metric_tier rank_low rank_high tier",
    Type.FLAG: "trusted pinned lead",
}
_MEANINGS = {
    "parameters": "Number of weights, as declared; so are steps, guidance, drawn_on and selection.",
    "selection": "first: the first image drawn; best_of: the best of several.",
    "released": "Day of its release, as declared, or the month that benchmarks/generators.toml has; "
    "missing where neither is known.",
    "seeds": "Joined by commas.",
    "shares_images_with": "Submissions with images that are the same to the eye, joined by commas.",
    "skill": "Missing: all prompts.",
    "metric": "Entry id of the metric that judges.",
    "trusted": "Whether it is qualified to judge this skill; the others are shown and do not judge.",
    "pinned": "Whether an operator, not the rule, decided that.",
    "lead": "Whether the page shows its means.",
    "value": "Mean score over the prompts, in units of the metric; higher is better.",
    "metric_rank": "By this metric alone.",
    "rank_low": "Best rank by all metrics that judge the skill.",
    "rank_high": "Worst rank by all metrics that judge the skill.",
    "tier": "Likewise: no model of it differs significantly from its first.",
    "unranked": "Why it has no rank; empty where it has one.",
    "better_than": "Submission ids, joined by commas: a qualified metric says so with significance, "
    "and none the contrary.",
    "worse_than": "Likewise.",
}

_PAIRS = (
    "skill", "skill_title", "model_a", "submission_a", "model_b", "submission_b", "metric",
    "metric_title", "trusted", "difference", "ci_low", "ci_high", "n_prompts", "n_missing", "t",
    "p_value", "p_corrected", "wilcoxon_w", "wilcoxon_p", "dominance_a", "dominance_b",
)  # fmt: skip
_PAIRS_TYPES = {
    Type.NUMBER: "difference ci_low ci_high t p_value p_corrected wilcoxon_w wilcoxon_p dominance_a "
    "dominance_b",
    Type.COUNT: "n_prompts n_missing",
    Type.FLAG: "trusted",
}
_PAIRS_MEANINGS = {
    "skill": "Missing: all prompts.",
    "metric": "Entry id of the metric that judges.",
    "trusted": "Whether it is qualified to judge this skill.",
    "difference": "Mean of a less that of b, in units of the metric.",
    "ci_low": "Of the difference; only where two models are asked for, as are t and the like.",
    "p_value": "Of Student's paired t, two-sided, before correction.",
    "p_corrected": "After Holm's, over all pairs of models and all metrics that judge the skill.",
    "wilcoxon_p": "Two-sided, not corrected.",
    "dominance_a": "Share of prompts on which a is strictly better.",
    "dominance_b": "Share of prompts on which b is strictly better.",
}

_PROMPT = (
    "prompt_id", "prompt", "model", "version", "submission_id", "seed", "metric", "score", "image",
)  # fmt: skip
_PROMPT_TYPES = {Type.NUMBER: "score", Type.COUNT: "seed"}
_PROMPT_MEANINGS = {
    "metric": "Entry id of the metric that gave the score.",
    "score": "Higher is better.",
    "image": "Address of its thumbnail, relative to the site; missing where none is published.",
}

MOST_MODELS = 300  # Models whose pairs are one answer
router = TableRouter()

PromptSet = Annotated[
    str,
    Path(description="Name of a prompt set, as /v1/models lists them.", examples=["demo_prompts"]),
]


_ALL = "all"


class ModelsParameters(Parameters):
    """Parameters of the list of models."""

    prompt_set: str = text("Only those that drew it.", "demo_prompts")


_OF_PROMPT = ("judge", "models")
_OF_BOARD = (*_OF_PROMPT, "skill", "split", "words", "seed")


class RankedModelsParameters(model_of(ModelsQuery, *_OF_BOARD)):  # type: ignore[misc]
    """Parameters of the ranks of models."""

    among: str = text(
        "`all`: `models` are the only ones listed, and ranks, tiers and tests those among all. Without: those "
        "among `models`.",
        _ALL,
        options=(_ALL,),
    )


def reader_of(source: Source, prompt_set: str = "") -> ModelReader:
    """What reads the models; without prompt sets where the installation has none."""
    reader = source.model_reader
    if prompt_set and prompt_set not in reader.prompt_sets:
        raise not_found(
            "unknown_prompt_set", "There is no such prompt set here.", "See /v1/models."
        )
    return reader


@router.table("/models", of_snapshot=False)
def models(source: Source, query: ModelsParameters) -> Table:
    """Text-to-image models on the boards; `about.prompt_sets` lists what they drew."""
    view, reader = source.reader.view(), reader_of(source)
    wanted = query.prompt_set
    if wanted and wanted not in reader.prompt_sets:
        raise bad_query("There is no such prompt set here.", "See /v1/models.")
    entries = reader.track().entries.values()
    rows = [_model(one, view) for one in entries if wanted in ("", one.prompt_set)]
    sets = [
        {"name": name, "title": one.card.title, "summary": one.card.summary,
         "revision": one.card.revision, "simulated": one.card.simulated,
         "licence": one.card.licence, "board": f"models/{name}"}
        for name, one in reader.prompt_sets.items()
    ]  # fmt: skip
    about = {"as_of": as_of(view), "prompt_sets": sets}
    return Table("models", columns_of(_MODELS, _TYPES, _MEANINGS), rows, about)


@router.table("/models/{prompt_set}", of_snapshot=False)
def model_board(source: Source, prompt_set: PromptSet, query: RankedModelsParameters) -> Table:
    """The board of the models of a prompt set: means by skill and metric, with ranks.

    `about.disagreements` has the models that trusted metrics order in opposite ways, and
    `about.validation` those that are newer than all that a judge was tested on.
    """
    choice = chosen(source, prompt_set, ModelsQuery.from_params(query.to_params()))
    if query.among not in {"", _ALL}:
        raise bad_query(f"“among” is {_ALL} or left out.", "Leave it out to test `models` alone.")
    listed, tested = choice.query.models, choice.of_all_models() if query.among else choice
    rows: list[dict[str, Value]] = []
    page = PlaceQuery(choice.query, alone=bool(listed) and not query.among)
    about = about_of(choice) | {"page": page.to_link()}
    if choice.places and choice.entries and choice.judges:
        with source.turn():
            found = judged_board(choice.reader, choice.view, tested.board_query)
        rows = [
            row
            for of in found.skills.values()
            for row in _of_skill(of, found)
            if not listed or row["submission_id"] in listed
        ]
        about |= _about_board(found)
        about["validation"] = _about_validation(validation_age(found, choice.card, choice.view))
    name = f"{choice.card.name}-models"
    return Table(name, columns_of(_BOARD, _TYPES, _MEANINGS), rows, about)


@router.table(
    "/models/{prompt_set}/pairs", of_snapshot=False,
    takes=model_of(PlaceQuery, *_OF_BOARD, "a", "b"),
)  # fmt: skip
def model_pairs(source: Source, prompt_set: PromptSet, query: PlaceQuery) -> Table:
    """Two models by every metric on every skill; without them each two models on one skill."""
    choice = chosen(source, prompt_set, query.of)
    a, b = query.a, query.b
    known = set(choice.query.models) or {one.submission_id for one in choice.entries}
    if bool(a) != bool(b) or (a and (a not in known or b not in known or a == b)):
        raise bad_query("“a” and “b” are not two models of this board.", "See /v1/models.")
    name, columns = f"{choice.card.name}-pairs", columns_of(_PAIRS, _PAIRS_TYPES, _PAIRS_MEANINGS)
    about = about_of(choice)
    if not (choice.places and choice.entries and choice.judges):
        return Table(name, columns, [], about)
    with source.turn():
        if a:
            report = pair_report(choice.reader, choice.view, a, b, choice.board_query)
            return Table(name, columns, _of_report(report, choice), about)
        return Table(name, columns, _of_all(choice), about)


@router.table(
    "/models/{prompt_set}/prompts/{prompt_id:path}", of_snapshot=False,
    takes=model_of(ModelsQuery, *_OF_PROMPT),
)  # fmt: skip
def model_prompt(
    source: Source,
    prompt_set: PromptSet,
    prompt_id: Annotated[
        str,
        Path(description="Of a prompt; a slash may stand as it is.", examples=["color_simple_1"]),
    ],
    query: ModelsQuery,
) -> Table:
    """What every model drew of a prompt, with the scores of one metric."""
    choice = chosen(source, prompt_set, query)
    ids = [one.prompt_id for one in choice.prompts]
    if prompt_id not in ids:
        raise not_found("unknown_prompt", "There is no such prompt in this set.",
                        "Its page lists them.")  # fmt: skip
    place = ids.index(prompt_id)
    with source.turn():
        drawn = choice.drawn_at(place)
    found = choice.prompts[place]
    rows = [row for one in drawn for row in _images(one, found, choice.judge)]
    about = about_of(choice) | {
        "skills": list(found.skills),
        "split": found.split,
        "elements": [
            {"element_id": one.element_id, "text": one.text, "skill": one.skill}
            for one in found.elements
        ],
    }
    columns = columns_of(_PROMPT, _PROMPT_TYPES, _PROMPT_MEANINGS)
    return Table(f"{choice.card.name}-prompt", columns, rows, about)


def chosen(source: Source, prompt_set: str, query: ModelsQuery) -> Choice:
    """What a request asks for: all of it, or an error."""
    asked = replace(query, prompt_set=prompt_set)
    choice = resolve(asked, reader_of(source, prompt_set), source.reader.view())
    assert choice is not None  # It has a prompt set.
    if choice.remarks:
        raise bad_query(choice.remarks[0], "See /v1/models and the board without a query.")
    return choice


def about_of(choice: Choice) -> dict[str, Any]:
    """What every table of a prompt set says of itself."""
    card = choice.card
    latest = max((one.published_at.isoformat() for one in choice.entries), default="")
    return {
        "as_of": max(as_of(choice.view) or "", latest) or None,
        "prompt_set": card.name,
        "title": card.title,
        "revision": card.revision,
        "simulated": card.simulated,
        "licence": card.licence,
        "own_judge": choice.own_judge.model_dump(mode="json") if choice.own_judge else None,
        "filters": {k: v for k, v in choice.query.to_params().items() if k != "set"},
        "page": PlaceQuery(choice.query).to_link(),
    }


def _about_board(found: ModelBoard) -> Mapping[str, Any]:
    return {
        "rule": found.rule,
        "left_out": list(found.left_out),
        "notes": [{"skill": of.skill, "note": of.note} for of in found.skills.values() if of.note],
        "judges": [
            {"skill": of.skill, "metric": judge.entry_id, "trusted": judge.trusted,
             "pinned": judge.pinned, "why": judge.why,
             "evidence": [vars(one) for one in judge.evidence]}
            for of in found.skills.values()
            for judge in of.judges
        ],
        "disagreements": [
            {"skill": of.skill, "first": one.first, "second": one.second,
             "for_first": list(one.for_first), "for_second": list(one.for_second)}
            for of in found.skills.values()
            for one in of.disagreements
        ],
    }  # fmt: skip


def _about_validation(found: ValidationAge) -> Mapping[str, Any]:
    return {
        "judges": [
            {"metric": one.entry_id,
             "tested_until": one.newest.released.isoformat() if one.newest else None,
             "newest_generator": one.newest.name if one.newest else None}
            for one in found.judges
        ],
        "newer_models": [
            {"submission_id": one.entry.submission_id, "released": one.released.isoformat(),
             "metrics": [judge.entry_id for judge in one.judges]}
            for one in found.newer
        ],
        "n_models_without_date": found.n_undated,
    }  # fmt: skip


def _of_skill(of: SkillBoard, found: ModelBoard) -> list[dict[str, Value]]:
    judges = {judge.entry_id: judge for judge in of.judges}
    rows: list[dict[str, Value]] = []
    for submission_id, standing in of.standings.items():
        stands = _standing(of, standing, found.entries[submission_id])
        for metric, mean in standing.means.items():
            judge = judges[metric]
            rows.append({
                **stands, "metric": metric, "metric_title": judge.title, "trusted": judge.trusted,
                "pinned": judge.pinned, "lead": metric == of.lead, "value": mean.value,
                "ci_low": mean.ci_low, "ci_high": mean.ci_high, "n_prompts": mean.n_prompts,
                "n_missing": mean.n_missing, "metric_rank_low": mean.rank_low,
                "metric_rank": mean.rank, "metric_rank_high": mean.rank_high,
                "metric_tier": mean.tier,
            })  # fmt: skip
    return rows


def _standing(of: SkillBoard, standing: ModelSummary, entry: ModelEntry) -> dict[str, Value]:
    return {
        "skill": of.skill, "skill_title": of.title, **named(entry),
        "rank_low": standing.rank_low, "rank_high": standing.rank_high, "tier": standing.tier,
        "unranked": standing.unranked, "better_than": ",".join(sorted(standing.better_than)),
        "worse_than": ",".join(sorted(standing.worse_than)),
    }  # fmt: skip


def named(entry: ModelEntry) -> dict[str, Value]:
    """A model by name and id."""
    return {"model": entry.model, "version": entry.version, "submission_id": entry.submission_id}


def _model(entry: ModelEntry, view: View) -> dict[str, Value]:
    card, seen, released = entry.card, entry.images, release_date(entry)
    return {
        "prompt_set": entry.prompt_set, **named(entry), "submitter": entry.submitter,
        "account": entry.account, "description": entry.description, "licence": entry.licence,
        "hub_model": card.model, "hub_revision": card.revision, "parameters": card.parameters,
        "steps": card.steps, "guidance": card.guidance, "drawn_on": card.drawn_on,
        "selection": card.selection, "best_of": card.best_of, "selected_by": card.selected_by,
        "seeds": ",".join(map(str, seen.seeds)), "n_images": seen.present, "n_wanted": seen.wanted,
        "n_withheld": sum(seen.withheld.values()),
        "shares_images_with": ",".join(one.submission_id for one in seen.shared),
        "same_content_as": ",".join(entry.same_content_as),
        "n_judges": len(judges_of([entry], view)), "revision": seen.revision,
        "received_at": entry.received_at.isoformat(), "published_at": entry.published_at.isoformat(),
        "released": released.isoformat() if released else None,
    }  # fmt: skip


def _of_report(report: PairReport, choice: Choice) -> list[dict[str, Value]]:
    rows: list[dict[str, Value]] = []
    for test in report.tests:
        judges = {one.entry_id: one for one in report.judges.get(test.skill, ())}
        rows.append({
            **_head(test.skill, judges[test.judge], choice), **_pair(report.first, report.second),
            **_test(test), "n_missing": test.n_missing,
        })  # fmt: skip
    return rows


def _test(test: PairTest) -> dict[str, Value]:
    """The tests of two models, by a metric or by people."""
    same = ("difference", "ci_low", "ci_high", "n_prompts", "t", "wilcoxon_w", "wilcoxon_p")
    return {name: getattr(test, name) for name in same} | {
        "p_value": test.t_p, "p_corrected": test.t_p_holm, "dominance_a": test.dominance,
        "dominance_b": test.dominance_back,
    }  # fmt: skip


def _of_all(choice: Choice) -> list[dict[str, Value]]:
    skill = choice.query.skill or None
    board = choice.board(skill)
    if board is None or len(board.entries) > MOST_MODELS:
        raise bad_query("Too many models for one answer.", "Name some of them by “models”.")
    judges = {one.entry_id: one for one in board.skills[skill].judges}
    shown = [one for one in judges.values() if one.trusted and not choice.query.judge]
    if not shown:
        shown = [judges[choice.judge]] if choice.judge in judges else []
    entries = {one.submission_id: one for one in choice.entries}
    rows: list[dict[str, Value]] = []
    for judge in shown:
        found = pair_matrix(choice.reader, choice.view, choice.board_query, skill, judge.entry_id)
        rows += _of_matrix(found, _head(skill, judge, choice), entries)
    return rows


def _of_matrix(
    found: PairMatrix, head: dict[str, Value], entries: dict[str, ModelEntry]
) -> list[dict[str, Value]]:
    return [
        {
            **head, **_pair(entries[found.models[i]], entries[found.models[j]]),
            "difference": float(found.difference[i, j]), "p_corrected": float(found.t_p_holm[i, j]),
            "wilcoxon_p": float(found.wilcoxon_p[i, j]), "dominance_a": float(found.dominance[i, j]),
            "dominance_b": float(found.dominance[j, i]),
        }
        for i, j in combinations(range(len(found.models)), 2)
    ]  # fmt: skip


def _head(skill: str | None, judge: Judge, choice: Choice) -> dict[str, Value]:
    title = "All prompts" if skill is None else skill_title(choice.card, skill)
    return {
        "skill": skill, "skill_title": title, "metric": judge.entry_id,
        "metric_title": judge.title, "trusted": judge.trusted,
    }  # fmt: skip


def _pair(a: ModelEntry, b: ModelEntry) -> dict[str, Value]:
    return {
        "model_a": a.title, "submission_a": a.submission_id,
        "model_b": b.title, "submission_b": b.submission_id,
    }  # fmt: skip


def _images(drawn: Drawn, prompt: SetPrompt, judge: str) -> list[dict[str, Value]]:
    entry = drawn.entry
    return [
        {
            "prompt_id": prompt.prompt_id,
            "prompt": prompt.text,
            **named(entry),
            "seed": seed,
            "metric": judge or None,
            "score": None if math.isnan(score) else score,
            "image": _image(entry, prompt.prompt_id, seed),
        }
        for seed, score in zip(drawn.seeds, drawn.scores, strict=True)
    ]


def _image(entry: ModelEntry, prompt_id: str, seed: int) -> str | None:
    if not entry.pictures:
        return None
    return picture_address(entry.submission_id, prompt_id, seed).removeprefix("./")


_RATINGS = (
    "model", "model_title", "skill", "skill_title", "facet", "mean", "ci_low", "ci_high",
    "n_prompts", "rank", "rank_low", "rank_high", "tier",
)  # fmt: skip
_RATING_PAIRS = (
    "model_a", "model_b", "skill", "skill_title", "facet", "difference", "ci_low", "ci_high",
    "n_prompts", "t", "p_value", "p_corrected", "wilcoxon_w", "wilcoxon_p", "dominance_a",
    "dominance_b",
)  # fmt: skip
_RATING_TYPES = {
    Type.NUMBER: "mean ci_low ci_high difference t p_value p_corrected wilcoxon_w wilcoxon_p "
    "dominance_a dominance_b",
    Type.COUNT: "n_prompts rank rank_low rank_high tier",
}
_RATING_MEANINGS = {
    "model": "As the released ratings name it.",
    "model_title": "As the paper names it.",
    "skill": "Missing: all prompts.",
    "facet": "Which set of ratings, where the benchmark has several; else empty.",
    "mean": "Mean rating over the prompts, from 1 to 5.",
    "ci_low": "Lower end of the 95% interval, BCa, prompts resampled.",
    "ci_high": "Upper end.",
    "rank": "Missing, as are range and tier: too few prompts for an order.",
    "rank_low": "Best rank that the tests leave open.",
    "rank_high": "Worst rank, likewise.",
    "tier": "From 1; no two models of a tier differ significantly on the skill.",
    "difference": "Mean rating of a less that of b.",
    "p_value": "Of Student's paired t, two-sided, before correction.",
    "p_corrected": "After Holm's, over all pairs of models on the skill.",
    "wilcoxon_p": "Two-sided, not corrected.",
    "dominance_a": "Share of prompts on which a is rated strictly higher.",
    "dominance_b": "Share of prompts on which b is rated strictly higher.",
}


@router.table("/models/{prompt_set}/ratings", of_snapshot=False)
def model_ratings(source: Source, prompt_set: PromptSet) -> Table:
    """People's mean ratings of models by skill, with intervals, ranks and tiers.

    On the prompts of a set; no metric takes part. No rows where nobody rated them.
    """
    return _table(source, prompt_set, "ratings", _RATINGS, _means)


@router.table("/models/{prompt_set}/ratings/pairs", of_snapshot=False)
def model_ratings_pairs(source: Source, prompt_set: PromptSet) -> Table:
    """Paired tests of each two models on people's ratings, on each skill."""
    return _table(source, prompt_set, "ratings-pairs", _RATING_PAIRS, _tests)


def _table(
    source: Source,
    name: str,
    part: str,
    columns: tuple[str, ...],
    rows_of: Callable[[PeopleBoard], list[dict[str, Value]]],
) -> Table:
    reader = reader_of(source, name)
    boards: tuple[PeopleBoard, ...] = ()
    missing = "People rated no models on these prompts."
    try:
        with source.turn():
            boards = people_boards(reader.prompt_sets[name], reader.data)
    except SubmitterError as error:
        missing = str(error)
    card = reader.prompt_sets[name].card
    about = {"prompt_set": name, "title": card.title, "page": f"{models_address(name)}#{PEOPLE_IDENT}",
             **(_about(boards) if boards else {"missing": missing})}  # fmt: skip
    rows = [row for board in boards for row in rows_of(board)]
    return Table(
        f"{name}-{part}", columns_of(columns, _RATING_TYPES, _RATING_MEANINGS), rows, about
    )


def _about(boards: tuple[PeopleBoard, ...]) -> dict[str, Any]:
    card = boards[0].benchmark
    return {
        "benchmark": card.name,
        "revision": card.revision,
        "licence": card.licence,
        "citation": card.citation,
        "seed": boards[0].seed,
        "facets": {board.gold: board.gold_title for board in boards if board.gold},
        "n_ratings": sum(board.n_ratings for board in boards),
        "notes": [board.note for board in boards if board.note],
    }


def _means(board: PeopleBoard) -> list[dict[str, Value]]:
    return [
        {
            "model": model, "model_title": board.models[model], "skill": of.skill,
            "skill_title": of.title, "facet": board.gold, "mean": mean.value,
            "ci_low": mean.ci_low, "ci_high": mean.ci_high, "n_prompts": mean.n_prompts,
            "rank": mean.rank, "rank_low": mean.rank_low, "rank_high": mean.rank_high,
            "tier": mean.tier,
        }
        for of in board.skills.values()
        for model, mean in of.means.items()
    ]  # fmt: skip


def _tests(board: PeopleBoard) -> list[dict[str, Value]]:
    return [
        {
            "model_a": a, "model_b": b, "skill": of.skill, "skill_title": of.title,
            "facet": board.gold, **_test(test),
        }
        for of in board.skills.values()
        for (a, b), test in of.pairs.items()
    ]  # fmt: skip
