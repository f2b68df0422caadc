"""Text-to-image models: which there are, and the board of a prompt set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leaderboard.api.operations import Asked, Operation, Parameter
from leaderboard.api.problems import bad_query, not_found
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import as_of
from leaderboard.models.board import model_board
from leaderboard.models.board_types import ModelBoard, SkillBoard, Standing
from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.models import Choice, ModelsQuery, PlaceQuery, judges_of, resolve

_MODELS = (
    "prompt_set", "submission_id", "model", "version", "submitter", "account", "description",
    "licence", "hub_model", "hub_revision", "parameters", "steps", "guidance", "drawn_on",
    "selection", "best_of", "selected_by", "seeds", "n_images", "n_wanted", "n_withheld",
    "shares_images_with", "same_content_as", "n_judges", "revision", "received_at", "published_at",
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
    "seeds": "Joined by commas.",
    "shares_images_with": "Submissions with images that are the same to the eye, joined by commas.",
    "skill": "Missing: all prompts.",
    "metric": "Entry id of the metric that judges.",
    "trusted": "Whether it earned it to judge this skill; the others are for the curious.",
    "pinned": "Whether an operator, not the rule, decided that.",
    "lead": "Whether the page shows its means.",
    "value": "Mean score over the prompts, in units of the metric; higher is better.",
    "metric_rank": "By this metric alone.",
    "rank_low": "Best rank by all metrics that judge the skill.",
    "rank_high": "Worst rank by all metrics that judge the skill.",
    "tier": "Likewise: models that are not told apart from its first.",
    "unranked": "Why it has no rank; empty where it has one.",
    "better_than": "Submission ids, joined by commas: a trusted metric says so with significance, "
    "and none the contrary.",
    "worse_than": "Likewise.",
}
PROMPT_SET = Parameter(
    "prompt_set", "Name of a prompt set, as /v1/models lists them.", "demo_prompts"
)
FILTERS = (
    Parameter("split", "Only prompts of this split."),
    Parameter("words", "Only prompts that hold all these words."),
    Parameter("judge", "Entry id of the one metric to judge by. Without: those that earned it."),
    Parameter("seed", "Place, from 1, of the one seed of each model that counts. Without: their mean."),
    Parameter("models", "Submission ids of the only models to compare, joined by commas."),
)  # fmt: skip
SKILL = Parameter("skill", "Key of a skill, to have it and its sub-skills. Without: all skills.")


def reader_of(source: Source) -> ModelReader:
    """What reads the models; without prompt sets where the installation has none."""
    return source.models or ModelReader(source.store, {}, None)


def models(source: Source, asked: Asked) -> Table:
    """The models on the boards, oldest first.

    Raises:
        RefusedError: `bad_query`.
    """
    view, reader = source.reader.view(), reader_of(source)
    wanted = asked.params.get("prompt_set", "")
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


def board(source: Source, asked: Asked) -> Table:
    """The board of models that the page shows for the same query.

    Raises:
        RefusedError: `unknown_prompt_set`, `bad_query`.
    """
    choice, reader, view = chosen(source, asked)
    rows: list[dict[str, Value]] = []
    about = about_of(choice, view)
    if choice.places and choice.entries and choice.judges:
        with source.turn():
            found = model_board(reader, view, choice.wanted)
        rows = [row for of in found.skills.values() for row in _of_skill(of, found)]
        about |= _about_board(found)
    name = f"{choice.card.name}-models"
    return Table(name, columns_of(_BOARD, _TYPES, _MEANINGS), rows, about)


def chosen(source: Source, asked: Asked) -> tuple[Choice, ModelReader, View]:
    """What a request asks for: all of it, or an error.

    Raises:
        RefusedError: `unknown_prompt_set`, `bad_query`.
    """
    view, reader = source.reader.view(), reader_of(source)
    name = asked.path["prompt_set"]
    if name not in reader.prompt_sets:
        raise not_found(
            "unknown_prompt_set", "There is no such prompt set here.", "See /v1/models."
        )
    given = {key: value for key, value in asked.params.items() if key != "set"}
    choice = resolve(ModelsQuery.from_params({**given, "set": name}), reader, view)
    assert choice is not None  # It has a prompt set.
    if choice.remarks:
        raise bad_query(choice.remarks[0], "See /v1/models and the board without a query.")
    return choice, reader, view


def about_of(choice: Choice, view: View) -> dict[str, Any]:
    """What every table of a prompt set says of itself."""
    card = choice.card
    latest = max((one.published_at.isoformat() for one in choice.entries), default="")
    return {
        "as_of": max(as_of(view) or "", latest) or None,
        "prompt_set": card.name,
        "title": card.title,
        "revision": card.revision,
        "simulated": card.simulated,
        "licence": card.licence,
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


def _standing(of: SkillBoard, standing: Standing, entry: ModelEntry) -> dict[str, Value]:
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
    card, seen = entry.card, entry.images
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
    }  # fmt: skip


OPERATIONS = (
    Operation(
        "/models", "models",
        "Text-to-image models on the boards; `about.prompt_sets` lists what they drew.", models,
        (Parameter("prompt_set", "Only those that drew it.", "demo_prompts"),), of_snapshot=False,
    ),
    Operation(
        "/models/{prompt_set}", "model_board",
        "The board of the models of a prompt set: means by skill and metric, with ranks; "
        "`about.disagreements` has the models that trusted metrics order in opposite ways.",
        board, (SKILL, *FILTERS), (PROMPT_SET,), of_snapshot=False,
    ),
)  # fmt: skip
