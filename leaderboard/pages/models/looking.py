"""Selection of the metric whose scores the pages of the track show beside the board."""

from __future__ import annotations

from dataclasses import replace

from leaderboard.models.board import model_board
from leaderboard.models.board_types import ModelBoard
from leaderboard.models.reading import ModelReader
from leaderboard.pages.models.query import Choice
from leaderboard.pages.reading import View


def board_of(
    choice: Choice, reader: ModelReader, view: View, *skills: str | None, whole: bool = False
) -> ModelBoard | None:
    """The board of a choice; None where there is nothing to compare.

    Args:
        choice: what is looked at.
        reader: of the models.
        view: what is published of the metrics.
        skills: the only ones; none: those of the choice.
        whole: without any of the filters.

    Raises:
        TransientError: the store cannot be read.
    """
    if not (choice.prompts and choice.entries and choice.judges):
        return None
    wanted = choice.wanted
    if whole:
        wanted = replace(wanted, split="", words="", judge="", models=(), seed=None, skills=())
    elif not choice.places:
        return None
    if skills:
        wanted = replace(wanted, skills=skills)
    return model_board(reader, view, wanted)


def judge_of(choice: Choice, reader: ModelReader, view: View) -> str:
    """Entry id of the metric whose scores are shown: the chosen one, or the one that leads.

    Returns:
        Empty where no metric has scored these models.

    Raises:
        TransientError: the store cannot be read.
    """
    if choice.query.judge or not choice.judges:
        return choice.query.judge
    skill = choice.query.skill or None
    board = board_of(choice, reader, view, skill, whole=True)
    lead = board.skills[skill].lead if board and skill in board.skills else None
    return lead if lead in choice.judges and lead else next(iter(choice.judges))
