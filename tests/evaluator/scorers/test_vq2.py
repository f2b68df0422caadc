from __future__ import annotations

import math

import pytest

from evaluator.scorers.questions.question import Question
from evaluator.scorers.questions.scorer import QuestionScorer
from tests.evaluator.scorers.questions.fakes import FakeAnswers, file_of

P = "a dog on the red sofa"
QUESTIONS = file_of(
    Question(prompt=P, question_id="1", question="Who sits?", expected="a dog"),
    Question(prompt=P, question_id="2", question="Where?", expected="the red sofa"),
)
ASK = {
    'is "a dog" true for "Who sits?" in this image?': (-0.2, -2.0),
    'is "the red sofa" true for "Where?" in this image?': (-3.0, -0.4),
}


@pytest.mark.parametrize("value", ["p_first", "p_yes_norm"])
def test_the_mean_of_p_yes_over_question_and_answer_pairs(value: str) -> None:
    from evaluator.scorers.families.vq2 import AnswersHold, Options

    logprobs = {("x", ask, "yes"): [yes, -5.0] for ask, (yes, _) in ASK.items()}
    logprobs |= {("x", ask, "no"): [no] for ask, (_, no) in ASK.items()}
    metric = AnswersHold(Options.model_validate({"value": value}))
    found = QuestionScorer(metric, FakeAnswers(logprobs=logprobs), QUESTIONS)
    verdict = found.score_texts(["x"], [[P]])[0][0]
    of_each = [
        math.exp(yes) if value == "p_first" else 1 / (1 + math.exp(no - yes))
        for yes, no in ASK.values()
    ]
    assert verdict.score == pytest.approx(sum(of_each) / 2, abs=1e-12)
    assert [answer.raw for answer in verdict.answers] == ["yes", "no"]
