"""Types of a board of models: values that pages, programs and commands show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.arrays import FloatArray
from leaderboard.publication.model_entries import ModelEntry

if TYPE_CHECKING:  # They compute with scipy, which a command that shows no board need not import.
    from benchmarks.rethinking.measures import MetricStability, ModelScore


@dataclass(frozen=True)
class Evidence:
    """How a metric stands on one board of metrics for a skill."""

    benchmark: str  # of the board
    skill: str | None  # the skill's key there; None: the headline over all skills
    measure: str  # what it was ranked by
    value: float | None  # of the metric
    ci_low: float | None  # lower end of its 95 % interval
    ci_high: float | None  # upper end
    tier: int | None  # from 1, the best; None where it has no rank
    chance: float | None  # what a metric that guesses gets; None where the card does not say
    speaks: str  # `for` it, `against` it, or `undecided`
    # why metrics are not ordered by it for want of clusters, in a few words; such evidence
    # decides nothing. Empty where there are enough
    too_few: str = ""


@dataclass(frozen=True)
class Judge:
    """A metric in its role on one skill."""

    entry_id: str  # of the metric
    title: str  # its name and version
    trusted: bool  # whether it judges this skill; the others are shown for the curious
    pinned: bool = False  # whether an operator, not the rule, decided that
    why: str = ""  # one sentence
    evidence: tuple[Evidence, ...] = ()  # what the rule looked at
    seconds_per_image: float | None = None  # measured; None where it is not known


@dataclass(frozen=True)
class Mean:
    """One metric's mean score of one model on one skill, or people's mean rating of it."""

    # mean over the prompts, in units of the metric or the ratings; None where nothing has
    # one
    value: float | None
    # lower end of the 95 % interval, prompts resampled; None where there is none
    ci_low: float | None = None
    ci_high: float | None = None  # upper end
    n_prompts: int = 0  # prompts with a score
    n_missing: int = 0  # prompts without one
    rank: int | None = None  # among the models, by this metric alone; None where it has none
    rank_low: int | None = None  # best rank that the prompts leave open
    rank_high: int | None = None  # worst one
    tier: int | None = None  # from 1; None likewise


@dataclass(frozen=True)
class ModelSummary:
    """Where a model stands on one skill, by all metrics that judge it."""

    submission_id: str  # of the model
    means: Mapping[str, Mean]  # entry id of a metric to its mean, of trusted metrics and of others
    # models it is better than: at least one trusted metric says so with significance, and
    # none says the contrary
    better_than: frozenset[str] = frozenset()
    worse_than: frozenset[str] = frozenset()  # the reverse
    rank_low: int | None = None  # 1 + the number of models that are better
    rank_high: int | None = None  # the number of models less those that are worse
    tier: int | None = None  # from 1: no model of a tier differs significantly from its first
    unranked: str = ""  # why it has no rank; empty where it has one


@dataclass(frozen=True)
class Disagreement:
    """Two models that trusted metrics order in opposite ways, each with significance."""

    first: str  # submission id of one
    second: str  # of the other
    for_first: tuple[str, ...]  # metrics by which the first is better
    for_second: tuple[str, ...]  # metrics by which the second is


@dataclass(frozen=True)
class SkillBoard:
    """All models on one skill."""

    skill: str | None  # key; None: all prompts
    title: str  # how it is shown
    n_prompts: int  # that test it, after the filter
    judges: tuple[Judge, ...]  # every metric that scored at least one model, trusted ones first
    # entry id of the trusted metric whose means are shown first; None: nobody is trusted
    lead: str | None
    standings: Mapping[
        str, ModelSummary
    ]  # submission id to where it stands, in the order of the board
    # pairs that trusted metrics order in opposite ways
    disagreements: tuple[Disagreement, ...] = ()
    # what a reader must know: that nobody earned trust, or that the prompts are too few to
    # order any two models; empty as a rule
    note: str = ""

    @property
    def trusted(self) -> tuple[Judge, ...]:
        """The metrics that judge it."""
        return tuple(judge for judge in self.judges if judge.trusted)


@dataclass(frozen=True)
class BoardQuery:
    """What of a prompt set is looked at. Everything not said is all there is."""

    prompt_set: str  # its name
    split: str = ""  # only prompts of this split
    words: str = ""  # only prompts that hold all these words
    # entry id of the one metric to judge by, trusted or not; empty: the trusted ones
    judge: str = ""
    models: tuple[str, ...] = ()  # submission ids of the only models that are compared
    # place (from 0) of the one seed of each model that counts; None: the mean of all
    seed: int | None = None
    # the skills that are wanted (None is all prompts); empty: all skills without sub-
    # skills, and all prompts
    skills: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class ModelBoard:
    """A board of models."""

    query: BoardQuery  # what was asked
    entries: Mapping[str, ModelEntry]  # the models, by submission id
    skills: Mapping[str | None, SkillBoard]  # key to its board, all prompts (None) first
    rule: str  # the sentence by which metrics earn trust
    left_out: tuple[str, ...] = ()  # models of another revision of the prompt set, by name


@dataclass(frozen=True)
class PairTest:
    """Two models by one metric on one skill (the matrix figures of Re-Thinking)."""

    judge: str  # entry id of the metric; empty: people
    skill: str | None  # key; None: all prompts
    n_prompts: int  # on which both have a score
    n_missing: int  # on which one of them has none, or both
    difference: float  # mean of first less second, in units of the metric
    ci_low: float  # lower end of its 95 % interval
    ci_high: float  # upper end
    t: float  # Student's paired t
    t_p: float  # its two-sided p-value
    # corrected for all pairs of models and trusted metrics on the skill, as on the board;
    # by a metric that is not trusted, for all pairs of models by it alone
    t_p_holm: float
    wilcoxon_w: float  # the smaller rank sum
    wilcoxon_p: float  # its two-sided p-value
    dominance: float  # share of prompts on which the first is strictly better
    dominance_back: float  # share on which the second is


@dataclass(frozen=True)
class PromptDifference:
    """One prompt of a comparison."""

    prompt_id: str  # which
    first: float  # score of the first model, the mean over its seeds; NaN where it has none
    second: float
    share: float  # of the summed difference of the two means that this prompt makes; NaN likewise


@dataclass(frozen=True)
class PairReport:
    """Two models compared."""

    first: ModelEntry  # one model
    second: ModelEntry  # the other
    tests: tuple[PairTest, ...]  # by every metric on every skill of the query
    judges: Mapping[str | None, tuple[Judge, ...]]  # skill to the metrics, trusted ones first
    # entry id of a metric to the prompts, those that say most for the first model first
    deciding: Mapping[str, tuple[PromptDifference, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """Each two models by one metric on one skill; all arrays have shape (M, M)."""

    judge: str  # entry id of the metric
    skill: str | None  # key; None: all prompts
    models: tuple[str, ...]  # submission ids of the axes, in the order of the board
    # share of prompts on which the row is strictly better than the column; NaN where they
    # share none
    dominance: FloatArray
    difference: FloatArray  # mean of the row less the column, in units of the metric
    t_p_holm: FloatArray  # as in `PairTest`; NaN on the diagonal
    wilcoxon_p: FloatArray  # two-sided, not corrected


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
