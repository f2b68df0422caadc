"""Models against each other: two by every metric on every skill, or each two on one skill."""

from __future__ import annotations

from itertools import combinations

from leaderboard.api.operations import Asked, Operation, Parameter
from leaderboard.api.problems import bad_query
from leaderboard.api.source import Source
from leaderboard.api.tables.models import FILTERS, PROMPT_SET, SKILL, about_of, chosen
from leaderboard.models.board_types import Judge, PairMatrix, PairReport
from leaderboard.models.pair import pair_matrix, pair_report
from leaderboard.models.reading import ModelReader
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.models import Choice, board_of, judge_of

MOST_MODELS = 300
"""Whose pairs are one answer."""
_COLUMNS = (
    "skill", "skill_title", "model_a", "submission_a", "model_b", "submission_b", "metric",
    "metric_title", "trusted", "difference", "ci_low", "ci_high", "n_prompts", "n_missing", "t",
    "p_value", "p_corrected", "wilcoxon_w", "wilcoxon_p", "dominance_a", "dominance_b",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "difference ci_low ci_high t p_value p_corrected wilcoxon_w wilcoxon_p dominance_a "
    "dominance_b",
    Type.COUNT: "n_prompts n_missing",
    Type.FLAG: "trusted",
}
_MEANINGS = {
    "skill": "Missing: all prompts.",
    "metric": "Entry id of the metric that judges.",
    "trusted": "Whether it earned it to judge this skill.",
    "difference": "Mean of a less that of b, in units of the metric.",
    "ci_low": "Of the difference; only where two models are asked for, as are t and the like.",
    "p_value": "Of Student's paired t, two-sided, before correction.",
    "p_corrected": "After Holm's, over all pairs of models and all metrics that judge the skill.",
    "wilcoxon_p": "Two-sided, not corrected.",
    "dominance_a": "Share of prompts on which a is strictly better.",
    "dominance_b": "Share of prompts on which b is strictly better.",
}


def pairs(source: Source, asked: Asked) -> Table:
    """Tests between two models on all skills, or between each two on one.

    Raises:
        RefusedError: `unknown_prompt_set`, `bad_query`.
    """
    choice, reader, view = chosen(source, asked)
    a, b = asked.params.get("a", ""), asked.params.get("b", "")
    known = set(choice.query.models) or {one.submission_id for one in choice.entries}
    if bool(a) != bool(b) or (a and (a not in known or b not in known or a == b)):
        raise bad_query("“a” and “b” are not two models of this board.", "See /v1/models.")
    name, columns = f"{choice.card.name}-pairs", columns_of(_COLUMNS, _TYPES, _MEANINGS)
    about = about_of(choice, view)
    if not (choice.places and choice.entries and choice.judges):
        return Table(name, columns, [], about)
    with source.turn():
        if a:
            report = pair_report(reader, view, a, b, choice.wanted)
            return Table(name, columns, _of_report(report, choice), about)
        return Table(name, columns, _of_all(choice, reader, view), about)


def _of_report(report: PairReport, choice: Choice) -> list[dict[str, Value]]:
    rows: list[dict[str, Value]] = []
    for test in report.tests:
        judges = {one.entry_id: one for one in report.judges.get(test.skill, ())}
        rows.append({
            **_head(test.skill, judges[test.judge], choice), **_pair(report.first, report.second),
            "difference": test.difference, "ci_low": test.ci_low, "ci_high": test.ci_high,
            "n_prompts": test.n_prompts, "n_missing": test.n_missing, "t": test.t,
            "p_value": test.t_p, "p_corrected": test.t_p_holm, "wilcoxon_w": test.wilcoxon_w,
            "wilcoxon_p": test.wilcoxon_p, "dominance_a": test.dominance,
            "dominance_b": test.dominance_back,
        })  # fmt: skip
    return rows


def _of_all(choice: Choice, reader: ModelReader, view: View) -> list[dict[str, Value]]:
    skill = choice.query.skill or None
    board = board_of(choice, reader, view, skill)
    if board is None or len(board.entries) > MOST_MODELS:
        raise bad_query("Too many models for one answer.", "Name some of them by “models”.")
    judges = {one.entry_id: one for one in board.skills[skill].judges}
    shown = [one for one in judges.values() if one.trusted and not choice.query.judge]
    if not shown:
        shown = [judges[judge] for judge in [judge_of(choice, reader, view)] if judge in judges]
    entries = {one.submission_id: one for one in choice.entries}
    rows: list[dict[str, Value]] = []
    for judge in shown:
        found = pair_matrix(reader, view, choice.wanted, skill, judge.entry_id)
        rows += _of_matrix(found, _head(skill, judge, choice), entries)
    return rows


def _of_matrix(
    found: PairMatrix, head: dict[str, Value], entries: dict[str, ModelEntry]
) -> list[dict[str, Value]]:
    return [
        {
            **head, **_pair(entries[found.models[i]], entries[found.models[j]]),
            "difference": float(found.difference[i, j]), "p_corrected": float(found.t_p_holm[i, j]),
            "wilcoxon_p": float(found.wilcoxon_p[i, j]), "dominance_a": float(found.dominance[i, j]),
            "dominance_b": float(found.dominance[j, i]),
        }
        for i, j in combinations(range(len(found.models)), 2)
    ]  # fmt: skip


def _head(skill: str | None, judge: Judge, choice: Choice) -> dict[str, Value]:
    title = "All prompts" if skill is None else skill_title(choice.card, skill)
    return {
        "skill": skill, "skill_title": title, "metric": judge.entry_id,
        "metric_title": judge.title, "trusted": judge.trusted,
    }  # fmt: skip


def _pair(a: ModelEntry, b: ModelEntry) -> dict[str, Value]:
    return {
        "model_a": a.title, "submission_a": a.submission_id,
        "model_b": b.title, "submission_b": b.submission_id,
    }  # fmt: skip


OPERATIONS = (
    Operation(
        "/models/{prompt_set}/pairs", "model_pairs",
        "Two models by every metric on every skill; without them each two models on one skill.",
        pairs,
        (
            Parameter("a", "Submission id of a model; with b."),
            Parameter("b", "Submission id of the other."), SKILL, *FILTERS,
        ),
        (PROMPT_SET,), of_snapshot=False,
    ),
)  # fmt: skip
