"""Probabilities are read only of tokens that tell an answer from the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.answering import Candidate, answer_tokens
from evaluator.scorers.questions.files import write_records
from evaluator.scorers.registry import Runtime, load_rows, load_scorer
from tests.evaluator.scorers import tiny_models as tiny
from tests.evaluator.scorers.common import hf, later, refusal
from tests.evaluator.scorers.questions.fakes import yes_no

text_models = later("evaluator.scorers.models.text_models")

YES_NO, DIGITS = ("Yes", "No"), tuple("12345")
PROMPT = "a red car"


def llama(*pieces: str) -> Any:
    """SentencePiece's form of BPE: a space is written before a text."""
    given = ("<unk>", "<s>", "</s>", "▁", *"YesNo12345", *pieces)
    return hf.LlamaTokenizer(vocab={piece: i for i, piece in enumerate(given)}, merges=[])


def firsts(*answers: str) -> list[Candidate]:
    return [Candidate(text, first_only=True) for text in answers]


SPACED = "answers_share_first_token"
UNKNOWN = "answer_not_encodable"


@pytest.mark.parametrize(
    ("tokenizer", "answers", "space", "code"),
    [
        pytest.param(tiny.t5_tokenizer, YES_NO, False, "", id="words of a unigram model"),
        pytest.param(lambda: tiny.t5_tokenizer("▁1"), YES_NO, False, SPACED, id="a space, then letters"),
        pytest.param(lambda: tiny.t5_tokenizer("▁1"), ("Yes",), False, SPACED, id="one answer"),
        pytest.param(lambda: tiny.t5_tokenizer("▁Y"), ("Yes", "Yet"), False, SPACED, id="one beginning"),
        pytest.param(lambda: tiny.t5_tokenizer("▁no", without="Y"), YES_NO, False, UNKNOWN, id="unknown"),
        pytest.param(lambda: tiny.t5_tokenizer(*"12345"), DIGITS, False, SPACED, id="bare digits"),
        pytest.param(
            lambda: tiny.t5_tokenizer(*(f"▁{digit}" for digit in DIGITS)), DIGITS, False, "",
            id="digits after a space",
        ),
        pytest.param(llama, YES_NO, False, SPACED, id="BPE writes a space first"),
        pytest.param(tiny.qwen_tokenizer, YES_NO, False, "", id="bytes"),
        pytest.param(tiny.qwen_tokenizer, YES_NO, True, SPACED, id="bytes after a space"),
        pytest.param(tiny.qwen_tokenizer, DIGITS, False, "", id="digits as bytes"),
        pytest.param(tiny.bert_tokenizer, ("red", "Red"), False, SPACED, id="no capitals"),
    ],
)  # fmt: skip
def test_answers_whose_first_tokens_are_read_have_first_tokens_of_their_own(
    tokenizer: Callable[[], Any], answers: tuple[str, ...], space: bool, code: str
) -> None:
    if code:
        with refusal(code, repr(answers[0])):
            answer_tokens(tokenizer(), firsts(*answers), space=space)
    else:
        found = answer_tokens(tokenizer(), firsts(*answers), space=space)
        assert len({ids[0] for ids in found}) == len(answers)


def test_whole_answers_may_begin_alike_and_must_differ_somewhere() -> None:
    tokenizer = tiny.t5_tokenizer("▁1")
    whole = [Candidate("yes"), Candidate("no", with_end=True)]
    yes, no = answer_tokens(tokenizer, whole, end=tokenizer.eos_token_id)
    assert yes[0] == no[0]
    assert no == [*tokenizer.encode("no", add_special_tokens=False), tokenizer.eos_token_id]
    with refusal("answers_share_all_tokens", "'Red'"):
        answer_tokens(tiny.bert_tokenizer(), [Candidate("red"), Candidate("Red")])
    with refusal(UNKNOWN):
        answer_tokens(tokenizer, whole)


def test_a_start_token_is_no_part_of_an_answer() -> None:
    tokenizer = tiny.qwen_tokenizer()
    tokenizer.bos_token = "Yes"
    with refusal(UNKNOWN):
        answer_tokens(tokenizer, firsts("Yes"))


# Every family that reads probabilities, over models whose tokenizers cannot answer

BY_FIRST = (
    "vnli-zeroshot", "crocscore", "crocscore-p", "vqascore-any", "bvqa", "pn-vqa-llava16",
    "vq2-blip2",
)  # fmt: skip
WHOLE = ("vqascore-instructblip", "gecko-llava15")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    made = {
        SPACED: tiny.blip2_t5(tokenizer=tiny.t5_tokenizer("▁1")),
        UNKNOWN: tiny.blip2_t5(tokenizer=tiny.t5_tokenizer("▁1", without="eo")),
    }
    write_records(
        place / "q.jsonl", [yes_no(PROMPT, "1", "a car?", element="a car", entailment=0.9)]
    )
    return {name: tiny.saved(place / name, *one) for name, one in made.items()}


def scored(name: str, folder: Path, **options: Any) -> list[Any]:
    row = load_rows()[name]
    row = row.model_copy(update={"options": {**row.options, **options}})
    questions = folder.parent / "q.jsonl"
    runtime = Runtime(folders={"model": folder}, questions=questions, dtype="float32")
    scorer: Any = load_scorer(row, runtime).scorer
    found: list[Any] = scorer.score_texts([scorer.prepare(tiny.picture(1))], [[PROMPT]])[0]
    return found


@pytest.mark.first_quick
@pytest.mark.parametrize("code", [SPACED, UNKNOWN])
@pytest.mark.parametrize("name", BY_FIRST)
def test_a_metric_of_first_tokens_is_refused(
    folders: dict[str, Path], name: str, code: str
) -> None:
    with refusal(code):
        scored(name, folders[code], reading={})  # at the tiny model's own size


@pytest.mark.parametrize("name", WHOLE)
def test_a_metric_of_whole_answers_reads_what_begins_alike(
    folders: dict[str, Path], name: str
) -> None:
    assert len(scored(name, folders[SPACED])) == 1
    if name == "gecko-llava15":
        with refusal(UNKNOWN):
            scored(name, folders[UNKNOWN])


def test_a_decoder_is_refused_with_the_space_that_it_does_not_join_to_the_answer(
    tmp_path: Path,
) -> None:
    folder = tiny.saved(tmp_path / "qwen", *tiny.qwen2_vl())
    options = {"answer": "1", "against": "2", "reduce": "p_yes_norm"}
    with refusal(SPACED, "answer_space = false"):
        scored("vnli-zeroshot", folder, **options, reading={"answer_space": True})
    assert 0 < scored("vnli-zeroshot", folder, **options)[0] < 1


def test_entailment_needs_a_token_that_begins_with_one() -> None:
    with refusal(SPACED):
        text_models.T5Entailment(None, tiny.t5_tokenizer())
    with refusal(UNKNOWN):
        text_models.T5Entailment(None, tiny.t5_tokenizer(without="1"))
