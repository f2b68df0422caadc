"""People's ratings of text-to-image models: means by skill, and tests of each two models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.errors import SubmitterError
from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.api.tables.models import PromptSet, reader_of
from leaderboard.models.people import PeopleBoard, people_boards
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.addresses import models_address
from leaderboard.views.models import PEOPLE_IDENT

_RATINGS = (
    "model", "model_title", "skill", "skill_title", "facet", "mean", "ci_low", "ci_high",
    "n_prompts", "rank", "rank_low", "rank_high", "tier",
)  # fmt: skip
_PAIRS = (
    "model_a", "model_b", "skill", "skill_title", "facet", "difference", "ci_low", "ci_high",
    "n_prompts", "t", "p_value", "p_corrected", "wilcoxon_w", "wilcoxon_p", "dominance_a",
    "dominance_b",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "mean ci_low ci_high difference t p_value p_corrected wilcoxon_w wilcoxon_p "
    "dominance_a dominance_b",
    Type.COUNT: "n_prompts rank rank_low rank_high tier",
}
_MEANINGS = {
    "model": "As the released ratings name it.",
    "model_title": "As the paper names it.",
    "skill": "Missing: all prompts.",
    "facet": "Which set of ratings, where the benchmark has several; else empty.",
    "mean": "Mean rating over the prompts, from 1 to 5.",
    "ci_low": "Lower end of the 95% interval, BCa, prompts resampled.",
    "ci_high": "Upper end.",
    "rank": "Missing, as are range and tier: too few prompts for an order.",
    "rank_low": "Lower end of the 95% range of the rank over the resamples.",
    "rank_high": "Upper end.",
    "tier": "From 1; no two models of a tier differ significantly on the skill.",
    "difference": "Mean rating of a less that of b.",
    "p_value": "Of Student's paired t, two-sided, before correction.",
    "p_corrected": "After Holm's, over all pairs of models on the skill.",
    "wilcoxon_p": "Two-sided, not corrected.",
    "dominance_a": "Share of prompts on which a is rated strictly higher.",
    "dominance_b": "Share of prompts on which b is rated strictly higher.",
}


router = TableRouter()


@router.table("/models/{prompt_set}/ratings", of_snapshot=False)
def model_ratings(source: Source, prompt_set: PromptSet) -> Table:
    """People's mean ratings of models by skill, with intervals, ranks and tiers.

    On the prompts of a set; no metric takes part. No rows where nobody rated them.
    """
    return _table(source, prompt_set, "ratings", _RATINGS, _means)


@router.table("/models/{prompt_set}/ratings/pairs", of_snapshot=False)
def model_ratings_pairs(source: Source, prompt_set: PromptSet) -> Table:
    """Paired tests of each two models on people's ratings, on each skill."""
    return _table(source, prompt_set, "ratings-pairs", _PAIRS, _tests)


def _table(
    source: Source,
    name: str,
    part: str,
    columns: tuple[str, ...],
    rows_of: Callable[[PeopleBoard], list[dict[str, Value]]],
) -> Table:
    reader = reader_of(source, name)
    boards: tuple[PeopleBoard, ...] = ()
    missing = "People rated no models on these prompts."
    try:
        with source.turn():
            boards = people_boards(reader.prompt_sets[name], reader.data)
    except SubmitterError as error:
        missing = str(error)
    card = reader.prompt_sets[name].card
    about = {"prompt_set": name, "title": card.title, "page": f"{models_address(name)}#{PEOPLE_IDENT}",
             **(_about(boards) if boards else {"missing": missing})}  # fmt: skip
    rows = [row for board in boards for row in rows_of(board)]
    return Table(f"{name}-{part}", columns_of(columns, _TYPES, _MEANINGS), rows, about)


def _about(boards: tuple[PeopleBoard, ...]) -> dict[str, Any]:
    card = boards[0].benchmark
    return {
        "benchmark": card.name,
        "revision": card.revision,
        "licence": card.licence,
        "citation": card.citation,
        "seed": boards[0].seed,
        "facets": {board.gold: board.gold_title for board in boards if board.gold},
        "n_ratings": sum(board.n_ratings for board in boards),
        "notes": [board.note for board in boards if board.note],
    }


def _means(board: PeopleBoard) -> list[dict[str, Value]]:
    return [
        {
            "model": model, "model_title": board.models[model], "skill": of.skill,
            "skill_title": of.title, "facet": board.gold, "mean": mean.value,
            "ci_low": mean.ci_low, "ci_high": mean.ci_high, "n_prompts": mean.n_prompts,
            "rank": mean.rank, "rank_low": mean.rank_low, "rank_high": mean.rank_high,
            "tier": mean.tier,
        }
        for of in board.skills.values()
        for model, mean in of.means.items()
    ]  # fmt: skip


def _tests(board: PeopleBoard) -> list[dict[str, Value]]:
    return [
        {
            "model_a": a, "model_b": b, "skill": of.skill, "skill_title": of.title,
            "facet": board.gold, "difference": test.difference, "ci_low": test.ci_low,
            "ci_high": test.ci_high, "n_prompts": test.n_prompts, "t": test.t,
            "p_value": test.t_p, "p_corrected": test.t_p_holm, "wilcoxon_w": test.wilcoxon_w,
            "wilcoxon_p": test.wilcoxon_p, "dominance_a": test.dominance,
            "dominance_b": test.dominance_back,
        }
        for of in board.skills.values()
        for (a, b), test in of.pairs.items()
    ]  # fmt: skip
