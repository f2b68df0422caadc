"""Types of the variation of models and their order over random seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.rethinking.measures import MetricStability, ModelScore
from leaderboard.models.board_types import Judge
from leaderboard.publication.model_entries import ModelEntry


@dataclass(frozen=True)
class SeedVariation:
    """One model over its own seeds, by one metric; all of them, whatever the others have."""

    submission_id: str  # of the model
    seeds: tuple[int, ...]  # those with scores, ascending
    # mean over the prompts with each of them, in units of the metric; NaN where there is no
    # score
    means: tuple[float, ...]
    spread: float  # standard deviation (n - 1) of these means; NaN below two
    # spread of the scores of one prompt over the seeds: the root of the mean variance (n -
    # 1) over prompts with two scores or more; NaN without any
    within: float
    # standard deviation (n - 1) of the prompts' means over their seeds, for comparison; NaN
    # below two prompts
    between: float


@dataclass(frozen=True)
class JudgeSeeds:
    """How one metric's ranking of the models holds over seeds."""

    judge: Judge  # the metric
    # whether the ranks hold; its models are submission ids, its seeds places from 1. None
    # where fewer than two models have two seeds or more by this metric
    stability: MetricStability | None
    # mean and rank of every model with each seed, by place; empty likewise
    scores: tuple[ModelScore, ...]
    variation: tuple[SeedVariation, ...]  # every model over all of its own seeds
    note: str = ""  # what a reader must know of the choice of seeds; empty as a rule


@dataclass(frozen=True)
class SeedReport:
    """How the models of a set vary over seeds."""

    skill: str | None  # on which; None: all prompts
    n_prompts: int  # after the filter
    entries: Mapping[str, ModelEntry]  # the models, by submission id
    judges: tuple[JudgeSeeds, ...]  # by every metric, trusted ones first
    # submission ids of models with one seed: nothing can be said of these
    one_seed: tuple[str, ...]
