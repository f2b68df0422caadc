"""Heads of the pages of the model track."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from leaderboard.api.source import Source
from leaderboard.models.board_types import SkillBoard, Standing
from leaderboard.models.people import rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.pages.heads.head import Head, Line
from leaderboard.pages.heads.of_boards import MOST_LINES
from leaderboard.pages.models.names import plain_name
from leaderboard.pages.models.table import lead_mean
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import clean, count
from leaderboard.views.models import Choice, ModelsQuery, board_of, judges_of, resolve

_SIMULATED = "The models are simulated."
_LONGEST = 200


def models_head(params: Mapping[str, str], source: Source) -> Head | None:
    """Of a board of models; None where the query names none that is there.

    Raises:
        AssayError: it cannot be answered.
    """
    choice = _chosen(params, source, rated_sets(_reader(source)))
    if choice is None or choice.remarks or not choice.entries or not choice.places:
        return None
    skill = choice.query.skill or None
    board = board_of(choice, _reader(source), source.reader.view(), skill)
    if board is None:
        return None
    of = board.skills[skill]
    titles = {judge.entry_id: judge.title for judge in of.judges}
    lead = titles.get(of.lead or "", "")
    lines = tuple(
        _line(of, standing, board.entries[one])
        for one, standing in list(of.standings.items())[:MOST_LINES]
    )
    judged = f"by {clean(lead)}" if lead else "which no metric earned it to judge"
    said = [f"{count(len(board.entries), 'model')} on {count(of.n_prompts, 'prompt')}, {judged}."]
    said += [f"Trusted metrics disagree about {count(len(of.disagreements), 'pair')}."] * bool(
        of.disagreements
    )
    said += [_SIMULATED] * choice.card.simulated
    where = f": {skill_title(choice.card, skill)}" if skill else ""
    note = _SIMULATED if choice.card.simulated else ""
    title = f"Models on {choice.card.title}{where}"
    return Head(title, " ".join(said), lines, clean(lead), note)


def model_head(params: Mapping[str, str], source: Source) -> Head | None:
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
    return Head(plain_name(entry, 80), f"{said} {note}".strip(), note=note)


def pair_head(params: Mapping[str, str], source: Source) -> Head | None:
    """Of two models; None where they are not both on one board."""
    choice = _chosen(params, source)
    pair = [choice.entry(str(params.get(one, ""))) for one in "ab"] if choice else []
    first, second = pair if len(pair) == 2 else (None, None)
    if choice is None or first is None or second is None or first is second:
        return None
    said = "By how much they differ on the same prompts, how sure that is, and what decides it."
    names = f"{plain_name(first, 40)} and {plain_name(second, 40)}"
    return Head(f"{names} on {choice.card.title}", said)


def prompt_head(params: Mapping[str, str], source: Source) -> Head | None:
    """Of one prompt; None where it is not in the set."""
    choice = _chosen(params, source)
    if choice is None:
        return None
    wanted = str(params.get("id", ""))
    prompt = next((one for one in choice.prompts if one.prompt_id == wanted), None)
    if prompt is None:
        return None
    drawn = count(len(choice.entries), "model")
    return Head(f"“{clean(prompt.text)[:_LONGEST]}”", f"What {drawn} drew of it. "
                f"A prompt of {choice.card.title}.")  # fmt: skip


def _reader(source: Source) -> ModelReader:
    return source.models or ModelReader(source.store, {}, None)


def _chosen(
    params: Mapping[str, str], source: Source, rated: Collection[str] = ()
) -> Choice | None:
    query, view = ModelsQuery.from_params(params), source.reader.view()
    return resolve(query, _reader(source), view, rated)


def _line(of: SkillBoard, standing: Standing, entry: ModelEntry) -> Line:
    mean = lead_mean(of, standing)
    ends = (mean.ci_low, mean.ci_high) if mean else (None, None)
    value = mean.value if mean else None
    return Line(plain_name(entry), value, *ends, standing.rank_low, standing.rank_high)
