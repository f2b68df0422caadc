from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.lines import write_records
from evaluator.scorers.questions.question import Question
from evaluator.scorers.questions.scorer import QuestionScorer
from tests.evaluator.scorers.questions.fakes import FakeAnswers, file_of, yes_no

P = "a nun {0}"
ASK = "This image is generated from a nun {{0}}. Is the answer to {} in this image {}?"


def test_the_mean_of_the_expected_and_of_what_is_not_the_opposite() -> None:
    from evaluator.scorers.families.pn_vqa import Options, PositiveNegative

    numbers = {("nun?", "yes"): (-0.3, -1.7), ("nun?", "no"): (-2.0, -0.2)}
    numbers |= {("wall?", "no"): (-0.1, -3.0), ("wall?", "yes"): (-1.0, -1.0)}
    logprobs = {}
    for (question, answer), (yes, no) in numbers.items():
        logprobs["x", ASK.format(question, answer), "Yes"] = [yes, -9.0]
        logprobs["x", ASK.format(question, answer), "No"] = [no]
    model = FakeAnswers(logprobs=logprobs)
    questions = file_of(yes_no(P, "1", "nun?"), yes_no(P, "2", "wall?", expected="No"))
    found = QuestionScorer(PositiveNegative(Options()), model, questions).score_texts(["x"], [[P]])
    p = {k: math.exp(y) / (math.exp(y) + math.exp(n)) for k, (y, n) in numbers.items()}
    first = (p["nun?", "yes"] + 1 - p["nun?", "no"]) / 2
    second = (p["wall?", "no"] + 1 - p["wall?", "yes"]) / 2
    assert found[0][0].score == pytest.approx((first + second) / 2, abs=1e-12)
    assert [a.value for a in found[0][0].answers] == pytest.approx([first, second])
    assert len(model.calls) == 1
    assert len(model.calls[0][0]) == 4


def test_an_answer_without_an_opposite_is_refused_before_scoring(tmp_path: Path) -> None:
    from evaluator.scorers.families.pn_vqa import FAMILY, Options, PositiveNegative
    from evaluator.scorers.questions.loading import loaded

    question = Question(prompt=P, question_id="3", question="who?", expected="a nun")
    write_records(tmp_path / "q.jsonl", [question])
    with pytest.raises(SubmitterError, match="neither yes nor no") as caught:
        loaded(PositiveNegative(Options()), FakeAnswers(), file_of(question))
    assert caught.value.code == "questions_unfit"
    assert FAMILY.options is Options
