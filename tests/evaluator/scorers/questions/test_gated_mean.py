from __future__ import annotations

import numpy as np
import pytest

from evaluator.scorers.questions.accumulation import Gate, gated_mean, mean_of_valid, product
from evaluator.scorers.questions.asked import AskedQuestions
from evaluator.scorers.questions.question import Question
from tests.evaluator.scorers.questions.fakes import yes_no

P = "a white cat with a red collar"
CHAIN = (
    yes_no(P, "1", "A cat?"),
    yes_no(P, "2", "A collar?", "1"),
    yes_no(P, "3", "Is the collar red?", "2"),
)


def asked(*questions: Question) -> AskedQuestions:
    return AskedQuestions.of(P, questions)


@pytest.mark.parametrize(
    ("gate", "score", "valid"),
    [
        ("none", 2 / 3, [True, True, True]),
        # The collar's raw answer is right, so the third counts, though the second does not.
        ("onehop", 1 / 3, [True, False, True]),
        ("recursive", 0.0, [True, False, False]),
    ],
)
def test_the_gates_differ_where_a_grandparent_is_wrong(
    gate: Gate, score: float, valid: list[bool]
) -> None:
    found = gated_mean(asked(*CHAIN), np.array([[False, True, True]]), gate)
    assert found.scores.tolist() == [pytest.approx(score)]
    assert found.valid.tolist() == [valid]


@pytest.mark.parametrize("gate", ["none", "onehop", "recursive"])
def test_a_forward_edge_gives_what_the_ordered_questions_give(gate: Gate) -> None:
    correct = np.array([[False, True, True], [True, False, True], [True, True, True]])
    ordered = gated_mean(asked(*CHAIN), correct, gate)
    turned = gated_mean(asked(*CHAIN[::-1]), correct[:, ::-1], gate)
    assert ordered.scores.tolist() == turned.scores.tolist()
    assert ordered.valid.tolist() == turned.valid[:, ::-1].tolist()
    assert asked(*CHAIN[::-1]).order == (2, 1, 0)


def test_gates_agree_with_the_rules_written_out_on_random_graphs() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = 7
        parents = [[str(p) for p in range(q) if rng.random() < 0.3] for q in range(n)]
        questions = [yes_no(P, str(q), f"{q}?", *parents[q]) for q in range(n)]
        correct = rng.random((4, n)) < 0.7
        onehop, recursive = correct.copy(), correct.copy()
        for q in range(n):
            for parent in map(int, parents[q]):
                onehop[:, q] &= correct[:, parent]
                recursive[:, q] &= recursive[:, parent]
        one = gated_mean(asked(*questions), correct, "onehop")
        all_above = gated_mean(asked(*questions), correct, "recursive")
        np.testing.assert_allclose(one.scores, onehop.mean(axis=1))
        np.testing.assert_allclose(all_above.scores, recursive.mean(axis=1))
        np.testing.assert_array_equal(one.counts, onehop)


def test_questions_below_a_rejected_one_depend_on_its_parents() -> None:
    rejected = CHAIN[1].model_copy(update={"review": "rejected"})
    kept = asked(CHAIN[0], rejected, CHAIN[2])
    assert [q.question_id for q in kept.questions] == ["1", "3"]
    assert kept.parents == ((), (0,))
    none = asked(CHAIN[0].model_copy(update={"review": "rejected"}))
    assert (none.questions, none.reason) == ((), "all of them were rejected")


def test_means_leave_out_what_a_filter_took_and_products_take_all() -> None:
    values = np.array([0.5, np.nan, 1.0])
    assert mean_of_valid(values, np.array([True, False, True])) == 0.75
    assert np.isnan(mean_of_valid(values, np.zeros(3, bool)))
    assert product(np.array([0.5, 0.5])) == 0.25
    assert product(np.array([])) == 1.0
