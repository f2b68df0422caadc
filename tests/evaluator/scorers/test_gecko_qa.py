from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.question import Question
from evaluator.scorers.questions.scorer import QuestionScorer
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers.questions.fakes import FakeAnswers, file_of, yes_no

if TYPE_CHECKING:
    from evaluator.scorers.families.gecko_qa import Gecko

P = "a red dog"
LOGPROBS = {
    ("x", "Color?", "red"): [-0.5, -0.25],
    ("x", "Color?", "blue"): [-1.5],
    ("x", "Color?", "dark green"): [-2.0, -0.1, -0.4],
    ("x", "Animal?", "dog"): [-1000.0],
    ("x", "Animal?", "cat"): [-1001.0],
}


def question(number: str, text: str, *choices: str, entailment: float | None = None) -> Question:
    return Question(
        prompt=P,
        question_id=number,
        question=text,
        choices=choices,
        expected=choices[0],
        entailment=entailment,
    )


class Entailing:
    def __init__(self, *values: float) -> None:
        self.values = values
        self.asked: list[str] = []

    def probabilities(
        self, premises: Sequence[str], hypotheses: Sequence[str]
    ) -> NDArray[np.float64]:
        assert set(premises) == {P}
        self.asked += hypotheses
        return np.array(self.values)


def run(metric: Gecko, model: FakeAnswers, *questions: Question) -> Verdict:
    return QuestionScorer(metric, model, file_of(*questions)).score_texts(["x"], [[P]])[0][0]


def test_each_question_is_the_expected_choices_share_of_all_probabilities() -> None:
    from evaluator.scorers.families.gecko_qa import Gecko, Options

    found = run(
        Gecko(Options(threshold=None)),
        FakeAnswers(logprobs=LOGPROBS),
        question("1", "Color?", "red", "blue", "dark green"),
        question("2", "Animal?", "dog", "cat"),
    )
    s = [math.exp(-0.75), math.exp(-1.5), math.exp(-2.5)]
    animal = 1 / (1 + math.exp(-1))  # of probabilities that are 0 as numbers
    assert found.score == pytest.approx((s[0] / sum(s) + animal) / 2, abs=1e-12)
    assert [answer.raw for answer in found.answers] == ["red", "dog"]


def test_questions_that_the_prompt_does_not_entail_are_not_asked() -> None:
    from evaluator.scorers.families.gecko_qa import Gecko, Options

    model = FakeAnswers(logprobs=LOGPROBS)
    found = run(
        Gecko(Options()),
        model,
        question("1", "Color?", "red", "blue", "dark green", entailment=0.004),
        question("2", "Animal?", "dog", "cat", entailment=0.005),
    )
    assert found.score == pytest.approx(1 / (1 + math.exp(-1)))
    assert [answer.valid for answer in found.answers] == [False, True]
    assert math.isnan(found.answers[0].value)
    assert model.calls == [[["Animal?"]]]


def test_entailment_that_the_file_lacks_is_asked_once_per_prompt() -> None:
    from evaluator.scorers.families.gecko_qa import Gecko, Options

    nli = Entailing(0.9)
    metric = Gecko(Options(), nli)
    asked = (
        question("1", "Color?", "red", "blue", "dark green"),
        question("2", "Animal?", "dog", "cat", entailment=0.0),
    )
    scorer = QuestionScorer(metric, FakeAnswers(logprobs=LOGPROBS), file_of(*asked))
    first, second = scorer.score(["x", "x"], [P, P])
    assert first == second
    assert nli.asked == ["Color? red"]


def test_with_all_questions_filtered_there_is_no_score() -> None:
    from evaluator.scorers.families.gecko_qa import Gecko, Options

    model = FakeAnswers(logprobs=LOGPROBS)
    found = run(Gecko(Options()), model, question("1", "Animal?", "dog", "cat", entailment=0.0))
    assert math.isnan(found.score)
    assert found.problem == "no questions: the filter took out all 1"
    assert model.calls == []


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (question("1", "Color?", "red"), "fewer than two choices"),
        (yes_no(P, "1", "Red?", expected="maybe"), "none of its choices"),
    ],
)
def test_questions_without_a_choice_to_make_are_refused(asked: Question, why: str) -> None:
    from evaluator.scorers.families.gecko_qa import Gecko, Options
    from evaluator.scorers.questions.loading import loaded

    with pytest.raises(SubmitterError, match=why) as caught:
        loaded(Gecko(Options()), FakeAnswers(), file_of(asked))
    assert caught.value.code == "questions_unfit"
