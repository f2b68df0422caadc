"""Types of the variation of models and their order over random seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.rethinking.measures import MetricStability, ModelScore
from leaderboard.models.board_types import Judge
from leaderboard.publication.model_entries import ModelEntry


@dataclass(frozen=True)
class SeedVariation:
    """One model over its own seeds, by one metric; all of them, whatever the others have.

    Attributes:
        submission_id: of the model.
        seeds: those with scores, ascending.
        means: mean over the prompts with each of them, in units of the metric; NaN where there is
            no score.
        spread: standard deviation (n - 1) of these means; NaN below two.
        within: spread of the scores of one prompt over the seeds: the root of the mean variance
            (n - 1) over prompts with two scores or more; NaN without any.
        between: standard deviation (n - 1) of the prompts' means over their seeds, for comparison;
            NaN below two prompts.
    """

    submission_id: str
    seeds: tuple[int, ...]
    means: tuple[float, ...]
    spread: float
    within: float
    between: float


@dataclass(frozen=True)
class JudgeSeeds:
    """How one metric's ranking of the models holds over seeds.

    Attributes:
        judge: the metric.
        stability: whether the ranks hold; its models are submission ids, its seeds places from 1.
            None where fewer than two models have two seeds or more by this metric.
        scores: mean and rank of every model with each seed, by place; empty likewise.
        variation: every model over all of its own seeds.
        note: what a reader must know of the choice of seeds; empty as a rule.
    """

    judge: Judge
    stability: MetricStability | None
    scores: tuple[ModelScore, ...]
    variation: tuple[SeedVariation, ...]
    note: str = ""


@dataclass(frozen=True)
class SeedReport:
    """How the models of a set vary over seeds.

    Attributes:
        skill: on which; None: all prompts.
        n_prompts: after the filter.
        entries: the models, by submission id.
        judges: by every metric, trusted ones first.
        one_seed: submission ids of models with one seed: nothing can be said of these.
    """

    skill: str | None
    n_prompts: int
    entries: Mapping[str, ModelEntry]
    judges: tuple[JudgeSeeds, ...]
    one_seed: tuple[str, ...]
