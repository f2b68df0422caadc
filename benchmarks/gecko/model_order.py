"""Model ordering: does a metric relate each pair of models as people do?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.gecko.aligned import Aligned
from benchmarks.gecko.parts import Mask, Part
from benchmarks.rows import MeasuredBuilder, Row, notes
from benchmarks.statistics.ordering import (
    direction,
    majority_relation,
    relation,
    resampled_directions,
    resampled_majority,
    resampled_relations,
)

ModelPair = tuple[str, str]

_ROUNDING = 9
"""Human scores are fractions such as 13/15. Their differences are rounded to this many digits, so
that equal ones are ties in the test and not two floats side by side."""


@dataclass(frozen=True)
class _Voters:
    """Who says what the true relation is.

    Attributes:
        templates: those who vote, as far as they were used.
        tested: whether a relation needs significance, or only a difference of means.
    """

    templates: tuple[str, ...]
    tested: bool


VARIANTS: dict[str, _Voters] = {
    "paper": _Voters(("WL", "Likert", "DSGH"), tested=True),
    "paper_v2": _Voters(("WL", "Likert", "DSGH", "SxS"), tested=True),
    "direction_only": _Voters(("WL", "Likert", "DSGH"), tested=False),
}


def model_pairs_right(found: Sequence[int], truth: Sequence[int]) -> int:
    """Number of pairs of models with the same relation in both."""
    return sum(one == other for one, other in zip(found, truth, strict=True))


def template_relations(data: Aligned, chosen: Mask) -> dict[str, dict[ModelPair, int]]:
    """Relation of each pair of models (first < second by name) in each template that was used."""
    return {
        template: {
            pair: relation(values, np.zeros_like(values)) for pair, values in of_pairs.items()
        }
        for template, of_pairs in _human_differences(data, chosen).items()
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
            values = _right(related, truth, pairs, tested=voters.tested)
            filled = _filled(replace(of_variant, metric=data.metrics[column]), data, part, column)
            note = _note(related.differences, pairs, unrated)
            if not any(_rated(related.differences[pair]) for pair in pairs):
                builder.add(replace(filled, value=math.nan, note=note))
                continue
            filled = replace(filled, value=float(values[0]), n_items=len(pairs), note=note)
            members = np.unique(data.prompts[part.chosen])
            builder.add(filled, values[1:].astype(np.float64), members=members)


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
    """Differences of each pair of models by one metric, and the relations that follow.

    Several variants ask for the same relations, so each is found once.
    """

    differences: Mapping[ModelPair, FloatArray]
    draws: FloatArray
    _found: dict[tuple[ModelPair, bool], NDArray[np.int8]] = field(default_factory=dict)

    def relations(self, pair: ModelPair, *, tested: bool) -> NDArray[np.int8]:
        """Shape (B + 1,), see `_relations`."""
        key = (pair, tested)
        if key not in self._found:
            self._found[key] = _relations(self.differences[pair], self.draws, tested=tested)
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
