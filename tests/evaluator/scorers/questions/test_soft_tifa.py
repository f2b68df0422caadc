"""Soft-TIFA: probabilities of the expected answers, each first token once; both means."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.scorers.questions.files import Question, write_records
from evaluator.scorers.questions.metric import QuestionScorer
from evaluator.scorers.registry import Runtime, load_rows, load_scorer
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers import tiny_models as tiny
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.scorers.questions.fakes import FakeAnswers, file_of, yes_no

family = later("evaluator.scorers.families.soft_tifa")
loading = later("evaluator.scorers.questions.loading")

P = "two red cats"
RED = yes_no(P, "1", "Are the cats red?", choices=(), expected="Yes", element="red")
COUNT = yes_no(P, "2", "How many cats are there?", choices=(), expected="two", element="two")
ROWS = {name: row for name, row in load_rows().items() if row.family == "soft_tifa"}


def test_ways_to_write_an_answer_are_those_of_geneval2() -> None:
    assert set(family.ways_to_write(RED)) == {"Yes", "yes", " Yes", " yes"}
    assert set(family.ways_to_write(COUNT)) == {"two", "Two", " two", " Two", "2", " 2"}


def scored(mean: str, tokens: dict[str, int], logprobs: dict[str, list[float]]) -> Verdict:
    """The verdict on one image, of a model whose tokens and log-probabilities are known."""
    asked = {q.question: f"{q.question} Answer in one word." for q in (RED, COUNT)}
    known = {
        ("x", put, way): logprobs[way]
        for q, put in zip((RED, COUNT), asked.values(), strict=True)
        for way in family.ways_to_write(q)
        if way in logprobs
    }
    metric = family.SoftTifa(family.Options(mean=mean), tokens.__getitem__)
    scorer = QuestionScorer(metric, FakeAnswers(logprobs=known), file_of(RED, COUNT))
    return scorer.score_texts(["x"], [[P]])[0][0]


TOKENS = {"yes": 1, "Yes": 2, " yes": 3, " Yes": 3, "two": 4, "Two": 5, " two": 4, " Two": 6}
TOKENS |= {"2": 7, " 2": 8}
LOGS = {way: [math.log(p), -9.0] for way, p in {"yes": 0.1, "Yes": 0.2, " yes": 0.05}.items()}
LOGS |= {way: [math.log(0.01 * n)] for n, way in enumerate(("two", "Two", " Two", "2", " 2"), 1)}


def test_each_first_token_counts_once_and_the_means_differ() -> None:
    values = [0.1 + 0.2 + 0.05, 0.01 + 0.02 + 0.03 + 0.04 + 0.05]
    arithmetic, geometric = (scored(m, TOKENS, LOGS) for m in ("arithmetic", "geometric"))
    assert [one.value for one in arithmetic.answers] == pytest.approx(values)
    assert arithmetic.score == pytest.approx(sum(values) / 2)
    assert geometric.score == pytest.approx(math.sqrt(values[0] * values[1]))


def test_an_impossible_answer_makes_the_geometric_mean_0_and_halves_the_arithmetic() -> None:
    none = LOGS | {way: [-math.inf] for way in LOGS if way.strip().lower() in {"two", "2"}}
    assert scored("geometric", TOKENS, none).score == 0
    assert scored("arithmetic", TOKENS, none).score == pytest.approx(0.35 / 2)
    values = np.array([0.5, 0.125, 1.0])
    assert family.geometric_mean(values) == pytest.approx(float(np.prod(values)) ** (1 / 3))


def next_probabilities(image: Any, question: Question) -> Any:
    """Of all tokens after a question, by a plain call of the library's model."""
    model, processor = tiny.qwen3_vl()
    prompt = f"{question.question} Answer in one word."
    with torch.no_grad():
        logits = model(**tiny.chat_inputs(processor, image, prompt)).logits[0, -1]
    return torch.softmax(logits.double(), dim=-1)


@pytest.mark.parametrize("name", ["softtifa-am", "softtifa-gm"])
def test_a_row_is_the_mean_of_the_librarys_probabilities(tmp_path: Path, name: str) -> None:
    image, questions = tiny.picture(1, 90, 60), tmp_path / "q.jsonl"
    write_records(questions, [RED, COUNT])
    folders = {"model": tiny.saved(tmp_path / "model", *tiny.qwen3_vl())}
    runtime = Runtime(dtype="float32", folders=folders, questions=questions)
    scorer: Any = load_scorer(ROWS[name], runtime).scorer
    ((found,),) = scorer.score_texts([scorer.prepare(image)], [[P]])
    encode, values = tiny.qwen_tokenizer().encode, []
    for question in (RED, COUNT):
        firsts = {encode(way)[0] for way in family.ways_to_write(question)}
        values.append(float(next_probabilities(image, question)[sorted(firsts)].sum()))
    # Bytes begin each word with a space by the same token, so six ways have four or fewer tokens.
    assert len({encode(way)[0] for way in family.ways_to_write(COUNT)}) < 6
    assert [answer.value for answer in found.answers] == pytest.approx(values, abs=1e-6)
    mean = sum(values) / 2 if name.endswith("am") else math.sqrt(values[0] * values[1])
    assert found.score == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(
    ("question", "expected", "why"),
    [("Red?", "no", "not yes"), ("How many?", "many", "number"), ("How many?", "2", "number")],
)
def test_questions_that_expect_anything_else_are_refused(
    question: str, expected: str, why: str
) -> None:
    asked = yes_no(P, "1", question, choices=(), expected=expected)
    metric = family.SoftTifa(family.Options(mean="arithmetic"), len)
    with refusal("questions_unfit", why):
        loading.loaded(metric, FakeAnswers(), file_of(asked))


def test_a_model_that_is_no_decoder_is_refused(tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    write_records(questions, [RED])
    folders = {"model": tiny.saved(tmp_path / "model", *tiny.blip_vqa())}
    with refusal("checkpoint_wrong_class", "softtifa-am"):
        load_scorer(
            ROWS["softtifa-am"], Runtime(dtype="float32", folders=folders, questions=questions)
        )
