"""Metrics that ask questions: what is asked, how answers are read, gated and accumulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import Candidate
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.questions.files import (
    AskedQuestions,
    NoQuestions,
    Question,
    Record,
)
from evaluator.scorers.questions.metric import (
    Gate,
    Parse,
    Query,
    QuestionMetric,
    QuestionScorer,
    Reply,
    expects_yes_or_no,
    gated_mean,
    yes_no_correct,
)
from evaluator.scorers.registry import Runtime, load_rows, load_scorer
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers import tiny_models as tiny
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.questions.fakes import (
    FakeAnswers,
    FakeEntailment,
    FakeSimilarity,
    file_of,
    yes_no,
)
from tests.evaluator.scorers.tiny_models import row

answering = later("evaluator.scorers.families.question_answering")
bvqa = later("evaluator.scorers.families.bvqa")
loading = later("evaluator.scorers.questions.loading")
gecko = later("evaluator.scorers.families.gecko_qa")
pn_vqa = later("evaluator.scorers.families.pn_vqa")
vq2 = later("evaluator.scorers.families.vq2")
entailing = later("evaluator.scorers.models.text_models")
similar = later("evaluator.scorers.models.text_models")

P, CAT, DOG = "a white cat with a red collar", "a cat", "a dog"
NONE = "no noun phrases"
CHAIN = (
    yes_no(P, "1", "A cat?"),
    yes_no(P, "2", "A collar?", "1"),
    yes_no(P, "3", "Is the collar red?", "2"),
)
FILE = file_of(
    yes_no(CAT, "1", "Cat?", element="cat"),
    yes_no(CAT, "2", "Alive?", element="cat"),
    yes_no(DOG, "1", "Dog?", element="dog"),
    yes_no(DOG, "2", "Alive?"),
)
WORDS = {
    ("x", "Cat?"): "yes", ("x", "Alive?"): "no", ("x", "Dog?"): "no",
    ("y", "Cat?"): "no", ("y", "Alive?"): "yes", ("y", "Dog?"): "yes",
}  # fmt: skip


def one(metric: Any, model: FakeAnswers, *records: Record, prompt: str = P) -> Verdict:
    """The verdict on image x."""
    return QuestionScorer(metric, model, file_of(*records)).score_texts(["x"], [[prompt]])[0][0]


# Readings of an answer


@pytest.mark.parametrize(
    ("answer", "expected", "word", "substring", "exact"),
    [
        ("yes", "yes", True, True, True), ("Yes, sure", "yes", True, True, False),
        ("No, eyes", "yes", False, True, False), ("no", "no", True, False, False),
        ("yes", "no", False, True, True), ("No.", "no", True, False, False),
        ("I know", "no", False, False, False), ("", "yes", False, False, False),
        ("unanswerable", "no", False, False, False),
    ],
)  # fmt: skip
def test_the_three_readings_of_a_yes_or_no(
    answer: str, expected: str, word: bool, substring: bool, exact: bool
) -> None:
    readings: dict[Parse, bool] = {"word": word, "substring": substring, "exact": exact}
    for parse, correct in readings.items():
        assert yes_no_correct([answer], [expected], parse).tolist() == [correct], parse


@pytest.mark.parametrize(
    ("choices", "expected", "is_yes_no"),
    [
        (("yes", "no"), "no", True), (("No", "Yes"), "Yes", True), ((), "yes", True),
        ((), "red", False), (("yes", "no", "maybe"), "yes", False),
        (("man", "woman"), "man", False),
    ],
)  # fmt: skip
def test_which_questions_are_answered_by_yes_or_no(
    choices: tuple[str, ...], expected: str, is_yes_no: bool
) -> None:
    assert expects_yes_or_no(yes_no(P, "1", "q", choices=choices, expected=expected)) is is_yes_no


# Gates and means


@pytest.mark.parametrize(
    ("gate", "score", "valid"),
    [
        ("none", 2 / 3, [True, True, True]),
        # The collar's raw answer is right, so the third counts, though the second does not.
        ("onehop", 1 / 3, [True, False, True]),
        ("recursive", 0.0, [True, False, False]),
    ],
)
def test_the_gates_differ_where_a_grandparent_is_wrong_in_any_order(
    gate: Gate, score: float, valid: list[bool]
) -> None:
    correct = np.array([[False, True, True], [True, False, True], [True, True, True]])
    ordered = gated_mean(AskedQuestions.of(P, CHAIN), correct, gate)
    assert ordered.scores[0] == pytest.approx(score)
    assert ordered.valid[0].tolist() == valid
    backwards = AskedQuestions.of(P, CHAIN[::-1])
    assert backwards.order == (2, 1, 0)
    turned = gated_mean(backwards, correct[:, ::-1], gate)
    assert ordered.scores.tolist() == turned.scores.tolist()
    assert ordered.valid.tolist() == turned.valid[:, ::-1].tolist()


def test_questions_below_a_rejected_one_depend_on_its_parents() -> None:
    rejected = [each.model_copy(update={"review": "rejected"}) for each in CHAIN[:2]]
    kept = AskedQuestions.of(P, (CHAIN[0], rejected[1], CHAIN[2]))
    assert [q.question_id for q in kept.questions] == ["1", "3"]
    assert kept.parents == ((), (0,))
    none = AskedQuestions.of(P, (rejected[0],))
    assert (none.questions, "rejected" in none.reason) == ((), True)


# What is asked, and what is done with replies


def scorer(model: FakeAnswers) -> QuestionScorer:
    return QuestionScorer(answering.QuestionAnswering(answering.Options()), model, FILE)


def test_all_questions_of_an_image_go_to_the_model_in_one_call_each_once() -> None:
    model = FakeAnswers(WORDS)
    verdicts = scorer(model).score_texts(["x", "y"], [[CAT, DOG], [DOG]])
    assert [[verdict.score for verdict in row] for row in verdicts] == [[0.5, 0.0], [1.0]]
    assert model.calls == [[["Cat?", "Alive?", "Dog?"], ["Dog?", "Alive?"]]]
    assert [
        (a.question_id, a.expected, a.raw, a.value, a.valid) for a in verdicts[0][0].answers
    ] == [("1", "yes", "yes", 1.0, True), ("2", "yes", "no", 0.0, True)]


def test_a_prompt_without_questions_has_no_score_and_takes_nothing_from_others() -> None:
    model = FakeAnswers()
    metric = answering.QuestionAnswering(answering.Options())
    of_image = QuestionScorer(metric, model, file_of(NoQuestions(prompt="xyz", no_questions=NONE)))
    known, unknown = of_image.score_texts(["x"], [["xyz", "abc"]])[0]
    assert math.isnan(known.score) and math.isnan(unknown.score)
    assert known.problem == f"no questions: {NONE}"
    assert unknown.problem.startswith("no questions: ") and unknown.problem != known.problem
    assert model.calls == []
    rows = scorer(FakeAnswers(WORDS)).score_texts(["y", "x"], [["abc"], [CAT, "abc"]])
    assert math.isnan(rows[0][0].score)
    assert rows[1][0].score == 0.5


def test_an_element_scores_the_mean_of_the_questions_about_it() -> None:
    found = scorer(FakeAnswers(WORDS)).score_elements(
        ["x", "y", "x"], [CAT, DOG, "abc"], [["cat", "tail"], ["dog"], ["cat"]]
    )
    np.testing.assert_equal(found, [[0.5, math.nan], [1.0], [math.nan]])


def test_a_prompt_is_truncated_where_any_of_its_questions_is() -> None:
    assert scorer(FakeAnswers(WORDS, longest=5)).truncated([CAT, "abc"]) == [True, False]
    assert scorer(FakeAnswers(WORDS, longest=6)).truncated([DOG, CAT]) == [False, False]


class Mixed(QuestionMetric):
    def queries(self, asked: AskedQuestions) -> list[Query]:
        return [Query("a"), Query("b", (Candidate("yes"),))]

    def verdicts(self, asked: AskedQuestions, replies: Sequence[Sequence[Reply]]) -> list[Verdict]:
        return []


def test_a_metric_asks_one_way_only() -> None:
    with pytest.raises(PlatformError, match="probabilities"):
        QuestionScorer(Mixed(), FakeAnswers(), FILE).score(["x"], [CAT])


# TIFA and DSG

COLOR = yes_no(P, "1", "which color?", choices=("red", "blue", "green"), expected="red")


def answered(words: dict[str, str], *asked: Question, similar: Any = None, **options: Any) -> Any:
    metric = answering.QuestionAnswering(answering.Options(**options), similar)
    return one(metric, FakeAnswers({("x", text): word for text, word in words.items()}), *asked)


@pytest.mark.parametrize(
    ("answer", "right"),
    [(" red.", 1.0), ("RED", 1.0), ("crimson", 1.0), ("navy", 0.0), ("re", 0.0), ("none", 1.0)],
)
def test_tifa_takes_the_literal_choice_else_the_nearest_the_first_of_equals(
    answer: str, right: float
) -> None:
    similar = FakeSimilarity({"crimson": "red", "navy": "blue", "re": "green", "none": "?"})
    words = {COLOR.question: answer}
    assert answered(words, COLOR, similar=similar, parse="choice").score == right
    put = f"{COLOR.question} (red, blue, green)"
    more = {"template": "{question} ({choices})", "similar": similar, "parse": "choice"}
    assert answered({put: answer}, COLOR, **more).answers[0].question == put


def test_a_question_without_choices_wants_the_expected_words() -> None:
    asked = yes_no(P, "1", "what?", choices=(), expected="A car")
    assert [answered({"what?": one}, asked).score for one in ("acar.", "a cart")] == [1.0, 0.0]


def test_tifa_is_the_mean_over_questions_with_expected_no() -> None:
    asked = (COLOR, yes_no(P, "2", "wheels?", expected="no"), yes_no(P, "3", "a car?"))
    words = {COLOR.question: "red", "wheels?": "not one", "a car?": "no"}
    nearest = FakeSimilarity({"not one": "no"})
    found = answered(words, *asked, similar=nearest, parse="choice")
    assert found.score == pytest.approx(2 / 3)
    assert [answer.value for answer in found.answers] == [1.0, 1.0, 0.0]


def test_as_in_ts2_yes_is_right_whatever_is_expected() -> None:
    asked = yes_no(P, "1", "wheels?", expected="no")
    other = yes_no(P, "2", "who?", choices=("man", "woman"), expected="man")
    found = answered({"wheels?": "yes", "who?": "a man"}, asked, other, parse="substring")
    assert [answer.value for answer in found.answers] == [1.0, 0.0]


def test_dsg_keeps_a_question_behind_a_closed_gate_in_the_mean() -> None:
    words = dict(zip((q.question for q in CHAIN), ("no", "yes", "yes"), strict=True))
    official = answered(words, *CHAIN, gate="onehop")
    assert official.score == pytest.approx(1 / 3)
    assert [(a.value, a.valid, a.raw) for a in official.answers] == [
        (0.0, True, "no"), (0.0, False, "yes"), (1.0, True, "yes"),
    ]  # fmt: skip
    assert answered(words, *CHAIN, gate="recursive", parse="substring").score == 0.0


@pytest.mark.parametrize(
    ("row", "writer"), [("tifa-blip", "tifa"), ("dsg-blip", "dsg"), ("bvqa", "bvqa")]
)
def test_without_a_question_file_the_row_says_who_writes_one(row: str, writer: str) -> None:
    with refusal("questions_missing", f"--writer {writer}"):
        load_scorer(load_rows()[row], Runtime())


# BVQA, VQ2, PN-VQA


def phrases(logits: dict[str, float], *records: Record, prompt: str = P) -> Any:
    """Each phrase's logit difference of yes and no, as first-step log-probabilities."""
    logprobs = {("x", ask, "yes"): [-math.log1p(math.exp(-d))] for ask, d in logits.items()}
    logprobs |= {("x", ask, "no"): [-math.log1p(math.exp(d))] for ask, d in logits.items()}
    model = FakeAnswers(logprobs=logprobs)
    return one(bvqa.ProductOfPhrases(bvqa.Options()), model, *records, prompt=prompt), model


def test_bvqa_is_the_product_of_rounded_probabilities() -> None:
    asked = yes_no(P, "1", "a cat?"), yes_no(P, "2", "a dog?")
    verdict, _ = phrases({"a cat?": 2.0, "a dog?": -0.3}, *asked)
    p = [round(1 / (1 + math.exp(-d)), 4) for d in (2.0, -0.3)]
    assert verdict.score == pytest.approx(p[0] * p[1], abs=1e-15)
    assert [answer.raw for answer in verdict.answers] == ["yes", "no"]


def test_bvqa_counts_eight_phrases_and_never_asks_four() -> None:
    texts = ["the left", *(f"thing {n}" for n in range(10))]
    questions = [yes_no(P, str(n), f"{text}?", element=text) for n, text in enumerate(texts)]
    verdict, model = phrases({f"thing {n}?": 1.0 + n for n in range(10)}, *questions)
    expected = math.prod(round(1 / (1 + math.exp(-1.0 - n)), 4) for n in range(8))
    assert verdict.score == pytest.approx(expected, abs=1e-15)
    assert model.calls == [[[f"thing {n}?" for n in range(8)]]]
    assert [answer.valid for answer in verdict.answers] == [False, *[True] * 8, False, False]


def test_bvqa_of_a_prompt_without_phrases_is_1_and_of_an_unknown_one_missing() -> None:
    empty = NoQuestions(prompt=P, no_questions=NONE)
    assert phrases({}, empty)[0].score == 1.0
    assert phrases({}, yes_no(P, "1", "top?", element="top"))[0].score == 1.0
    unknown, _ = phrases({}, empty, prompt="other")
    assert math.isnan(unknown.score)
    assert unknown.problem.startswith("no questions: ")


def test_bvqa_puts_questions_as_blip_was_trained() -> None:
    question, put = 'The "Big" (red) car.: #1?', "the big red car 1?"
    assert bvqa.plain(question) == put


def test_no_number_from_the_model_is_no_score_and_names_the_question() -> None:
    put = 'is "yes" true for "{}" in this image?'
    logprobs = {("x", put.format("Cat?"), word): [math.nan] for word in ("yes", "no")}
    logprobs |= {("x", put.format("Alive?"), word): [-1.0] for word in ("yes", "no")}
    asked = yes_no(P, "1", "Cat?"), yes_no(P, "2", "Alive?")
    verdict = one(vq2.AnswersHold(vq2.Options()), FakeAnswers(logprobs=logprobs), *asked)
    assert math.isnan(verdict.score) and "question 1" in verdict.problem
    assert len(verdict.answers) == 2


@pytest.mark.parametrize("value", ["p_first", "p_yes_norm"])
def test_vq2_is_the_mean_of_p_yes_over_questions_and_answers(value: str) -> None:
    told = {("Who?", "a dog"): (-0.2, -2.0), ("Where?", "the sofa"): (-3.0, -0.4)}
    logprobs: dict[tuple[Any, str, str], list[float]] = {}
    for (question, answer), (yes, no) in told.items():
        put = f'is "{answer}" true for "{question}" in this image?'
        logprobs |= {("x", put, "yes"): [yes, -5.0], ("x", put, "no"): [no]}
    asked = [yes_no(P, q, q, choices=(), expected=answer) for q, answer in told]
    metric = vq2.AnswersHold(vq2.Options.model_validate({"value": value}))
    verdict = one(metric, FakeAnswers(logprobs=logprobs), *asked)
    of_each = [
        math.exp(yes) if value == "p_first" else 1 / (1 + math.exp(no - yes))
        for yes, no in told.values()
    ]
    assert verdict.score == pytest.approx(sum(of_each) / 2, abs=1e-12)
    assert [answer.raw for answer in verdict.answers] == ["yes", "no"]


def test_pn_vqa_is_the_mean_of_the_expected_and_of_what_is_not_the_opposite() -> None:
    prompt = "a nun {0}"
    numbers = {("nun?", "yes"): (-0.3, -1.7), ("nun?", "no"): (-2.0, -0.2)}
    numbers |= {("wall?", "no"): (-0.1, -3.0), ("wall?", "yes"): (-1.0, -1.0)}
    logprobs: dict[tuple[Any, str, str], list[float]] = {}
    for (question, answer), (yes, no) in numbers.items():
        put = f"This image is generated from {prompt}. Is the answer to {question} in this image"
        logprobs |= {("x", f"{put} {answer}?", "Yes"): [yes, -9.0]}
        logprobs |= {("x", f"{put} {answer}?", "No"): [no]}
    model = FakeAnswers(logprobs=logprobs)
    asked = yes_no(prompt, "1", "nun?"), yes_no(prompt, "2", "wall?", expected="No")
    found = one(pn_vqa.PositiveNegative(pn_vqa.Options()), model, *asked, prompt=prompt)
    p = {k: math.exp(y) / (math.exp(y) + math.exp(n)) for k, (y, n) in numbers.items()}
    first = (p["nun?", "yes"] + 1 - p["nun?", "no"]) / 2
    second = (p["wall?", "no"] + 1 - p["wall?", "yes"]) / 2
    assert found.score == pytest.approx((first + second) / 2, abs=1e-12)
    assert [a.value for a in found.answers] == pytest.approx([first, second])
    assert [len(call[0]) for call in model.calls] == [4]


# Gecko

CHOICES = {
    ("x", "Color?", "red"): [-0.5, -0.25],
    ("x", "Color?", "blue"): [-1.5],
    ("x", "Color?", "green"): [-2.0, -0.1, -0.4],
    ("x", "Animal?", "dog"): [-1000.0],
    ("x", "Animal?", "cat"): [-1001.0],
}
ANIMAL = 1 / (1 + math.exp(-1))  # Of probabilities that are 0 as numbers


def choose(*entailments: float | None) -> list[Question]:
    """The question about a colour and the one about an animal, each with its entailment."""
    asked = {"Color?": ("red", "blue", "green"), "Animal?": ("dog", "cat")}
    return [
        yes_no(P, name, name, choices=choices, expected=choices[0], entailment=entailment)
        for (name, choices), entailment in zip(asked.items(), entailments, strict=True)
    ]


def test_gecko_is_the_expected_choices_share_of_all_probabilities() -> None:
    metric = gecko.Gecko(gecko.Options(threshold=None))
    found = one(metric, FakeAnswers(logprobs=CHOICES), *choose(None, None))
    s = [math.exp(-0.75), math.exp(-1.5), math.exp(-2.5)]
    assert found.score == pytest.approx((s[0] / sum(s) + ANIMAL) / 2, abs=1e-12)
    assert [answer.raw for answer in found.answers] == ["red", "dog"]


def test_gecko_does_not_ask_what_the_prompt_does_not_entail() -> None:
    model = FakeAnswers(logprobs=CHOICES)
    found = one(gecko.Gecko(gecko.Options()), model, *choose(0.004, 0.005))
    assert found.score == pytest.approx(ANIMAL)
    assert [answer.valid for answer in found.answers] == [False, True]
    assert math.isnan(found.answers[0].value)
    nothing = one(gecko.Gecko(gecko.Options()), model, *choose(0.0, 0.0))
    assert math.isnan(nothing.score)
    assert nothing.problem.startswith("no questions: ") and "2" in nothing.problem
    assert model.calls == [[["Animal?"]]]


def test_entailment_that_the_file_lacks_is_asked_once_per_prompt() -> None:
    nli = FakeEntailment(0.9)
    metric = gecko.Gecko(gecko.Options(), nli)
    of_pairs = QuestionScorer(metric, FakeAnswers(logprobs=CHOICES), file_of(*choose(None, 0.0)))
    first, second = of_pairs.score(["x", "x"], [P, P])
    assert first == second
    assert nli.asked == [(P, "Color? red")]


@pytest.mark.parametrize(
    ("family", "asked", "why"),
    [
        ("gecko", yes_no(P, "1", "Color?", choices=("red",), expected="red"), "two choices"),
        ("gecko", yes_no(P, "1", "Red?", expected="maybe"), "none of"),
        ("pn", yes_no(P, "3", "who?", choices=(), expected="a nun"), "neither yes"),
    ],
)
def test_questions_that_a_metric_cannot_ask_are_refused_before_scoring(
    family: str, asked: Question, why: str
) -> None:
    kinds: dict[str, Any] = {
        "gecko": lambda: gecko.Gecko(gecko.Options()),
        "pn": lambda: pn_vqa.PositiveNegative(pn_vqa.Options()),
    }
    with refusal("questions_unfit", why):
        loading.loaded(kinds[family](), FakeAnswers(), file_of(asked))


# Entailment: T5's first step, at the token of `1`

PREMISES = ["a red car", "a dog sleeps on a very old sofa"]
HYPOTHESES = ["what color? red", "who? a cat"]


def test_entailment_is_the_first_step_of_the_librarys_model(tmp_path: Path) -> None:
    tokenizer = tiny.t5_tokenizer("▁1", "▁0")
    torch.manual_seed(0)
    model = hf.T5ForConditionalGeneration(tiny.t5_config(tokenizer)).eval()
    place = Source(tiny.saved(tmp_path, model, tokenizer), "tiny", "")
    entailment = entailing.load_entailment(place, row(), Runtime())
    found = entailment.probabilities(PREMISES, HYPOTHESES)
    for value, premise, hypothesis in zip(found, PREMISES, HYPOTHESES, strict=True):
        text = f"premise: {premise} hypothesis: {hypothesis}"
        labels = torch.tensor([tokenizer.convert_tokens_to_ids(["▁1"])])
        with torch.no_grad():
            loss = model(**tokenizer(text, return_tensors="pt"), labels=labels).loss
        assert value == pytest.approx(float(torch.exp(-loss)), abs=1e-6)
        (alone,) = entailment.probabilities([premise], [hypothesis])
        assert value == pytest.approx(alone, abs=1e-6)


# Similarity: cosines of mean-pooled states


def test_cosines_are_those_of_mean_pooled_states(tmp_path: Path) -> None:
    choices = ["a pine tree", "oak", "palm"]
    tokenizer = tiny.bert_tokenizer()
    torch.manual_seed(0)
    config = hf.MPNetConfig(
        **tiny.SMALL, vocab_size=len(tokenizer), initializer_range=0.5, pad_token_id=0
    )
    model = hf.MPNetModel(config).eval()
    place = Source(tiny.saved(tmp_path, model, tokenizer), "tiny", "")
    similarity = similar.load_similarity(place, row(), Runtime(dtype="bfloat16"))

    def pooled(text: str) -> Any:
        with torch.no_grad():
            return model(**tokenizer(text, return_tensors="pt")).last_hidden_state.mean(dim=1)

    found = similarity.cosines("tree", choices).tolist()
    own = pooled("tree")
    expected = [float(torch.cosine_similarity(own, pooled(choice))) for choice in choices]
    assert found == pytest.approx(expected, abs=1e-5)
    assert found == [float(similarity.cosines("tree", [choice])[0]) for choice in choices]
    assert similarity.cosines("oak", choices)[1] == pytest.approx(1)


def test_a_sentence_encoder_of_another_kind_is_refused(tmp_path: Path) -> None:
    place = Source(tiny.saved(tmp_path, hf.CLIPTextConfig()), "tiny", "")
    with refusal("checkpoint_wrong_class", "mpnet"):
        similar.load_similarity(place, row(), Runtime())
