"""Tables of models: colours, ranks, hatching, tests and seeds, from values that are made up."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.prompt_sets.prompt_set import SetPrompt
from benchmarks.rethinking.measures import MetricScores, stability
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.models.board_types import (
    BoardQuery,
    Judge,
    Mean,
    ModelBoard,
    PairMatrix,
    PairTest,
    SkillBoard,
    Standing,
)
from leaderboard.models.people import people_boards
from leaderboard.records import ModelCard
from leaderboard.views.models import Drawn, ModelsQuery, PlaceQuery
from leaderboard.web.components import HeatCell
from leaderboard.web.model_detail import command
from leaderboard.web.model_parts import (
    MOST_MODELS,
    MOST_PAIRED,
    MOST_SEEDS,
    NO_SCORE,
    Ranks,
    bump_of,
    by_model,
    by_seed,
    dominance,
    fine_percent,
    model_matrix,
    p_value,
    parameters,
    people_table,
    signed,
    skill_table,
    stability_tag,
    tags_of,
    taken,
    whole_percent,
)
from tests.leaderboard.models.made_up_ratings import (
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)
from tests.leaderboard.views.model_track import HOSTILE_ID, JUDGES, SET, entry, prompt_sets
from tests.leaderboard.web.skills_fixture import NASTY

NAN = math.nan
JUDGE = Judge("m/One", "One 1.0", trusted=True)
OTHER = Judge(f"m/{NASTY}", NASTY, trusted=False)


def standing(place: int, **more: Any) -> Standing:
    mean = Mean(0.8 - 0.1 * place, 0.7, 0.9, n_prompts=40, n_missing=place)
    better = frozenset({f"drawn-{place + 1:05d}"})
    given = more or {"rank_low": place + 1, "rank_high": place + 2, "tier": place + 1}
    return Standing(f"drawn-{place:05d}", {JUDGE.entry_id: mean}, better, **given)


def skill(key: str | None, n: int = 3, **more: Any) -> SkillBoard:
    standings = {f"drawn-{k:05d}": standing(k) for k in range(n)}
    made = SkillBoard(key, f"Of {key}", 40, (JUDGE, OTHER), JUDGE.entry_id, standings)
    return replace(made, **more)


def board(*skills: SkillBoard, n: int = 3) -> ModelBoard:
    entries = {f"drawn-{k:05d}": entry(k, f"Model {k}") for k in range(n)}
    return ModelBoard(BoardQuery(SET), entries, {one.skill: one for one in skills}, "The rule.")


def cells(made: ModelBoard, **params: Any) -> list[list[HeatCell]]:
    table = skill_table(made, **params)
    return [list(row.cells) for _, rows in table.groups for row in rows]


# Skills.


def test_a_cell_has_the_mean_its_rank_range_and_all_that_it_rests_on() -> None:
    same = {
        f"drawn-{k:05d}": replace(standing(0), submission_id=f"drawn-{k:05d}") for k in range(3)
    }
    found = cells(board(skill(None), skill("count", standings=same)))
    assert [(round(row[0].value or 0, 3), row[0].small) for row in found] == [
        (0.8, "1–2"), (0.7, "2–3"), (0.6, "3–4"),
    ]  # fmt: skip
    assert [row[0].share for row in found] == pytest.approx([1, 0.5, 0])
    assert {row[1].share for row in found} == {0.5}  # Equal means, one colour.
    assert [row[0].best for row in found] == [True, False, False]
    for words in ("One 1.0: 0.700 [0.700, 0.900]", "n 40", "1 without a score", "better than 1"):
        assert words in found[1][0].hint
    assert "id=drawn-00001&skill=count&judge=m/One" in found[1][1].href


def test_rows_stand_in_tiers_until_a_column_sorts_them() -> None:
    made = board(skill(None), skill("count"))
    in_tiers = skill_table(made)
    assert [tier.label for tier, _ in in_tiers.groups if tier] == ["Tier 1", "Tier 2", "Tier 3"]
    lowest = skill_table(made, "count")
    ((tier, rows),) = lowest.groups
    assert tier is None and [row.name[:7] for row in rows] == ["Model 2", "Model 1", "Model 0"]
    assert [one.sorted for one in lowest.columns] == ["", "", "ascending"]
    assert [one.sorted for one in skill_table(made, "-count").columns][2] == "descending"
    assert skill_table(made, "-nothing").groups == in_tiers.groups


def test_a_choice_of_models_shows_these_with_the_ranks_of_the_board() -> None:
    only = skill_table(board(skill(None)), "", ["drawn-00002"])
    ((tier, (row,)),) = only.groups
    assert tier is not None and tier.label == "Tier 3" and row.cells[0].small == "3–4"


def test_no_order_is_hatched_and_who_lacks_a_rank_or_a_judge_has_the_reason() -> None:
    flat = {
        f"drawn-{k:05d}": replace(standing(k), better_than=frozenset(), worse_than=frozenset())
        for k in range(3)
    }
    unranked = {"drawn-00000": standing(0), "drawn-00001": standing(1, unranked=f"60 lack {NASTY}")}
    made = board(skill(None, standings=unranked), skill("lang", standings=flat))
    (first, second), (third, fourth), _ = cells(made)
    assert not first.unordered and "No two models" in second.unordered
    assert "60 lack" in third.unordered and "No two models" in fourth.unordered
    labels = [tier.label for tier, _ in skill_table(made).groups if tier]
    assert labels == ["Tier 1", "No rank"]
    nobody = board(skill("lang", lead=None, judges=(OTHER,), note="Nobody."))
    table = skill_table(nobody)
    assert "no qualified metric" in table.columns[1].note and table.columns[1].hint == "Nobody."
    assert {row[0].value for row in cells(nobody)} == {None}


def test_more_models_than_can_be_read_are_cut_and_counted() -> None:
    n = MOST_MODELS + 7
    table = skill_table(board(skill(None, n), n=n))
    assert sum(len(rows) for _, rows in table.groups) == MOST_MODELS and table.left == 7


def test_what_a_reader_must_know_of_the_images_is_a_tag() -> None:
    copied = entry(0, "Copy").model_copy(update={"same_content_as": ("drawn-00007",)})
    assert tags_of(entry(0, "Plain")) == ()
    for one, labels in ((entry(1, "Best"), ["best of 4"]), (entry(2, "Withheld"), ["2 withheld"]),
                        (entry(3, "Lacking"), ["shared images", "60 missing"]),
                        (copied, ["same content"])):  # fmt: skip
        assert [tag.label for tag in tags_of(one)] == labels
    assert taken(ModelCard()) == "first image"
    best = taken(ModelCard(selection="best_of", best_of=4, selected_by=NASTY))
    assert best.startswith("best of 4 by <img") and "\u202e" not in best
    numbers = (None, 7, 860_000_000, 2_600_000_000, 12 * 10**12)
    assert [parameters(n) for n in numbers][1:] == [
        "7", "860\u00a0M", "2.6\u00a0B", "12\u00a0T"
    ]  # fmt: skip


# People's ratings.


def test_rated_models_stand_in_tiers_with_mean_interval_and_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    means = {"low": 2.0, "middle": 3.0, "high": 4.0, "<img src=x>": 1.5}
    rating(monkeypatch, RatedBenchmark(rated_answers(means)))
    (made,) = people_boards(rated_set(), None)
    table = people_table(made)
    assert [(tier.label, [row.name for row in rows]) for tier, rows in table.groups if tier] == [
        ("Tier 1", ["high"]), ("Tier 2", ["middle"]), ("Tier 3", ["low"]), ("Tier 4", ["<img src=x>"])
    ]  # fmt: skip
    for (_, (row,)), mean in zip(table.groups, made.overall.means.values(), strict=True):
        assert row.cells[0].value == mean.value and len(row.cells) == len(made.skills)
        assert row.cells[0].small.startswith(f"[{mean.ci_low:.2f}, {mean.ci_high:.2f}]")


def test_where_people_see_no_difference_or_prompts_are_few_nothing_is_ordered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = rated_answers({"one": 3.0, "two": 3.0})
    answers.ratings[:] = 3.0
    rating(monkeypatch, RatedBenchmark(answers))
    table = people_table(people_boards(rated_set(), None)[0])
    assert all(cell.unordered for _, rows in table.groups for row in rows for cell in row.cells)
    assert [column.note.endswith("n.s.") for column in table.columns[1:]] == [True] * 3
    rating(monkeypatch, RatedBenchmark(rated_answers({"a": 2.0, "b": 4.0}, counting=5)))
    table = people_table(people_boards(rated_set(), None)[0])
    assert [column.note.endswith("no order") for column in table.columns[1:]] == [
        False,
        False,
        True,
    ]
    assert [row.cells[-1].small for _, rows in table.groups for row in rows] == ["–"] * 2


# Two models.


def made_test(**more: float) -> PairTest:
    given = {"difference": 0.1, "ci_low": 0.05, "ci_high": 0.15, "t": 3.0, "t_p": 0.001,
             "t_p_holm": 0.01, "wilcoxon_w": 12.0, "wilcoxon_p": 0.002, "dominance": 0.7,
             "dominance_back": 0.2, **more}  # fmt: skip
    return PairTest(JUDGES[0], None, 40, 1, **given)


def test_shares_differences_and_p_values_are_told_plainly() -> None:
    assert dominance(made_test(), "A", "B") == "A is better on 70%, B on 20%, equal on 10%"
    assert dominance(made_test(dominance=NAN), "", "") == ""
    signs = [signed(x) for x in (0.1, -0.1, 0.0, 1e-9)]
    assert signs == ["+0.100", "−0.100", "0.000", "0.000"]
    assert [p_value(p) for p in (0.04, 1e-9, 1.0)] == [".040", "<.001", "1.000"]
    assert p_value(NAN) == whole_percent(None) == whole_percent(NAN)
    assert [whole_percent(share) for share in (1.0, 0.305)] == ["100%", "30%"]
    assert [fine_percent(share) for share in (0.123, 0.0123, 12.0)] == ["12%", "1.2%", "1200%"]


def matrix(n: int, **query: Any) -> Any:
    shares = np.full((n, n), 0.6)
    shares[np.tril_indices(n)] = 0.3
    p = np.full((n, n), 0.001)
    p[0, n - 1] = p[n - 1, 0] = np.nan
    np.fill_diagonal(p, np.nan)
    ids = tuple(f"drawn-{k:05d}" for k in range(n))
    made = PairMatrix(JUDGES[0], None, ids, shares, np.full((n, n), 0.1), p, p)
    entries = {ident: entry(k, NASTY) for k, ident in enumerate(ids)}
    return model_matrix(made, entries, PlaceQuery(ModelsQuery(SET, **query)))


def test_the_matrix_has_shares_above_and_p_values_below_the_diagonal_and_is_cut() -> None:
    found = matrix(3, skill="count")
    shown = [[cell.shown for cell in row] for row in found.cells]
    assert [row[k + 1 :] for k, row in enumerate(shown)] == [["60%*", "60%"], ["60%*"], []]
    assert [row[:k] for k, row in enumerate(shown)] == [[], [".001*"], [p_value(NAN), ".001*"]]
    assert found.cells[0][1].state == "is-sig" and found.cells[0][2].state == "is-ns"
    assert "view=two&skill=count&a=drawn-00000&b=drawn-00001" in found.cells[0][1].href
    assert matrix(1) is None
    large = matrix(MOST_PAIRED + 5)
    assert len(large.cells) == MOST_PAIRED and large.left == 5


# Seeds.


RANKS: Ranks = {
    "a": [(1, 0.9), (2, 0.7)], "b": [(2, 0.8), (1, 0.8)], "c": [(None, NAN), (3, 0.1)],
    "d": [(None, NAN), (None, NAN)],
}  # fmt: skip
TWO = ("Seed no. 1", "Seed no. 2")


def test_lines_cross_where_ranks_change() -> None:
    chart = bump_of(RANKS, {"a": NASTY}, TWO, "One")
    assert chart is not None and "2 models" in chart.summary
    assert [tuple(line.values) for line in chart.lines] == [(1, 2), (2, 1), (None, 3)]
    assert (chart.scale.low, chart.scale.high) == (1, 3) and chart.lines[0].name == NASTY
    assert bump_of({"a": [(1, 0.9)]}, {}, TWO[:1], "One") is None
    assert bump_of({"d": RANKS["d"]}, {}, TWO, "One") is None
    many: Ranks = {f"m{k}": [(k + 1, 0.5)] * 2 for k in range(MOST_PAIRED + 9)}
    chart = bump_of(many, {}, TWO, "One")
    assert chart is not None and len(chart.lines) == MOST_PAIRED


@pytest.mark.parametrize(
    ("means", "said"),
    [([[0.5, 0.5], [0.4, 0.4]], "no order"), ([[0.5, 0.4], [0.5, 0.4]], "stable"),
     ([[0.5, 0.4], [0.4, 0.5]], "not stable")],
)  # fmt: skip
def test_an_order_is_called_stable_only_where_models_differ_and_keep_it(
    means: list[list[float]], said: str
) -> None:
    scores = np.array(means)[:, :, None].repeat(9, axis=2)
    prompts = tuple(f"p{i}" for i in range(9))
    table = MetricScores("m", ("a", "b"), ("1", "2"), prompts, scores, scores)
    found = stability(table, ResamplingPlan(prompts, seed=7, n_resamples=50))
    assert stability_tag(found).label == said and stability_tag(None).label == "not known"


# Images and commands.


def test_images_name_model_seed_and_prompt_and_say_what_is_not_there() -> None:
    prompt = SetPrompt(HOSTILE_ID, NASTY)
    found = by_seed(Drawn(entry(0, NASTY), (7, 8), (0.5, NAN)), prompt)
    assert [tile.score for tile in found.tiles] == ["0.500", NO_SCORE]
    assert found.tiles[0].model.endswith("seed 7") and found.tiles[0].prompt == NASTY
    assert found.tiles[0].src.startswith(
        "./v1/generations/drawn-00000/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D/7"
    )
    unpublished = by_model([Drawn(entry(4, "x"), (7,), (0.5,))], prompt)
    assert [tile.src for tile in unpublished] == [""]
    many = by_seed(Drawn(entry(0, "x"), tuple(range(99)), (0.1,) * 99), prompt)
    assert len(many.tiles) == MOST_SEEDS and many.left == 99 - MOST_SEEDS


def test_a_command_generates_the_images_again_and_a_shell_can_take_nothing_amiss() -> None:
    card = prompt_sets()[SET].card
    known = command(entry(0, "Aurora"), card)
    for words in ("--model someone/model", "--seeds 40,41,42", f"--revision {'0' * 40}"):
        assert words in known
    for name in ("a/b; rm -rf ~", "--help/x", "a/b\nrm", "$(x)/y", "`x`/y", NASTY, "a/b c"):
        hostile = entry(0, "A").model_copy(update={"card": ModelCard(model=name, revision=name)})
        assert command(hostile, card) == f"python -m benchmarks prompts {SET}"
