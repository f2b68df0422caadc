"""Heads of the pages of the model track."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leaderboard.api.source import Source
from leaderboard.models.board_types import ModelSummary, SkillBoard
from leaderboard.models.people import rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import clean, count
from leaderboard.views.model_verdict import verdict_of_board
from leaderboard.views.models import (
    Choice,
    PlaceQuery,
    board_of,
    judges_of,
    lead_mean,
    place_title,
    plain_name,
    resolve,
)
from leaderboard.web.heads.head import MOST_LINES, Line, PageMetadata

_SIMULATED = "The models are simulated."


def models_head(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of the place of models: of its board, or of two models or a prompt that are named."""
    reader, query = _reader(source), PlaceQuery.from_params(params)
    choice = resolve(query.of, reader, source.reader.view(), rated_sets(reader))
    if choice is None:
        return None
    head = _board_head(choice, source)
    title = place_title(query, choice)
    if query.view == "two" and choice.entry(query.a) and choice.entry(query.b):
        said = "Paired tests of the two on the same prompts, and the prompts that decide."
        return PageMetadata(title, said)
    if query.view == "prompt" and any(one.prompt_id == query.prompt for one in choice.prompts):
        models = count(len(choice.entries), "model")
        return PageMetadata(title, f"Images by {models} for a prompt of {choice.card.title}.")
    return replace(head, title=title)


def _board_head(choice: Choice, source: Source) -> PageMetadata:
    skill, reader = choice.query.skill or None, _reader(source)
    note = _SIMULATED if choice.card.simulated else ""
    board = board_of(choice, reader, source.reader.view(), skill)
    if board is None:
        return PageMetadata("", f"{clean(choice.card.summary)} {note}".strip(), note=note)
    of = board.skills[skill]
    titles = {judge.entry_id: judge.title for judge in of.judges}
    lead = clean(titles.get(of.lead or "", ""))
    lines = tuple(
        _line(of, standing, board.entries[one])
        for one, standing in list(of.standings.items())[:MOST_LINES]
    )
    said = f"{verdict_of_board(board, choice.card.title).sentence} {note}".strip()
    return PageMetadata("", said, lines, lead, note)


def model_head(params: Mapping[str, str], source: Source) -> PageMetadata | None:
    """Of one model; None where it is not on the boards."""
    entry = _reader(source).track().entries.get(str(params.get("id", "")))
    if entry is None or entry.prompt_set not in _reader(source).prompt_sets:
        return None
    card = _reader(source).prompt_sets[entry.prompt_set].card
    runs = len(judges_of([entry], source.reader.view()))
    said = (
        f"{count(entry.images.present, 'image')} of the prompts of {card.title} with "
        f"{count(len(entry.images.seeds), 'seed')}, scored by {count(runs, 'metric')}."
    )
    note = _SIMULATED if card.simulated else ""
    return PageMetadata(plain_name(entry, 80), f"{said} {note}".strip(), note=note)


def _reader(source: Source) -> ModelReader:
    return source.models or ModelReader(source.store, {}, None)


def _line(of: SkillBoard, standing: ModelSummary, entry: ModelEntry) -> Line:
    mean = lead_mean(of, standing)
    ends = (mean.ci_low, mean.ci_high) if mean else (None, None)
    value = mean.value if mean else None
    return Line(plain_name(entry), value, *ends, standing.rank_low, standing.rank_high)
