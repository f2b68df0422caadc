"""Measures of Gecko: point-wise, pair-wise, model ordering, word level, reliable prompts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.gecko.load import (
    ABSOLUTE_TEMPLATES,
    TEMPLATES,
    VALUES,
    Aligned,
    GeckoAnswers,
    align,
    same_missing,
    template_scores,
)
from benchmarks.pooled import MIN_IMAGES, missing_scores, most_wrong
from benchmarks.rows import MeasuredBuilder, Row, notes
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics.correlation import resampled_pearson, resampled_spearman
from benchmarks.statistics.intervals import around, percentile
from benchmarks.statistics.ordering import (
    direction,
    majority_relation,
    relation,
    resampled_directions,
    resampled_majority,
    resampled_relations,
)
from benchmarks.statistics.raters import error_consistency, krippendorff_alpha
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan, mean_of_defined

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo.correlation(
        title="Spearman ρ",
        meaning="Rank correlation between the metric and the human score of one annotation "
        "template over the images of one model, averaged over the models. The summary without a "
        "template is the mean of the three templates that rate single images.",
        source="Gecko, point-wise evaluation; appendix F.1 of the later version",
    ),
    "pearson": MeasureInfo.correlation(
        title="Pearson r",
        meaning="Linear correlation between the metric and the human score of one annotation "
        "template over the images of one model, averaged over the models.",
        source="Gecko, point-wise evaluation; appendix F.1 of the later version",
    ),
    "pairwise_accuracy": MeasureInfo.share(
        title="Pairwise accuracy",
        meaning="Share of side-by-side comparisons of two models on one prompt in which the "
        "metric strictly prefers the image that most raters prefer. A tie or a missing score is "
        "wrong; comparisons on which the raters are unsure or tied are left out.",
        chance=0.5,
        source="Gecko, pair-wise evaluation",
    ),
    "model_pairs_right": MeasureInfo(
        in_steps=True,
        title="Model pairs right",
        meaning="Number of pairs of models that the metric relates as people do: better, worse, or "
        "no significant difference (Wilcoxon's signed ranks over the prompts, p < 0.001). The "
        "people's relation is the one that more than half of the templates find; without one it "
        "is no difference. Variant paper asks the three absolute templates, paper_v2 the "
        "side-by-side comparisons as well, direction_only compares means without a test. Every "
        "resample repeats the tests of metric and people, with the normal approximation. The interval "
        "is of what studies with as many prompts find on average, since more prompts tell more "
        "models apart.",
        low=0.0,
        source="Gecko, model ordering; later version, Figures 13 and 28",
    ),
    "word_accuracy": MeasureInfo.share(
        title="Word accuracy",
        meaning="Share of words that the metric labels as all raters do (grounded in the image or "
        "not), over words on which the raters agree and the metric gives a label. Scores from "
        "0.5 up are the label grounded; that cutoff is ours.",
        source="Gecko, Table 18",
    ),
    "error_consistency": MeasureInfo(
        title="Error consistency κ",
        meaning="Agreement of the metric's word labels with those of the raters beyond chance "
        "(Cohen's kappa), over the words of word accuracy.",
        high=1.0,
        chance=0.0,
        source="Gecko, Table 18",
    ),
}


# Parts with rows of their own: splits, skills and sub-skills.


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """A split, skill or sub-skill: `chosen` (n,) marks its images."""

    split: str | None
    skill: str | None
    chosen: Mask

    @property
    def is_sub_skill(self) -> bool:
        """True for a part finer than a skill."""
        return self.skill is not None and ":" in self.skill

    @property
    def orders_models(self) -> bool:
        """Models are ordered on the splits, as in the figures of the later version."""
        return self.skill is None

    @property
    def has_words(self) -> bool:
        """The paper reports word level for all prompts of a kind."""
        return self.skill is None and not (self.split or "").endswith("rel")


def parts_of(answers: GeckoAnswers) -> Iterator[Part]:
    """The splits, each without a skill first; empty parts are left out.

    Without a column `split` the one split is None, with skills and sub-skills. With it there are
    `all`, `s`, `r` and their reliable parts `rel`, `s_rel`, `r_rel`. Only prompts of `s` have
    skills, so skills stand below the two whole sets, `all` (with sub-skills) and `rel`.
    """
    prompts = answers.prompts.set_index("prompt_id").loc[answers.pairs["prompt_id"]]
    skills = prompts["skill"].astype(str).to_numpy(object)
    sub_skills = skills + ":" + prompts["sub_skill"].astype(str).to_numpy(object)
    whole = np.ones(skills.size, bool)
    if "split" not in prompts:
        yield from _with_skills(None, whole, skills, sub_skills)
        return
    split = prompts["split"].to_numpy(object)
    reliable = prompts["reliable"].to_numpy(bool)
    nothing = np.full(skills.size, "", object)
    for suffix, among, finer in (("", whole, sub_skills), ("rel", reliable, nothing)):
        yield from _with_skills(suffix or "all", among, skills, finer)
        for name in ("s", "r"):
            chosen = among & (split == name)
            if chosen.any():
                yield Part(f"{name}_{suffix}".rstrip("_"), None, chosen)


def _with_skills(
    split: str | None, among: Mask, skills: NDArray[np.object_], finer: NDArray[np.object_]
) -> Iterator[Part]:
    if among.any():
        yield Part(split, None, among)
    for labels in (skills, finer):
        for label in sorted(set(labels[among & (skills != "")]) - {""}):
            yield Part(split, label, among & np.asarray(labels == label, bool))


# Point-wise agreement: correlation over the images of one model, averaged over the models.


LEVEL = 0.05
"""The paper marks correlations whose p-value is larger; the note names their models."""

_CORRELATIONS = {"srcc": resampled_spearman, "pearson": resampled_pearson}


@dataclass(frozen=True)
class Estimate:
    """Estimates of a measure on a part, for all metrics."""

    values: FloatArray  # shape (B + 1, M), estimate and resamples
    rated: Mask  # shape (n,), images of the part that were rated
    used: Mask  # shape (n, M), images behind the value
    missing: Mask  # shape (n, M), images that would be used if they had a score
    gaps: tuple[str, ...]  # one per metric: what was left out
    # one per metric: models whose correlation has p > LEVEL
    insignificant: tuple[tuple[str, ...], ...]

    def note(self, metric: int) -> str:
        """Remarks on the value of a metric."""
        weak = self.insignificant[metric]
        return notes(self.gaps[metric], f"p > {LEVEL} for {', '.join(weak)}" if weak else "")


def pointwise(data: Aligned, part: Part, template: str) -> dict[str, Estimate]:
    """Spearman and Pearson per model, averaged over the models for which they are defined.

    A model with fewer than `MIN_IMAGES` images that have a score is left out.

    The p-value is that of each model's own correlation (Student's t with n - 2 degrees of
    freedom, as scipy computes it for both coefficients).
    """
    rated = part.chosen & np.isfinite(data.human[template])
    human = data.human[template]
    columns = [most_wrong(of, human, part.chosen, data.model_codes) for of in data.scores.T]
    filled = replace(data, scores=np.column_stack(columns))
    used = np.zeros(data.scores.shape, bool)
    per_model: dict[str, list[FloatArray]] = {name: [] for name in _CORRELATIONS}
    weak: dict[str, list[list[str]]] = {n: [[] for _ in data.metrics] for n in _CORRELATIONS}
    left_out: list[list[str]] = [[] for _ in data.metrics]
    for model in sorted(set(data.models[part.chosen])):
        images = np.flatnonzero(rated & (data.models == model))
        found = _correlations(filled, images, human[images])
        scored = np.isfinite(filled.scores[images])
        for name, values in found.items():
            per_model[name].append(values)
            for metric in np.flatnonzero(p_values(values[0], scored.sum(axis=0)) > LEVEL):
                weak[name][metric].append(model)
        defined = np.isfinite(found["srcc"][0])
        used[images] = np.isfinite(data.scores[images]) & defined
        for metric in np.flatnonzero(~defined):
            few = scored[:, metric].sum() < MIN_IMAGES
            left_out[metric].append(f"{model} ({_reason(few=bool(few))})")
    missing = rated[:, None] & np.isnan(data.scores)
    gaps = tuple(
        notes(
            f"models left out: {', '.join(out)}" if out else "",
            missing_scores(int((m & ~counted).sum()), int(counted.sum())),
        )
        for out, m, counted in zip(
            left_out, missing.T, (missing & np.isfinite(filled.scores)).T, strict=True
        )
    )
    return {
        name: Estimate(
            mean_of_defined(np.stack(values)),
            rated,
            used,
            missing,
            gaps,
            tuple(map(tuple, weak[name])),
        )
        for name, values in per_model.items()
    }


def mean_of_templates(estimates: dict[str, Estimate]) -> Estimate:
    """Mean over the rated templates; undefined where one of them is."""
    found = list(estimates.values())
    unrated = [template for template in ABSOLUTE_TEMPLATES if template not in estimates]
    absent = f"no ratings for {', '.join(unrated)}" if unrated else ""
    gaps = []
    for metric in range(found[0].values.shape[1]):
        undefined = [t for t, e in estimates.items() if not np.isfinite(e.values[0, metric])]
        of_metric = f"undefined for {', '.join(undefined)}" if undefined else ""
        partial = [f"{t}: {e.gaps[metric]}" for t, e in estimates.items() if e.gaps[metric]]
        gaps.append(notes(absent, of_metric, *partial))
    return Estimate(
        values=np.mean([e.values for e in found], axis=0),
        rated=np.any([e.rated for e in found], axis=0),
        used=np.any([e.used for e in found], axis=0),
        missing=np.any([e.missing for e in found], axis=0),
        gaps=tuple(gaps),
        insignificant=((),) * len(gaps),
    )


def p_values(r: FloatArray, n: NDArray[np.int_]) -> FloatArray:
    """Two-sided p of correlations r (any shape) over n values each; NaN where undefined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs(r) * np.sqrt((n - 2) / (1.0 - r**2))
        p: FloatArray = 2.0 * scipy.stats.t.sf(t, n - 2)
    return np.where(np.isfinite(r) & (n > 2), p, np.nan)


def _correlations(data: Aligned, images: IntArray, human: FloatArray) -> dict[str, FloatArray]:
    """Each measure over some images: shape (B + 1, M); NaN where it is undefined."""
    scores, prompts = data.scores[images], data.prompts[images]
    shape = (len(data.draws), len(data.metrics))
    found = {name: np.full(shape, np.nan) for name in _CORRELATIONS}
    for scored, columns in same_missing(np.isfinite(scores)):
        if scored.sum() < MIN_IMAGES:
            continue
        x, y = scores[np.ix_(scored, columns)], human[scored]
        for name, correlate in _CORRELATIONS.items():
            found[name][:, columns] = correlate(x, y, data.draws, prompts[scored])
    return found


def _reason(*, few: bool) -> str:
    return f"fewer than {MIN_IMAGES} images" if few else "all scores or all ratings are equal"


# Pair-wise agreement.


def right(scores: FloatArray, winner: IntArray, loser: IntArray) -> FloatArray:
    """1 where scores (n, ...) strictly prefer the winner, else 0: for ties and missing scores."""
    # A comparison with NaN is False.
    return (scores[winner] > scores[loser]).astype(np.float64)


def add_pairwise(builder: MeasuredBuilder, row: Row, part: Part, data: Aligned) -> None:
    """Accuracy over the part's decided comparisons: a ratio of sums over prompts."""
    winner, loser = data.comparisons.decided()
    chosen = part.chosen[winner]
    winner, loser = winner[chosen], loser[chosen]
    if winner.size == 0:
        for metric in data.metrics:
            builder.add(replace(row, metric=metric, note="no comparison with a preference"))
        return
    n_prompts = data.draws.shape[1]
    correct = np.zeros((n_prompts, len(data.metrics)))
    np.add.at(correct, data.prompts[winner], right(data.scores, winner, loser))
    sizes = np.bincount(data.prompts[winner], minlength=n_prompts).astype(np.float64)
    with np.errstate(invalid="ignore"):
        values = (data.draws @ correct) / (data.draws @ sizes)[:, None]
    unscored = np.isnan(data.scores[np.union1d(winner, loser)]).sum(axis=0)
    for column, metric in enumerate(data.metrics):
        n_missing = int(unscored[column])
        note = f"images without a score, whose comparisons are wrong: {n_missing}"
        filled = replace(
            row,
            metric=metric,
            value=float(values[0, column]),
            n_items=winner.size,
            n_clusters=int((sizes > 0).sum()),
            n_missing=n_missing,
            note=note if n_missing else "",
        )
        builder.add(filled, values[1:, column], members=np.flatnonzero(sizes))


# Model ordering.


ModelPair = tuple[str, str]

_ROUNDING = 9
"""Human scores are fractions such as 13/15. Their differences are rounded to this many digits, so
that equal ones are ties in the test and not two floats side by side."""


@dataclass(frozen=True)
class _Voters:
    """Templates whose majority is the true relation, tested or by means alone."""

    templates: tuple[str, ...]
    tested: bool


VARIANTS: dict[str, _Voters] = {
    "paper": _Voters(("WL", "Likert", "DSGH"), tested=True),
    "paper_v2": _Voters(("WL", "Likert", "DSGH", "SxS"), tested=True),
    "direction_only": _Voters(("WL", "Likert", "DSGH"), tested=False),
}


def add_model_order(builder: MeasuredBuilder, row: Row, part: Part, data: Aligned) -> None:
    """Rows of all variants for every metric; none where no absolute template was used."""
    human = _human_differences(data, part.chosen)
    metrics = [
        _Related(_differences(data.by_prompt(data.scores[:, column], part.chosen)), data.draws)
        for column in range(len(data.metrics))
    ]
    for variant, voters in VARIANTS.items():
        used = {name: human[name] for name in voters.templates if name in human}
        if not used or (variant == "paper_v2" and "SxS" not in used):
            continue
        of_variant = replace(row, variant=variant)
        pairs = [p for p in next(iter(used.values())) if any(_rated(u[p]) for u in used.values())]
        truth = _truth(used, pairs, data.draws, tested=voters.tested)
        unrated = [name for name in voters.templates if name not in human]
        for column, related in enumerate(metrics):
            values = _right(related, truth, pairs, tested=voters.tested).astype(np.float64)
            drawn = values[data.resampled]
            values[data.resampled] = around(values[0], drawn, 0.0, len(pairs))
            filled = _filled(replace(of_variant, metric=data.metrics[column]), data, part, column)
            note = _note(related.differences, pairs, unrated)
            if not any(_rated(related.differences[pair]) for pair in pairs):
                builder.add(replace(filled, value=math.nan, note=note))
                continue
            filled = replace(filled, value=float(values[0]), n_items=len(pairs), note=note)
            members = np.unique(data.prompts[part.chosen])
            builder.add(filled, values[1:], members=members)


def _filled(row: Row, data: Aligned, part: Part, column: int) -> Row:
    scored = part.chosen & np.isfinite(data.scores[:, column])
    return replace(
        row,
        n_clusters=np.unique(data.prompts[scored]).size,
        n_missing=int((part.chosen & ~scored).sum()),
    )


def _note(
    differences: Mapping[ModelPair, FloatArray], pairs: Sequence[ModelPair], unrated: Sequence[str]
) -> str:
    if not pairs:
        return "no two models were rated on the same prompts"
    unscored = ["–".join(pair) for pair in pairs if not _rated(differences[pair])]
    if len(unscored) == len(pairs):
        return "no two models have scores on the same prompts"
    return notes(
        f"of {len(pairs)} pairs of models",
        f"counted as wrong for want of scores: {', '.join(unscored)}" if unscored else "",
        f"no ratings for {', '.join(unrated)}" if unrated else "",
    )


def _truth(
    human: Mapping[str, Mapping[ModelPair, FloatArray]],
    pairs: Sequence[ModelPair],
    draws: FloatArray,
    *,
    tested: bool,
) -> dict[ModelPair, NDArray[np.int8]]:
    """Majority of the templates for each pair, shape (B + 1,): estimate first, then resamples."""
    found = {}
    for pair in pairs:
        votes = np.stack([_relations(of[pair], draws, tested=tested) for of in human.values()])
        found[pair] = resampled_majority(votes)
        found[pair][0] = majority_relation([int(vote) for vote in votes[:, 0]])
    return found


@dataclass(frozen=True)
class _Related:
    """Differences of each pair of models by one metric, with their relations found once."""

    differences: Mapping[ModelPair, FloatArray]
    draws: FloatArray
    _found: dict[tuple[ModelPair, bool], NDArray[np.int8]] = field(default_factory=dict)

    def relations(self, pair: ModelPair, *, tested: bool) -> NDArray[np.int8]:
        """Shape (B + 1,), see `_relations`."""
        key = (pair, tested)
        if key not in self._found:
            d = self.differences[pair]
            ranked = _rounded(d) if tested else d
            self._found[key] = _relations(ranked, self.draws, tested=tested)
        return self._found[key]


def _right(
    related: _Related,
    truth: Mapping[ModelPair, NDArray[np.int8]],
    pairs: Sequence[ModelPair],
    *,
    tested: bool,
) -> NDArray[np.intp]:
    """Number of pairs whose relation is the true one, shape (B + 1,); an unscored pair is not."""
    right = np.zeros(len(related.draws), np.intp)
    for pair in pairs:
        if _rated(related.differences[pair]):
            right += related.relations(pair, tested=tested) == truth[pair]
    return right


def _relations(differences: FloatArray, draws: FloatArray, *, tested: bool) -> NDArray[np.int8]:
    """Shape (B + 1,): the test on the prompts as they are, then on each resample."""
    zero = np.zeros_like(differences)
    found = resampled_relations if tested else resampled_directions
    values = found(differences, draws)
    values[0] = (relation if tested else direction)(differences, zero)
    return values


def _rounded(differences: FloatArray) -> FloatArray:
    """As shares of the largest, so that equal ones are ties in the test, as human ones are."""
    there = np.isfinite(differences)
    size = np.abs(differences).max(where=there, initial=0.0)
    return differences if size == 0.0 else np.round(differences / size, _ROUNDING)


def _differences(by_model: Mapping[str, FloatArray]) -> dict[ModelPair, FloatArray]:
    return {(a, b): by_model[a] - by_model[b] for a, b in combinations(sorted(by_model), 2)}


def _human_differences(data: Aligned, chosen: Mask) -> dict[str, dict[ModelPair, FloatArray]]:
    """Template to pair of models to differences per prompt, shape (C,); SxS gives -1, 0 and 1."""
    found = {
        template: {
            pair: np.round(values, _ROUNDING)
            for pair, values in _differences(data.by_prompt(scores, chosen)).items()
        }
        for template, scores in data.human.items()
    }
    if data.comparisons.preference.size:
        found["SxS"] = _preferences(data, chosen)
    return found


def _preferences(data: Aligned, chosen: Mask) -> dict[ModelPair, FloatArray]:
    found = {
        pair: np.full(data.draws.shape[1], np.nan)
        for pair in combinations(sorted(set(data.models)), 2)
    }
    compared = data.comparisons
    for a, b, preference in zip(compared.first, compared.second, compared.preference, strict=True):
        if chosen[a]:  # both images belong to one prompt; `preferences` puts models in order
            found[data.models[a], data.models[b]][data.prompts[a]] = preference
    return found


def _rated(differences: FloatArray) -> bool:
    return bool(np.isfinite(differences).any())


# Word level (Gecko, Table 18).


CUTOFF = 0.5
"""A score from here up says that the word is grounded in the image (not stated in the paper)."""


@dataclass(frozen=True)
class WordLabels:
    """WordLabels (k,) on which the raters agree and that a metric labels."""

    image: IntArray  # position of the word's image
    metric: Mask  # the metric's label
    human: Mask  # the raters' label
    agreed: IntArray  # shape (n,), number of words of each image on which the raters agree


def agreed_words(ratings: pd.DataFrame) -> pd.DataFrame:
    """WordLabels that every rater calls aligned, or every rater calls not aligned.

    Columns `prompt_id`, `model`, `unit_index`, `grounded` (bool), sorted by the first three.
    """
    rows = ratings[ratings["template"] == "WL"]
    marked = rows.assign(
        grounded=(rows["value"] == "aligned").to_numpy(bool),
        ungrounded=(rows["value"] == "not_aligned").to_numpy(bool),
    )
    units = marked.groupby(["prompt_id", "model", "unit_index"], sort=True)
    of_all = units[["grounded", "ungrounded"]].all().reset_index()
    kept = of_all[of_all["grounded"] | of_all["ungrounded"]]
    return kept.drop(columns="ungrounded").reset_index(drop=True)


def word_labels(scores: ScoreTable, metric: str, answers: GeckoAnswers) -> WordLabels:
    """The words of one metric, whose element ids are the words' indices in the prompt."""
    agreed = agreed_words(answers.ratings).merge(
        answers.pairs.assign(image=np.arange(len(answers.pairs))), on=["prompt_id", "model"]
    )
    labels = scores.elements[metric]
    labels = labels[np.isfinite(labels["score"].to_numpy(np.float64))]
    wanted = agreed.assign(element_id=agreed["unit_index"].astype(str))
    both = wanted.merge(labels, on=["pair_id", "element_id"])
    values = both["score"].to_numpy(np.float64)
    upwards = scores.directions.get(metric, 1) > 0
    return WordLabels(
        image=both["image"].to_numpy(np.intp),
        metric=values >= CUTOFF if upwards else values <= CUTOFF,
        human=both["grounded"].to_numpy(bool),
        agreed=np.bincount(agreed["image"].to_numpy(np.intp), minlength=len(answers.pairs)),
    )


def add_word_rows(
    builder: MeasuredBuilder, row: Row, part: Part, words: WordLabels, data: Aligned
) -> None:
    """Accuracy and error consistency over all models (facet `WL`) and each (`WL:<model>`)."""
    _add(builder, replace(row, facet="WL"), part.chosen, words, data)
    for model in sorted(set(data.models[part.chosen])):
        chosen = part.chosen & np.asarray(data.models == model, bool)
        _add(builder, replace(row, facet=f"WL:{model}"), chosen, words, data)


def _add(
    builder: MeasuredBuilder, row: Row, chosen: Mask, words: WordLabels, data: Aligned
) -> None:
    kept = chosen[words.image]
    metric, human, image = words.metric[kept], words.human[kept], words.image[kept]
    agreed = int(words.agreed[chosen].sum())
    coverage = f"{metric.size} of {agreed} words on which the raters agree"
    filled = replace(
        row,
        n_items=metric.size,
        n_clusters=np.unique(data.prompts[image]).size,
        n_missing=np.setdiff1d(np.flatnonzero(chosen & (words.agreed > 0)), image).size,
        note=coverage,
    )
    shares = _resampled_shares(metric, human, data.prompts[image], data.draws)
    accuracy = float((metric == human).mean()) if metric.size else np.nan
    kappa = error_consistency(metric, human)
    why = "" if metric.size else "; no word to compare"
    constant = "; all labels are equal" if metric.size and np.isnan(kappa) else ""
    for name, value, resamples, reason in (
        ("word_accuracy", accuracy, shares[0], why),
        ("error_consistency", kappa, shares[1], why or constant),
    ):
        one = replace(filled, measure=name, value=value, note=coverage + reason)
        members = np.unique(data.prompts[chosen & (words.agreed > 0)])
        builder.add(one, None if np.isnan(value) else resamples[1:], members=members)


def _resampled_shares(
    metric: Mask, human: Mask, prompts: IntArray, draws: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Accuracy and kappa of each resample, shape (B + 1,), from sums per prompt."""
    sums = [
        draws @ np.bincount(prompts, weights=cells.astype(np.float64), minlength=draws.shape[1])
        for cells in (np.ones_like(metric), metric == human, metric, human)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, p, q = (part / sums[0] for part in sums[1:])
        expected = p * q + (1.0 - p) * (1.0 - q)
        kappa = np.where(expected < 1.0, (observed - expected) / (1.0 - expected), np.nan)
    return observed, kappa


# Facts of the ratings alone, for the about page.


_SIGNS = {-1: "<", 0: "=", 1: ">"}


def facts(answers: GeckoAnswers) -> dict[str, pd.DataFrame]:
    """The tables below by title; see `Benchmark.facts`."""
    return {
        "Krippendorff's alpha by template and model": rater_agreement(answers),
        "Mean human score and unsure answers": template_means(answers),
        "Accuracy of templates on side-by-side comparisons": template_pairwise_accuracy(answers),
        "Order of the models": model_relations(answers),
    }


def rater_agreement(answers: GeckoAnswers) -> pd.DataFrame:
    """Krippendorff's alpha with Unsure kept, as one more value (hence nominal).

    The paper does not name the level of measurement; Unsure is a value at the nominal one alone.
    A unit is a word, a question, an image (Likert) or a comparison (SxS).

    Columns `split`, `template`, `model` (SxS: `first-second`), `alpha` (at most 1; NaN where all
    answers are equal or no unit has two), `units` (with two answers or more).
    """
    rows = []
    for split, template, model, ratings in _by_model(answers):
        table = _units_by_rater(ratings, template)
        units = int((np.isfinite(table).sum(axis=1) >= 2).sum())
        rows.append((split, template, model, krippendorff_alpha(table, "nominal"), units))
    return pd.DataFrame(rows, columns=["split", "template", "model", "alpha", "units"])


def template_means(answers: GeckoAnswers) -> pd.DataFrame:
    """Mean human score and share of Unsure answers by model in the absolute templates.

    Columns `split`, `template`, `model`, `mean_score` (over images, 0..1; NaN where all are
    unsure), `images` (behind it), `unsure_share` (of all answers, 0..1), `answers`.
    """
    rows = []
    for split, template, model, ratings in _by_model(answers):
        if template in ABSOLUTE_TEMPLATES:
            scores = template_scores(ratings)["score"]
            unsure = float((ratings["value"] == "unsure").mean())
            images = int(scores.notna().sum())
            rows.append((split, template, model, scores.mean(), images, unsure, len(ratings)))
    columns = ["split", "template", "model", "mean_score", "images", "unsure_share", "answers"]
    return pd.DataFrame(rows, columns=columns)


def template_pairwise_accuracy(answers: GeckoAnswers) -> pd.DataFrame:
    """Agreement of each absolute template with the side-by-side comparisons.

    The template's score stands in for a metric: a tie is wrong, and so is an image without a
    score. The paper reports it on the reliable prompts.

    Columns `split`, `template`, `model`, `model_b` (both empty: all pairs of models), `accuracy`
    (0..1), `ci_low`, `ci_high` (95 %, prompts resampled; NaN below two prompts), `comparisons`
    (with a preference).
    """
    data = _aligned(answers, DEFAULT_RESAMPLES)
    winner, loser = data.comparisons.decided()
    pairs = np.sort(np.stack([data.models[winner], data.models[loser]]).astype(str), axis=0)
    rows = []
    for part in _splits(answers):
        kept = part.chosen[winner]
        for template, scores in data.human.items():
            correct = right(scores, winner, loser)
            for a, b in [("", ""), *combinations(sorted(set(data.models)), 2)]:
                of_pair = kept if not a else kept & (pairs[0] == a) & (pairs[1] == b)
                if of_pair.any():
                    value = float(correct[of_pair].mean())
                    ends = _interval(correct[of_pair], data.prompts[winner[of_pair]], data.draws)
                    rows.append((part.split, template, a, b, value, *ends, int(of_pair.sum())))
    columns = [
        "split", "template", "model", "model_b", "accuracy", "ci_low", "ci_high", "comparisons",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _interval(correct: FloatArray, prompts: IntArray, draws: FloatArray) -> tuple[float, float]:
    """Percentile interval of a share over comparisons, with prompts resampled."""
    if np.unique(prompts).size < 2:
        return math.nan, math.nan
    n_prompts = draws.shape[1]
    with np.errstate(invalid="ignore"):
        shares = (draws[1:] @ np.bincount(prompts, correct, n_prompts)) / (
            draws[1:] @ np.bincount(prompts, minlength=n_prompts)
        )
    low, high = percentile(shares[None, :]).ends
    return float(low[0]), float(high[0])


def model_relations(answers: GeckoAnswers) -> pd.DataFrame:
    """Relation of each pair of models in each template, and what the majority says.

    Columns `split`, `model`, `model_b` (by name), one per rated template (`<`, `=` or `>`:
    Wilcoxon, p < 0.001), `majority` of the absolute ones and `majority_v2` of all.
    """
    data = _aligned(answers)
    rows = []
    for part in _splits(answers):
        found = {
            template: {
                pair: relation(values, np.zeros_like(values)) for pair, values in of_pairs.items()
            }
            for template, of_pairs in _human_differences(data, part.chosen).items()
        }
        for a, b in combinations(sorted(set(data.models)), 2):
            votes = {template: of[a, b] for template, of in found.items()}
            absolute = [vote for template, vote in votes.items() if template != "SxS"]
            signs = {template: _SIGNS[vote] for template, vote in votes.items()}
            rows.append(
                {"split": part.split, "model": a, "model_b": b, **signs}
                | {"majority": _SIGNS[majority_relation(absolute)]}
                | {"majority_v2": _SIGNS[majority_relation(list(votes.values()))]}
            )
    return pd.DataFrame(rows)


def _splits(answers: GeckoAnswers) -> list[Part]:
    return [part for part in parts_of(answers) if part.skill is None]


def _aligned(answers: GeckoAnswers, n_resamples: int = 0) -> Aligned:
    """The human side, with no metric."""
    nothing = ScoreTable(pd.DataFrame(index=pd.Index(answers.pair_ids)))
    plan = ResamplingPlan(answers.clusters, seed=0, n_resamples=n_resamples)
    return align(nothing, answers, plan)


def _by_model(
    answers: GeckoAnswers,
) -> Iterator[tuple[str | None, str, str, pd.DataFrame]]:
    """Split, template, model or pair of models, and the ratings there."""
    first = answers.ratings[["model", "model_b"]].min(axis=1)
    second = answers.ratings[["model", "model_b"]].max(axis=1)
    sides = (first + "-" + second).where(answers.ratings["template"] == "SxS")
    named = answers.ratings.assign(of=sides.fillna(answers.ratings["model"]))
    for part in _splits(answers):
        prompts = set(answers.pairs.loc[part.chosen, "prompt_id"])
        ratings = named[named["prompt_id"].isin(prompts)]
        for template in TEMPLATES:
            for model, rows in ratings[ratings["template"] == template].groupby("of", sort=True):
                yield part.split, template, str(model), rows


def _units_by_rater(ratings: pd.DataFrame, template: str) -> np.ndarray:
    """Codes of the answers, shape (units, most raters of a unit); NaN fills up."""
    value = ratings["value"]
    if template == "SxS":  # the same models may have been shown in either order
        swapped = ratings["model"] > ratings["model_b"]
        value = value.where(~swapped, value.map({"a": "b", "b": "a", "unsure": "unsure"}))
    codes = value.map({name: float(i) for i, name in enumerate(VALUES[template])})
    unit = ratings.groupby(["prompt_id", "unit_index"], sort=True)
    table = np.full((unit.ngroups, int(unit.size().max())), np.nan)
    table[unit.ngroup().to_numpy(), unit.cumcount().to_numpy()] = codes.to_numpy(np.float64)
    return table
