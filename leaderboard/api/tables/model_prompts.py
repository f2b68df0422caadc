"""Generations of a prompt by all models, with the scores of one metric."""

from __future__ import annotations

import math

from benchmarks.prompt_sets.prompt_set import SetPrompt
from leaderboard.api.operations import Asked, Operation, Parameter
from leaderboard.api.problems import not_found
from leaderboard.api.source import Source
from leaderboard.api.tables.models import FILTERS, PROMPT_SET, about_of, chosen, named
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.addresses import picture_address
from leaderboard.views.models import Drawn, drawn_of, judge_of

_COLUMNS = (
    "prompt_id", "prompt", "model", "version", "submission_id", "seed", "metric", "score", "image",
)  # fmt: skip
_TYPES = {Type.NUMBER: "score", Type.COUNT: "seed"}
_MEANINGS = {
    "metric": "Entry id of the metric that gave the score.",
    "score": "Higher is better.",
    "image": "Address of its thumbnail, relative to the site; missing where none is published.",
}


def prompt(source: Source, asked: Asked) -> Table:
    """What every model drew of a prompt, and what a metric says of each image.

    Raises:
        RefusedError: `unknown_prompt_set`, `unknown_prompt`, `bad_query`.
    """
    choice, reader, view = chosen(source, asked)
    ids = [one.prompt_id for one in choice.prompts]
    if asked.path["prompt_id"] not in ids:
        raise not_found("unknown_prompt", "There is no such prompt in this set.",
                        "Its page lists them.")  # fmt: skip
    place = ids.index(asked.path["prompt_id"])
    with source.turn():
        judge = judge_of(choice, reader, view)
        only = choice.query.models
        drawn = [
            one
            for entry in choice.entries
            if not only or entry.submission_id in only
            for one in drawn_of(reader, entry, judge, choice.prompts, [place])
        ]
    found = choice.prompts[place]
    rows = [row for one in drawn for row in _rows(one, found, judge)]
    about = about_of(choice, view) | {
        "skills": list(found.skills),
        "split": found.split,
        "elements": [
            {"element_id": one.element_id, "text": one.text, "skill": one.skill}
            for one in found.elements
        ],
    }
    return Table(f"{choice.card.name}-prompt", columns_of(_COLUMNS, _TYPES, _MEANINGS), rows, about)


def _rows(drawn: Drawn, prompt: SetPrompt, judge: str) -> list[dict[str, Value]]:
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


OPERATIONS = (
    Operation(
        "/models/{prompt_set}/prompts/{prompt_id}", "model_prompt",
        "What every model drew of a prompt, with the scores of one metric.", prompt,
        tuple(one for one in FILTERS if one.name in {"judge", "models"}),
        (
            PROMPT_SET,
            Parameter("prompt_id", "Of a prompt; a slash may stand as it is.", "color_simple_1"),
        ),
        of_snapshot=False,
    ),
)  # fmt: skip
