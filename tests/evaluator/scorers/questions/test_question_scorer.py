from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import Candidate
from evaluator.scorers.questions.asked import AskedQuestions
from evaluator.scorers.questions.metric import Query, QuestionMetric, Reply, filled
from evaluator.scorers.questions.question import NoQuestions
from evaluator.scorers.questions.scorer import QuestionScorer
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers.questions.fakes import FakeAnswers, file_of, yes_no

CAT, DOG = "a cat", "a dog"
FILE = file_of(
    yes_no(CAT, "1", "Is there a cat?", element="cat"),
    yes_no(CAT, "2", "Is it alive?", element="cat"),
    yes_no(DOG, "1", "Is there a dog?", element="dog"),
    yes_no(DOG, "2", "Is it alive?"),
)
WORDS = {
    ("x", "Is there a cat?"): "yes",
    ("x", "Is it alive?"): "no",
    ("x", "Is there a dog?"): "no",
    ("y", "Is there a cat?"): "no",
    ("y", "Is it alive?"): "yes",
    ("y", "Is there a dog?"): "yes",
}


def scorer(model: FakeAnswers) -> QuestionScorer:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    return QuestionScorer(QuestionAnswering(Options()), model, FILE)


def test_all_questions_of_an_image_go_to_the_model_in_one_call_each_once() -> None:
    model = FakeAnswers(WORDS)
    verdicts = scorer(model).score_texts(["x", "y"], [[CAT, DOG], [DOG]])
    assert [[verdict.score for verdict in row] for row in verdicts] == [[0.5, 0.0], [1.0]]
    assert model.calls == [
        [
            ["Is there a cat?", "Is it alive?", "Is there a dog?"],
            ["Is there a dog?", "Is it alive?"],
        ]
    ]


def test_scores_are_the_same_alone_in_a_batch_and_in_any_order() -> None:
    pairs = [("x", CAT), ("x", DOG), ("y", CAT), ("y", DOG)]
    alone = [scorer(FakeAnswers(WORDS)).score([image], [prompt])[0] for image, prompt in pairs]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        images, prompts = zip(*(pairs[row] for row in order), strict=True)
        found = scorer(FakeAnswers(WORDS)).score(images, prompts)
        assert found == [alone[row] for row in order]


def test_a_prompt_without_questions_has_no_score_and_the_reason() -> None:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    file = file_of(NoQuestions(prompt="xyz", no_questions="no noun phrases"))
    model = FakeAnswers()
    of_image = QuestionScorer(QuestionAnswering(Options()), model, file)
    known, unknown = of_image.score_texts(["x"], [["xyz", "abc"]])[0]
    assert math.isnan(known.score)
    assert known.problem == "no questions: no noun phrases"
    assert unknown.problem == "no questions: the question file does not have this prompt"
    assert model.calls == []


def test_a_prompt_without_questions_takes_nothing_from_the_others() -> None:
    rows = scorer(FakeAnswers(WORDS)).score_texts(["y", "x"], [["abc"], [CAT, "abc"]])
    assert math.isnan(rows[0][0].score)
    assert rows[1][0].score == 0.5


def test_a_verdict_carries_each_answer() -> None:
    verdict = scorer(FakeAnswers(WORDS)).score_texts(["x"], [[CAT]])[0][0]
    assert [(a.question_id, a.expected, a.raw, a.value, a.valid) for a in verdict.answers] == [
        ("1", "yes", "yes", 1.0, True),
        ("2", "yes", "no", 0.0, True),
    ]


def test_no_number_from_the_model_is_no_score_and_names_the_question() -> None:
    from evaluator.scorers.families.vq2 import AnswersHold
    from evaluator.scorers.families.vq2 import Options as Vq2Options

    logprobs = {
        ("x", 'is "yes" true for "Is there a cat?" in this image?', "yes"): [math.nan],
        ("x", 'is "yes" true for "Is there a cat?" in this image?', "no"): [-1.0],
        ("x", 'is "yes" true for "Is it alive?" in this image?', "yes"): [-1.0],
        ("x", 'is "yes" true for "Is it alive?" in this image?', "no"): [-1.0],
    }
    of_image = QuestionScorer(AnswersHold(Vq2Options()), FakeAnswers(logprobs=logprobs), FILE)
    verdict = of_image.score_texts(["x"], [[CAT]])[0][0]
    assert math.isnan(verdict.score)
    assert "no number for question 1" in verdict.problem
    assert len(verdict.answers) == 2


def test_an_element_scores_the_mean_of_the_questions_about_it() -> None:
    found = scorer(FakeAnswers(WORDS)).score_elements(
        ["x", "y", "x"], [CAT, DOG, "abc"], [["cat", "tail"], ["dog"], ["cat"]]
    )
    np.testing.assert_equal(found, [[0.5, math.nan], [1.0], [math.nan]])


def test_a_prompt_is_truncated_where_any_of_its_questions_is() -> None:
    model = FakeAnswers(WORDS, longest=14)
    assert scorer(model).truncated([CAT, "abc", DOG]) == [True, False, True]
    assert scorer(FakeAnswers(WORDS, longest=15)).truncated([DOG, CAT]) == [False, False]


class Mixed(QuestionMetric):
    def queries(self, asked: AskedQuestions) -> list[Query]:
        return [Query("a"), Query("b", (Candidate("yes"),))]

    def verdicts(self, asked: AskedQuestions, replies: Sequence[Sequence[Reply]]) -> list[Verdict]:
        return []


def test_a_metric_asks_one_way_only() -> None:
    with pytest.raises(PlatformError, match="freely and for probabilities"):
        QuestionScorer(Mixed(), FakeAnswers(), FILE).score(["x"], [CAT])


def test_braces_in_a_prompt_mean_nothing() -> None:
    template = "Is {prompt} here, {answer}?"
    assert filled(template, prompt="{answer} {0}", answer="yes") == "Is {answer} {0} here, yes?"
