"""The verdict on models: only what tests say, and honest where they say nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leaderboard.models.board_types import (
    BoardQuery,
    Disagreement,
    Judge,
    Mean,
    ModelBoard,
    ModelSummary,
    PairReport,
    PairTest,
    SkillBoard,
)
from leaderboard.models.people import people_boards
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from leaderboard.views.model_verdict import (
    no_order,
    verdict_of_board,
    verdict_of_pair,
    verdict_of_people,
)
from tests.leaderboard.models.made_up_ratings import (
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)
from tests.leaderboard.views.model_track import IDS, SET, entry

ONE = Judge("m/One", "One 1.0", trusted=True)
TWO = Judge("m/Two", "Two 2.0", trusted=True)
OTHER = Judge("m/Other", "Other", trusted=False)
FEW = MIN_CLUSTERS - 1
Better = dict[int, tuple[int, ...]]


def plain(place: int, name: str) -> ModelEntry:
    return entry(place, name).model_copy(update={"version": ""})


def skill(better: Better, n: int = 3, **more: Any) -> SkillBoard:
    """A board of n models, the first of them first, and who is significantly better than whom."""
    standings = {}
    for k in range(n):
        ahead = frozenset(IDS[j] for j in better.get(k, ()))
        behind = frozenset(IDS[j] for j in range(n) if k in better.get(j, ()))
        mean = Mean(0.8 - 0.1 * k, 0.7, 0.9, n_prompts=80)
        low, high = 1 + len(behind), n - len(ahead)
        standings[IDS[k]] = ModelSummary(IDS[k], {ONE.entry_id: mean}, ahead, behind, low, high, 1)
    made = SkillBoard(None, "All prompts", 80, (ONE, OTHER), ONE.entry_id, standings)
    return replace(made, **more)


def board(*skills: SkillBoard, judge: str = "") -> ModelBoard:
    entries = {IDS[k]: plain(k, f"Model {k}") for k in range(5)}
    names = {one.skill: one for one in skills}
    return ModelBoard(BoardQuery(SET, judge=judge), entries, names, "The rule.")


DISPUTED = (Disagreement(IDS[0], IDS[1], ("m/One",), ("m/Two",)),)
UNRANKED = {IDS[0]: ModelSummary(IDS[0], {}, unranked="It lacks scores.")}


@pytest.mark.parametrize(
    ("of", "words", "not_words"),
    [
        (skill({0: (1, 2), 1: (2,)}), ("By One 1.0", "Model 0", "all 2 other"), ("Model 1",)),
        (skill({0: (1,)}, 2), ("Model 0", "the other model"), ("leads",)),
        (skill({0: (2,), 1: (2,)}), ("Model 0", "Model 1", "lead 3"), ("Model 2",)),
        (skill({0: (2, 3), 1: (3,), 2: (1,)}, 4), ("Model 0", "significantly better than 2"), ("all",)),
        (skill({}), ("no two of 3 models differ significantly",), ("Model",)),
        (skill({}, disagreements=DISPUTED), ("no model is ahead", "disagree about 1 pair"), ("leads",)),
        (skill({}, lead=None, judges=(OTHER,)), ("No metric is qualified",), ("Model", "Other")),
        (skill({0: (1, 2)}, n_prompts=FEW), ("Too few prompts", f"({FEW}; at least"), ("Model",)),
        (skill({}, n_prompts=0), ("No prompt",), ("differ",)),
        (skill({}, 1), ("Model 0 is the only model",), ("best",)),
        (skill({}, standings=UNRANKED), ("No model has the scores",), ("Model 0",)),
        (skill({0: (1, 2)}, judges=(ONE, TWO)), ("By 2 qualified metrics",), ("One",)),
        (skill({0: (1, 2)}, skill="count", title="Counting"), ("on Counting (80 prompts)",), ()),
    ],
)  # fmt: skip
def test_the_sentence_says_what_was_tested_and_no_more(
    of: SkillBoard, words: tuple[str, ...], not_words: tuple[str, ...]
) -> None:
    said = verdict_of_board(board(of), "The set").sentence
    assert all(one in said for one in words), said
    assert not any(one in said for one in not_words), said


def test_skills_without_an_order_are_named_and_what_it_rests_on_is_said() -> None:
    flat = skill({}, skill="lang", title="Language")
    found = verdict_of_board(board(skill({0: (1, 2)}, judges=(ONE, TWO)), flat), "The set")
    assert found.sentence.endswith("On Language no two models differ significantly.")
    for words in ("The set, 5 models", "Holm", "One 1.0 and Two 2.0"):
        assert words in found.detail
    assert no_order(flat) and not no_order(replace(flat, disagreements=DISPUTED))
    alone = verdict_of_board(board(skill({0: (1, 2)}), judge="m/Other"), "The set").sentence
    assert "By Other, which is not qualified here," in alone


def test_people_are_quoted_with_interval_tests_and_skills_they_do_not_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rating(monkeypatch, RatedBenchmark(rated_answers({"low": 2.0, "high": 4.0, "mid": 3.0})))
    (found,) = people_boards(rated_set(), None)
    said = verdict_of_people(found, alone=True)
    mean = found.overall.means["high"]
    assert (
        f"high has the highest mean rating, {mean.value:.2f} of 5 [{mean.ci_low:.2f}"
        in said.sentence
    )
    assert "significantly above every other model" in said.sentence
    assert "ratings alone" in said.detail and "3 pairs" in said.detail
    rating(monkeypatch, RatedBenchmark(rated_answers({"a": 3.0, "b": 3.0}, seed=5)))
    (equal,) = people_boards(rated_set(), None)
    said = verdict_of_people(equal, alone=False)
    assert "none is significantly below" in said.sentence and "no two of the 2" in said.sentence


def made_test(judge: str = ONE.entry_id, difference: float = 0.1, p: float = 0.01) -> PairTest:
    return PairTest(
        judge, None, 40, 1, difference, 0.05, 0.15, 3.0, 0.001, p, 12.0, 0.002, 0.7, 0.2
    )


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ([made_test()], "By One 1.0 A is significantly better than B (counting, 40 prompts)."),
        ([made_test(difference=-0.1)], "By One 1.0 B is significantly better than A"),
        ([made_test(p=0.2)], "By One 1.0 there is no significant difference between A and B"),
        ([made_test(p=float("nan"))], "no significant difference"),
        ([made_test(), made_test(TWO.entry_id, -0.2)],
         "By One 1.0 A is significantly better than B; by Two 2.0 B is significantly better than A"),
        ([], "No qualified metric has scored both"),
    ],
)  # fmt: skip
def test_two_models_get_the_verdict_of_every_metric(tests: list[PairTest], said: str) -> None:
    report = PairReport(plain(0, "A"), plain(1, "B"), tuple(tests), {None: (ONE, TWO)})
    assert said in verdict_of_pair(report, tests, "Counting").sentence
