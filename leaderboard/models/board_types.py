"""Types of a board of models: values that pages, programs and commands show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.arrays import FloatArray
from leaderboard.publication.model_entries import ModelEntry


@dataclass(frozen=True)
class Evidence:
    """How a metric stands on one board of metrics for a skill.

    Attributes:
        benchmark: of the board.
        skill: the skill's key there; None: the headline over all skills.
        measure: what it was ranked by.
        value: of the metric.
        ci_low: lower end of its 95 % interval.
        ci_high: upper end.
        tier: from 1, the best; None where it has no rank.
        chance: what a metric that guesses gets; None where the card does not say.
        speaks: `for` it, `against` it, or `undecided`.
        too_few: why metrics are not ordered by it for want of clusters, in a few words; such
            evidence decides nothing. Empty where there are enough.
    """

    benchmark: str
    skill: str | None
    measure: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    tier: int | None
    chance: float | None
    speaks: str
    too_few: str = ""


@dataclass(frozen=True)
class Judge:
    """A metric in its role on one skill.

    Attributes:
        entry_id: of the metric.
        title: its name and version.
        trusted: whether it judges this skill; the others are shown for the curious.
        pinned: whether an operator, not the rule, decided that.
        why: one sentence.
        evidence: what the rule looked at.
        seconds_per_image: measured; None where it is not known.
    """

    entry_id: str
    title: str
    trusted: bool
    pinned: bool = False
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    seconds_per_image: float | None = None


@dataclass(frozen=True)
class Mean:
    """One metric's mean score of one model on one skill, or people's mean rating of it.

    Attributes:
        value: mean over the prompts, in units of the metric or the ratings; None where nothing has
            one.
        ci_low: lower end of the 95 % interval, prompts resampled; None where there is none.
        ci_high: upper end.
        n_prompts: prompts with a score.
        n_missing: prompts without one.
        rank: among the models, by this metric alone; None where it has none.
        rank_low: best rank that the prompts leave open.
        rank_high: worst one.
        tier: from 1; None likewise.
    """

    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    n_prompts: int = 0
    n_missing: int = 0
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None


@dataclass(frozen=True)
class Standing:
    """Where a model stands on one skill, by all metrics that judge it.

    Attributes:
        submission_id: of the model.
        means: entry id of a metric to its mean, of trusted metrics and of others.
        better_than: models it is better than: at least one trusted metric says so with
            significance, and none says the contrary.
        worse_than: the reverse.
        rank_low: 1 + the number of models that are better.
        rank_high: the number of models less those that are worse.
        tier: from 1: no two models of one tier are told apart.
        unranked: why it has no rank; empty where it has one.
    """

    submission_id: str
    means: Mapping[str, Mean]
    better_than: frozenset[str] = frozenset()
    worse_than: frozenset[str] = frozenset()
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None
    unranked: str = ""


@dataclass(frozen=True)
class Disagreement:
    """Two models that trusted metrics order in opposite ways, each with significance.

    Attributes:
        first: submission id of one.
        second: of the other.
        for_first: metrics by which the first is better.
        for_second: metrics by which the second is.
    """

    first: str
    second: str
    for_first: tuple[str, ...]
    for_second: tuple[str, ...]


@dataclass(frozen=True)
class SkillBoard:
    """All models on one skill.

    Attributes:
        skill: key; None: all prompts.
        title: how it is shown.
        n_prompts: that test it, after the filter.
        judges: every metric that scored at least one model, trusted ones first.
        lead: entry id of the trusted metric whose means are shown first; None: nobody is trusted.
        standings: submission id to where it stands, in the order of the board.
        disagreements: pairs that trusted metrics order in opposite ways.
        note: what a reader must know: that nobody earned trust, or that the prompts are too few to
            order any two models; empty as a rule.
    """

    skill: str | None
    title: str
    n_prompts: int
    judges: tuple[Judge, ...]
    lead: str | None
    standings: Mapping[str, Standing]
    disagreements: tuple[Disagreement, ...] = ()
    note: str = ""

    @property
    def trusted(self) -> tuple[Judge, ...]:
        """The metrics that judge it."""
        return tuple(judge for judge in self.judges if judge.trusted)


@dataclass(frozen=True)
class BoardQuery:
    """What of a prompt set is looked at. Everything not said is all there is.

    Attributes:
        prompt_set: its name.
        split: only prompts of this split.
        words: only prompts that hold all these words.
        judge: entry id of the one metric to judge by, trusted or not; empty: the trusted ones.
        models: submission ids of the only models that are compared.
        seed: place (from 0) of the one seed of each model that counts; None: the mean of all.
        skills: the skills that are wanted (None is all prompts); empty: all skills without
            sub-skills, and all prompts.
    """

    prompt_set: str
    split: str = ""
    words: str = ""
    judge: str = ""
    models: tuple[str, ...] = ()
    seed: int | None = None
    skills: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class ModelBoard:
    """A board of models.

    Attributes:
        query: what was asked.
        entries: the models, by submission id.
        skills: key to its board, all prompts (None) first.
        rule: the sentence by which metrics earn trust.
        left_out: models of another revision of the prompt set, by name.
    """

    query: BoardQuery
    entries: Mapping[str, ModelEntry]
    skills: Mapping[str | None, SkillBoard]
    rule: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairTest:
    """Two models by one metric on one skill (the matrix figures of Re-Thinking).

    Attributes:
        judge: entry id of the metric; empty: people.
        skill: key; None: all prompts.
        n_prompts: on which both have a score.
        n_missing: on which one of them has none, or both.
        difference: mean of first less second, in units of the metric.
        ci_low: lower end of its 95 % interval.
        ci_high: upper end.
        t: Student's paired t.
        t_p: its two-sided p-value.
        t_p_holm: corrected for all pairs of models and trusted metrics on the skill, as on the
            board; by a metric that is not trusted, for all pairs of models by it alone.
        wilcoxon_w: the smaller rank sum.
        wilcoxon_p: its two-sided p-value.
        dominance: share of prompts on which the first is strictly better.
        dominance_back: share on which the second is.
    """

    judge: str
    skill: str | None
    n_prompts: int
    n_missing: int
    difference: float
    ci_low: float
    ci_high: float
    t: float
    t_p: float
    t_p_holm: float
    wilcoxon_w: float
    wilcoxon_p: float
    dominance: float
    dominance_back: float


@dataclass(frozen=True)
class PromptDifference:
    """One prompt of a comparison.

    Attributes:
        prompt_id: which.
        first: score of the first model, the mean over its seeds; NaN where it has none.
        second: of the second.
        share: of the summed difference of the two means that this prompt makes; NaN likewise.
    """

    prompt_id: str
    first: float
    second: float
    share: float


@dataclass(frozen=True)
class PairReport:
    """Two models compared.

    Attributes:
        first: one model.
        second: the other.
        tests: by every metric on every skill of the query.
        judges: skill to the metrics, trusted ones first.
        deciding: entry id of a metric to the prompts, those that say most for the first model
            first.
    """

    first: ModelEntry
    second: ModelEntry
    tests: tuple[PairTest, ...]
    judges: Mapping[str | None, tuple[Judge, ...]]
    deciding: Mapping[str, tuple[PromptDifference, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """Each two models by one metric on one skill; all arrays have shape (M, M).

    Attributes:
        judge: entry id of the metric.
        skill: key; None: all prompts.
        models: submission ids of the axes, in the order of the board.
        dominance: share of prompts on which the row is strictly better than the column; NaN where
            they share none.
        difference: mean of the row less the column, in units of the metric.
        t_p_holm: as in `PairTest`; NaN on the diagonal.
        wilcoxon_p: two-sided, not corrected.
    """

    judge: str
    skill: str | None
    models: tuple[str, ...]
    dominance: FloatArray
    difference: FloatArray
    t_p_holm: FloatArray
    wilcoxon_p: FloatArray
