"""Results of one text-to-image model on its board, as every export reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import SetPrompt
from benchmarks.schema import Card
from leaderboard.models.board_types import Judge, Mean, ModelBoard, SkillBoard
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import Selection, selection
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.text import clean
from leaderboard.views.addresses import picture_address
from leaderboard.views.citation import CitedAt
from leaderboard.views.models import Choice, ModelsQuery, resolve


@dataclass(frozen=True)
class Origin:
    """What an export says of where it is from."""

    at: CitedAt  # state of the store, and the address of the site
    version: str  # of Assay


@dataclass(frozen=True)
class JudgedMean:
    """What one metric says of a model on one skill."""

    of: SkillBoard  # the skill
    judge: Judge  # the metric
    mean: Mean  # as the board has it; its value is None where there is no score
    # standard error of the mean over prompts; NaN below two prompts with a score
    standard_error: float
    why_missing: str = ""  # why there is no value; empty where there is one

    @property
    def skill(self) -> str:
        """Key of the skill; `all` of all prompts."""
        return self.of.skill or "all"


@dataclass(frozen=True)
class DrawnImage:
    """One image of a model, with the scores of every metric that judges it."""

    prompt: SetPrompt  # its prompt
    seed: int  # its seed
    place: int  # of the seed among those of the model, from 1
    scores: dict[str, float]  # entry id of a metric to its score; NaN where it is missing


@dataclass(frozen=True)
class ModelResults:
    """A model on the board of its prompt set, by every metric on every skill."""

    entry: ModelEntry
    choice: Choice
    board: ModelBoard
    means: tuple[JudgedMean, ...]  # in the order of the board

    @property
    def card(self) -> Card:
        """The prompt set."""
        return self.choice.card

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Every metric that scored the model, once, in the order of the board."""
        found = {one.judge.entry_id: one.judge for one in self.means}
        return tuple(found.values())

    @property
    def failed(self) -> dict[str, str]:
        """Entry id of each metric on the boards that gave no score of the model at all, and why."""
        known = self.choice.view.entries
        runs = self.entry.judges.items()
        return {one: clean(run.failed) for one, run in runs if run.failed and one in known}

    @property
    def withheld(self) -> str:
        """Why single images and their scores are not exported; empty where they are."""
        if not self.card.answers_public:
            return "withheld: the answers of this prompt set are not public"
        return ""

    def images(self) -> Iterator[DrawnImage]:
        """Every image in the order of the prompts and seeds; none where they are withheld."""
        if self.withheld:
            return
        ids = [prompt.prompt_id for prompt in self.choice.prompts]
        reader = self.choice.reader.scores
        found = {
            judge.entry_id: of
            for judge in self.judges
            if (of := reader.of(self.entry, judge.entry_id, ids)) is not None
        }
        rows = {
            judge: {seed: row for row, seed in enumerate(of.seeds)} for judge, of in found.items()
        }
        seeds = sorted(self.entry.images.seeds)
        for column, prompt in enumerate(self.choice.prompts):
            for place, seed in enumerate(seeds, start=1):
                scores = {
                    judge: float(of.scores[rows[judge][seed], column])
                    if seed in rows[judge]
                    else math.nan
                    for judge, of in found.items()
                }
                yield DrawnImage(prompt, seed, place, scores)

    def picture(self, image: DrawnImage, at: CitedAt) -> str:
        """Address of the thumbnail of an image; empty where none is published or the site unknown."""
        if not self.entry.pictures:
            return ""
        link = picture_address(self.entry.submission_id, image.prompt.prompt_id, image.seed)
        return at.address(link)


def model_results(submission_id: str, reader: ModelReader, view: View) -> ModelResults:
    """The results of a model on its board.

    Raises:
        SubmitterError: `unknown_model` where no model of that id is on the boards, or its board is
            of another revision of the prompts; `prompts_missing` where their files are not here.
    """
    entry = reader.track().entries.get(submission_id)
    if entry is None or entry.prompt_set not in reader.prompt_sets:
        raise SubmitterError(
            "unknown_model",
            f"{submission_id[:120]!r} is no model on the boards.",
            "/v1/models lists the models with their submissions.",
        )
    choice = resolve(ModelsQuery(entry.prompt_set), reader, view)
    if choice is None or entry not in choice.entries:
        raise SubmitterError(
            "unknown_model",
            f"The images of {submission_id} are of an earlier revision of the prompts of "
            f"{entry.prompt_set}: they stand on no board.",
            "Export a model of the revision of now.",
        )
    board = choice.board(whole=True)
    if board is None:
        missing = not choice.prompts
        raise SubmitterError(
            "prompts_missing" if missing else "unknown_model",
            f"The prompts of {entry.prompt_set} are not here, so its board cannot be computed."
            if missing
            else f"No metric has scored the models of {entry.prompt_set} yet.",
            "Name the folder of data with --data." if missing else "Come back when one has.",
        )
    chosen = selection(reader, view, choice.whole_query)
    means = tuple(_means(entry, board, chosen))
    return ModelResults(entry, choice, board, means)


def _means(entry: ModelEntry, board: ModelBoard, chosen: Selection) -> Iterator[JudgedMean]:
    place = [one.submission_id for one in chosen.entries].index(entry.submission_id)
    for of in board.skills.values():
        standing = of.standings.get(entry.submission_id)
        for judge in of.judges:
            mean = standing.means.get(judge.entry_id) if standing else None
            if mean is None or mean.value is None:
                run = entry.judges.get(judge.entry_id)
                why = run.failed if run else "this metric has not scored it"
                absent = mean or Mean(None, n_missing=of.n_prompts)
                yield JudgedMean(of, judge, absent, math.nan, why or "no score on these prompts")
                continue
            slice_ = chosen.columns(judge.entry_id).slice(
                chosen.slices, of.skill, chosen.testing(of.skill)
            )
            values = slice_.by_prompt[:, place]
            yield JudgedMean(of, judge, mean, _standard_error(values[np.isfinite(values)]))


def _standard_error(values: np.ndarray) -> float:
    """Standard error of the mean of independent values; NaN below two."""
    n = len(values)
    return float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan
