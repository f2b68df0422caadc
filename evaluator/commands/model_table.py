"""The models of a prompt set as a table in a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from benchmarks.prompt_sets.prompt_set import load_prompt_sets
from benchmarks.schema import Card
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery, ModelSummary, SkillBoard
from leaderboard.models.reading import ModelReader
from leaderboard.publication.reader import Reader
from leaderboard.store.interface import Store


def model_tables(store: Store, cards: Mapping[str, Card]) -> list[Table]:
    """One table for each prompt set that needs no files and has models on the boards."""
    known = load_prompt_sets()
    models = ModelReader(store, known, None)
    view = Reader(store, cards, clock=store.clock).view()
    drawn = {entry.prompt_set for entry in models.track().entries.values()}
    here = [name for name in known if name in drawn and models.prompts(name) is not None]
    found: list[Table] = []
    for name in here:
        board = model_board(models, view, BoardQuery(name, skills=(None,)))
        titles = {one: entry.title for one, entry in board.entries.items()}
        found.append(_table(known[name].card.title, board.skills[None], titles))
    return found


def _table(title: str, board: SkillBoard, names: Mapping[str, str]) -> Table:
    judged = ", ".join(judge.title for judge in board.trusted) or "no qualified metric"
    table = Table("model", "rank range", "tier", "mean score", title=f"Models, judged by {judged}")
    table.caption = f"{title}, {board.n_prompts} prompts. {board.note}".strip()
    for submission_id, standing in board.standings.items():
        ranks = f"{standing.rank_low}-{standing.rank_high}"
        table.add_row(
            Text(names[submission_id]),
            standing.unranked or ranks,
            "" if standing.tier is None else str(standing.tier),
            _mean(standing, board.lead),
        )
    return table


def _mean(standing: ModelSummary, lead: str | None) -> str:
    mean = standing.means.get(lead) if lead else None
    if mean is None or mean.value is None:
        return ""
    if mean.ci_low is None or mean.ci_high is None:
        return f"{mean.value:.3f}"
    return f"{mean.value:.3f} [{mean.ci_low:.3f}, {mean.ci_high:.3f}]"
