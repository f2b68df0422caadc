"""From answers to scores: the three rules, when an answer is correct, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.accumulation import question_scores
from benchmarks.accumulation.question_scores import (
    AnsweredQuestions,
    Notation,
    QuestionGraph,
    Rule,
    Unparsable,
    counted,
    image_scores,
    pairs_of,
    parse_parents,
)
from benchmarks.errors import SubmitterError

RULES: tuple[Rule, ...] = ("mean", "dsg", "recursive")


def questions(*rows: tuple[str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["text_id", "question_id", "parents"])


def answered(
    asked: pd.DataFrame,
    replies: Mapping[str, tuple[str, str]],
    *,
    unparsable: Unparsable = "independent",
) -> AnsweredQuestions:
    """`replies`: image to its prompt and one letter per question of it, `y` where correct."""
    graph = QuestionGraph.of(asked, unparsable=unparsable)
    rows = [
        (pair, question, letter == "y")
        for pair, (text, letters) in replies.items()
        for question, letter in zip(
            asked.loc[asked["text_id"] == text, "question_id"], letters, strict=False
        )
    ]
    table = pd.DataFrame(rows, columns=["pair_id", "question_id", "correct"])
    pairs = pd.DataFrame(
        {"pair_id": list(replies), "text_id": [text for text, _ in replies.values()]}
    )
    return AnsweredQuestions.of(table, table["correct"].to_numpy(bool), graph, pairs)


CHAIN = questions(("dog", "1", "0"), ("dog", "2", "1"), ("dog", "3", "2"))
"""Is there a dog? Is it brown? Is its brown light?"""


class TestRules:
    def test_a_wrong_parent_takes_its_direct_children_with_it_under_dsg_only_those(self) -> None:
        found = answered(CHAIN, {"a": ("dog", "nyy")})
        assert counted(found, "mean").tolist() == [False, True, True]
        assert counted(found, "dsg").tolist() == [False, False, True]
        assert counted(found, "recursive").tolist() == [False, False, False]

    def test_the_score_is_the_share_of_all_questions_that_count(self) -> None:
        found = answered(CHAIN, {"a": ("dog", "nyy"), "b": ("dog", "yyy"), "c": ("dog", "yyn")})
        for rule, expected in (
            ("mean", [2 / 3, 1, 2 / 3]),
            ("dsg", [1 / 3, 1, 2 / 3]),
            ("recursive", [0, 1, 2 / 3]),
        ):
            scores = image_scores(found, rule, "empty")  # type: ignore[arg-type]
            assert scores.index.tolist() == ["a", "b", "c"]
            assert scores.tolist() == expected

    def test_one_of_several_wrong_parents_is_enough(self) -> None:
        asked = questions(("t", "1", "0"), ("t", "2", "0"), ("t", "3", "1,2"))
        found = answered(asked, {"a": ("t", "yny")})
        assert counted(found, "dsg").tolist() == [True, False, False]

    def test_prompts_with_the_same_question_numbers_do_not_mix(self) -> None:
        asked = questions(("s", "1", ""), ("s", "2", "1"), ("t", "1", ""), ("t", "2", "1"))
        found = answered(asked, {"a": ("s", "ny"), "b": ("t", "yy")})
        assert image_scores(found, "dsg", "empty").tolist() == [0, 1]

    def test_the_order_of_answers_does_not_matter_and_children_may_come_first(self) -> None:
        asked = questions(("t", "7", "3"), ("t", "3", "5"), ("t", "5", "0"))
        graph = QuestionGraph.of(asked)
        table = pd.DataFrame({"pair_id": "a", "question_id": ["3", "5", "7"]})
        pairs = pd.DataFrame({"pair_id": ["a"], "text_id": ["t"]})
        found = AnsweredQuestions.of(table, np.array([True, False, True]), graph, pairs)
        assert counted(found, "recursive").tolist() == [False, False, False]
        assert counted(found, "dsg").tolist() == [False, False, True]

    @pytest.mark.parametrize("rule", RULES)
    def test_an_image_without_answers_scores_zero_or_nothing_as_is_said(self, rule: Rule) -> None:
        found = answered(CHAIN, {"a": ("dog", "yyy"), "b": ("dog", ""), "c": ("no questions", "")})
        assert image_scores(found, rule, "zero").tolist() == [1, 0, 0]
        empty = image_scores(found, rule, "empty")
        assert np.isnan(empty["b"])
        assert np.isnan(empty["c"])
        assert empty["a"] == 1

    def test_without_any_answer_there_are_still_scores(self) -> None:
        found = answered(CHAIN, {"a": ("dog", "")})
        assert image_scores(found, "recursive", "zero").tolist() == [0.0]


def naive(parents: Mapping[int, list[int]], correct: Mapping[int, bool], rule: Rule) -> float:
    """The rules said once more, question by question."""

    def counts(question: int) -> bool:
        if rule == "mean":
            return correct[question]
        if rule == "dsg":
            return correct[question] and all(correct[p] for p in parents[question])
        return correct[question] and all(counts(p) for p in parents[question])

    return float(np.mean([counts(question) for question in correct]))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_rule_agrees_with_a_question_by_question_walk(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    rank = data.draw(st.permutations(range(1, n + 1)))  # parents have a smaller rank: no circle
    parents = {
        q: data.draw(st.lists(st.sampled_from(list(rank[:k]) or [q]), max_size=3))
        for k, q in enumerate(rank)
    }
    parents = {q: [p for p in found if p != q] for q, found in parents.items()}
    asked = questions(
        *(("t", str(q), ",".join(map(str, parents[q])) or "0") for q in range(1, n + 1))
    )
    letters = data.draw(st.lists(st.text("yn", min_size=n, max_size=n), min_size=1, max_size=3))
    found = answered(asked, {f"image {i}": ("t", word) for i, word in enumerate(letters)})
    for rule in RULES:
        expected = [
            naive(parents, {q: word[q - 1] == "y" for q in parents}, rule) for word in letters
        ]
        assert image_scores(found, rule, "zero").tolist() == pytest.approx(expected, abs=1e-15)


def test_a_hundred_thousand_answers_take_no_time() -> None:
    n_prompts, n_questions, n_images = 500, 10, 20
    asked = questions(
        *(
            (f"t{t}", str(q), str(q - 1))
            for t in range(n_prompts)
            for q in range(1, n_questions + 1)
        )
    )
    graph = QuestionGraph.of(asked)
    pairs = pd.DataFrame(
        [(f"t{t}-{i}", f"t{t}") for t in range(n_prompts) for i in range(n_images)],
        columns=["pair_id", "text_id"],
    )
    table = pd.DataFrame(
        {
            "pair_id": np.repeat(pairs["pair_id"].to_numpy(), n_questions),
            "question_id": np.tile(np.arange(1, n_questions + 1).astype(str), len(pairs)),
        }
    )
    correct = np.random.default_rng(0).random(len(table)) < 0.9
    found = AnsweredQuestions.of(table, correct, graph, pairs)
    scores = image_scores(found, "recursive", "empty")
    # In a chain, what counts is the run of correct answers at its start.
    runs = np.cumprod(correct.reshape(-1, n_questions), axis=1).mean(axis=1)
    assert scores.to_numpy() == pytest.approx(runs)


class TestParents:
    @pytest.mark.parametrize(
        ("cell", "notation", "expected"),
        [
            ("0", "dsg", ((), True)),
            ("", "dsg", ((), True)),
            ("1,2", "dsg", ((1, 2), True)),
            ("1,2, 4", "dsg", ((1, 2, 4), True)),
            ("5,0", "dsg", ((5,), True)),
            ("1, outside", "dsg", ((1,), False)),
            ("outside", "dsg", ((), False)),
            ("-1", "dsg", ((), False)),
            ("1,", "dsg", ((1,), False)),
            ("-1", "ts2", ((), True)),
            ("", "ts2", ((), True)),
            ("0", "ts2", ((0,), True)),
            ("1-0", "ts2", ((1, 0), True)),
            ("1,0", "ts2", ((), False)),
        ],
    )
    def test_a_cell_is_read_in_either_notation(
        self, cell: str, notation: Notation, expected: tuple[tuple[int, ...], bool]
    ) -> None:
        assert parse_parents(cell, notation) == expected

    ODD = questions(("t", "1", "0"), ("t", "2", "1"), ("t", "3", "1, outside"), ("s", "1", "0"))

    def test_one_unreadable_cell_frees_all_questions_of_its_prompt(self) -> None:
        graph = QuestionGraph.of(self.ODD)
        assert graph.unparsable == ("t",)
        assert graph.child.size == 0

    def test_or_its_numbers_are_used(self) -> None:
        graph = QuestionGraph.of(self.ODD, unparsable="repair")
        assert list(zip(graph.child, graph.parent, strict=True)) == [(1, 0), (2, 0)]
        assert graph.unparsable == ("t",)

    def test_or_it_is_refused(self) -> None:
        with pytest.raises(SubmitterError, match=r"'1, outside' at question 3 of prompt 't'"):
            QuestionGraph.of(self.ODD, unparsable="refuse")

    def test_a_question_that_names_itself_depends_on_nothing_by_that(self) -> None:
        found = answered(questions(("t", "1", "0"), ("t", "2", "1,2")), {"a": ("t", "yy")})
        for rule in RULES:
            assert image_scores(found, rule, "zero").tolist() == [1.0]

    def test_a_circle_is_refused_where_it_has_no_meaning(self) -> None:
        asked = questions(("t", "1", "0"), ("t", "2", "3"), ("t", "3", "2"))
        found = answered(asked, {"a": ("t", "yny")})
        assert counted(found, "dsg").tolist() == [True, False, False]
        with pytest.raises(SubmitterError, match=r"prompt 't' depend on each other") as caught:
            counted(found, "recursive")
        assert caught.value.code == "cyclic_questions"
        assert "2 > 3 > 2" in caught.value.message or "3 > 2 > 3" in caught.value.message

    @pytest.mark.parametrize(
        ("rows", "code", "says"),
        [
            ([("t", "1", "0"), ("t", "1", "0")], "duplicate_questions", "question 1 of prompt 't'"),
            ([("t", "1", "0"), ("t", "2", "9")], "unknown_parents", "9 at question 2"),
            ([("s", "9", "0"), ("t", "2", "9")], "unknown_parents", "9 at question 2"),
            ([("t", "1", "0"), ("t", "one", "0")], "bad_question_id", "'one' (line 3)"),
            ([("t", "-1", "0")], "bad_question_id", "'-1' (line 2)"),
            ([("t", "9" * 30, "0")], "bad_question_id", "(line 2)"),
        ],
    )
    def test_a_wrong_table_of_questions_is_refused(
        self, rows: list[tuple[str, str, str]], code: str, says: str
    ) -> None:
        with pytest.raises(SubmitterError) as caught:
            QuestionGraph.of(questions(*rows), source="questions.csv")
        assert caught.value.code == code
        assert "questions.csv" in caught.value.message
        assert says in caught.value.message


class TestAnswers:
    PAIRS = pd.DataFrame({"pair_id": ["a", "b"], "text_id": ["dog", "dog"]})

    @pytest.mark.parametrize(
        ("rows", "code", "says"),
        [
            ([("c", "1")], "unknown_pairs", "the first is 'c'"),
            ([("a", "1"), ("a", "4")], "unknown_questions", "question 4 of prompt 'dog'"),
            ([("a", "1"), ("b", "1"), ("a", "1")], "duplicate_answers", "question 1 about image"),
            ([("b", "1"), ("b", "3")], "unanswered_questions", "'b' with 2 of 3 questions"),
            ([("b", "x")], "bad_question_id", "'x' (line 2)"),
        ],
    )
    def test_wrong_answers_are_refused(
        self, rows: list[tuple[str, str]], code: str, says: str
    ) -> None:
        table = pd.DataFrame(rows, columns=["pair_id", "question_id"])
        with pytest.raises(SubmitterError) as caught:
            AnsweredQuestions.of(
                table,
                np.zeros(len(table), bool),
                QuestionGraph.of(CHAIN),
                self.PAIRS,
                source="answers.csv",
            )
        assert caught.value.code == code
        assert "answers.csv" in caught.value.message
        assert says in caught.value.message

    def test_an_image_may_stand_once_among_the_pairs(self) -> None:
        table = pd.DataFrame({"pair_id": ["a"], "question_id": ["1"]})
        pairs = pd.concat([self.PAIRS, self.PAIRS])
        with pytest.raises(SubmitterError, match="'a' stands twice"):
            AnsweredQuestions.of(table, np.zeros(1, bool), QuestionGraph.of(CHAIN), pairs)

    def test_images_can_be_taken_from_the_answers(self) -> None:
        table = pd.DataFrame({"pair_id": ["b", "b", "a"], "text_id": ["dog", "dog", "cat"]})
        assert pairs_of(table).to_dict("list") == {"pair_id": ["b", "a"], "text_id": ["dog", "cat"]}

    def test_an_image_with_two_prompts_is_refused(self) -> None:
        table = pd.DataFrame({"pair_id": ["b", "b"], "text_id": ["dog", "cat"]})
        with pytest.raises(SubmitterError, match="several prompts for 1 images, the first is 'b'"):
            pairs_of(table)


class TestCorrectness:
    ANSWERS = pd.Series(["yes", "Yes", "yes, there is", "her eyes", "no", "", " yes"])

    def test_equals_yes_takes_nothing_else(self) -> None:
        found = question_scores.equals_yes(self.ANSWERS)
        assert found.tolist() == [True, False, False, False, False, False, False]

    def test_contains_yes_takes_eyes_too(self) -> None:
        found = question_scores.contains_yes(self.ANSWERS)
        assert found.tolist() == [True, True, True, True, False, False, True]

    def test_tifa_asks_for_yes_where_there_are_two_choices_and_for_the_choice_elsewhere(
        self,
    ) -> None:
        found = question_scores.tifa(
            pd.Series(["no", "yes", "a cat", "a cat", "old"]),
            pd.Series(["no", "yes", "Black  Cat", "dog", "old"]),
            pd.Series(["yes|no", "yes|no", "black cat|dog|cow", "black cat|dog|cow", "young|old"]),
            pd.Series(["no", "no", "black cat", "black cat", "old"]),
        )
        assert found.tolist() == [False, True, True, False, False]

    @pytest.mark.parametrize(("choices", "expected"), [("yes", "yes"), ("", ""), ("a|b|c", " ")])
    def test_tifa_refuses_questions_without_choices_or_expectation(
        self, choices: str, expected: str
    ) -> None:
        one = pd.Series(["yes"])
        with pytest.raises(SubmitterError, match="1 answers belong to questions") as caught:
            question_scores.tifa(one, one, pd.Series([choices]), pd.Series([expected]))
        assert caught.value.code == "bad_choices"

    def test_given_correctness_is_one_or_zero(self) -> None:
        assert question_scores.stated_correctness(pd.Series(["1", "0"])).tolist() == [True, False]
        with pytest.raises(SubmitterError, match="'' in line 3"):
            question_scores.stated_correctness(pd.Series(["1", "", "yes"]))
