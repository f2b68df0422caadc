from __future__ import annotations

import math

import pytest

from evaluator.scorers.questions.question import NoQuestions, Record
from evaluator.scorers.questions.scorer import QuestionScorer
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers.questions.fakes import FakeAnswers, file_of, yes_no

P = "a prompt of many phrases"


def run(logits: dict[str, float], *records: Record, prompt: str = P) -> tuple[Verdict, FakeAnswers]:
    """Each phrase's logit difference of yes and no, as first-step log-probabilities."""
    from evaluator.scorers.families.bvqa import Options, ProductOfPhrases

    logprobs = {("x", ask, "yes"): [-math.log1p(math.exp(-d))] for ask, d in logits.items()}
    logprobs |= {("x", ask, "no"): [-math.log1p(math.exp(d))] for ask, d in logits.items()}
    model = FakeAnswers(logprobs=logprobs)
    scorer = QuestionScorer(ProductOfPhrases(Options()), model, file_of(*records))
    return scorer.score_texts(["x"], [[prompt]])[0][0], model


def test_the_product_of_rounded_probabilities() -> None:
    verdict, _ = run(
        {"a cat?": 2.0, "a dog?": -0.3}, yes_no(P, "1", "a cat?"), yes_no(P, "2", "a dog?")
    )
    p = [round(1 / (1 + math.exp(-d)), 4) for d in (2.0, -0.3)]
    assert verdict.score == pytest.approx(p[0] * p[1], abs=1e-15)
    assert [answer.raw for answer in verdict.answers] == ["yes", "no"]


def test_only_eight_phrases_count_and_four_are_never_asked() -> None:
    phrases = ["the left", *(f"thing {n}" for n in range(10))]
    questions = [
        yes_no(P, str(n), f"{phrase}?", element=phrase) for n, phrase in enumerate(phrases)
    ]
    verdict, model = run({f"thing {n}?": 1.0 + n for n in range(10)}, *questions)
    expected = math.prod(round(1 / (1 + math.exp(-1.0 - n)), 4) for n in range(8))
    assert verdict.score == pytest.approx(expected, abs=1e-15)
    assert model.calls == [[[f"thing {n}?" for n in range(8)]]]
    assert [answer.valid for answer in verdict.answers] == [False, *[True] * 8, False, False]


def test_a_prompt_without_phrases_scores_1_and_an_unknown_one_has_no_score() -> None:
    empty = NoQuestions(prompt=P, no_questions="no noun phrases")
    assert run({}, empty)[0].score == 1.0
    assert run({}, yes_no(P, "1", "top?", element="top"))[0].score == 1.0
    unknown, _ = run({}, empty, prompt="other")
    assert math.isnan(unknown.score)
    assert unknown.problem.startswith("no questions: ")


def test_questions_are_put_as_blip_was_trained() -> None:
    from evaluator.scorers.families.bvqa import plain

    assert plain('The "Big" (red) car.: #1?') == "the big red car 1?"
