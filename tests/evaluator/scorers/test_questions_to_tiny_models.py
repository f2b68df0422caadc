"""Question metrics over real VLMs: their rows, loaded, give the written formula by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evaluator.scorers.questions.lines import write_records
from evaluator.scorers.questions.question import Question, Record
from evaluator.scorers.registry import load_rows, load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.questions.fakes import yes_no
from tests.evaluator.scorers.tiny_qwen import qwen2_vl
from tests.evaluator.scorers.tiny_seq2seq import blip_vqa
from tests.evaluator.scorers.tiny_vlm import independent_logprobs, picture, saved

if TYPE_CHECKING:
    from transformers import PreTrainedModel

P, OTHER = "a red car", "two dogs and a cat near the water"
QUESTIONS: list[Record] = [
    yes_no(P, "1", "a car?", element="a car"),
    yes_no(P, "2", "red?", "1", element="red"),
    yes_no(OTHER, "1", "two dogs?", element="two dogs"),
    yes_no(OTHER, "2", "a cat?", expected="no", element="a cat"),
    yes_no(OTHER, "3", "the water?", "1", element="the water"),
]
ROWS = load_rows()


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> tuple[PreTrainedModel, Any, Path]:
    model, processor = qwen2_vl()
    return model, processor, saved(model, processor, tmp_path_factory.mktemp("qwen"))


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> tuple[PreTrainedModel, Any, Path]:
    model, processor = blip_vqa()
    return model, processor, saved(model, processor, tmp_path_factory.mktemp("blip"))


def load(row: ScorerRow, model: Path, folder: Path, questions: Sequence[Record]) -> Any:
    write_records(folder / "q.jsonl", questions)
    runtime = Runtime(
        dtype="float32", folders={"model": model}, questions=folder / "q.jsonl", offline=True
    )
    return load_scorer(row, runtime)


def test_pn_vqa_with_a_chat_model(qwen: tuple[PreTrainedModel, Any, Path], tmp_path: Path) -> None:
    model, processor, place = qwen
    scorer = load(ROWS["pn-vqa-qwen2vl"], place, tmp_path, QUESTIONS).scorer
    image = picture(3)

    def share(question: str, answer: str) -> float:
        ask = f"This image is generated from {OTHER}. Is the answer to {question} in this image {answer}?"
        ids = [processor.tokenizer.encode(word) for word in ("Yes", "No")]
        yes, no = (float(independent_logprobs(model, processor, image, ask, i)[0]) for i in ids)
        return math.exp(yes) / (math.exp(yes) + math.exp(no))

    expected = [
        (share(question, a) + 1 - share(question, b)) / 2
        for question, a, b in (
            ("two dogs?", "yes", "no"),
            ("a cat?", "no", "yes"),
            ("the water?", "yes", "no"),
        )
    ]
    found = scorer.score_texts([scorer.prepare(image)], [[P, OTHER]])[0][1]
    assert [answer.value for answer in found.answers] == pytest.approx(expected, abs=2e-6)
    assert found.score == pytest.approx(sum(expected) / 3, abs=2e-6)


def test_gecko_with_a_chat_model(qwen: tuple[PreTrainedModel, Any, Path], tmp_path: Path) -> None:
    import torch

    model, processor, place = qwen
    choices = ("red", "dark blue", "green")
    asked = Question(
        prompt=P,
        question_id="1",
        question="What color?",
        choices=choices,
        expected="dark blue",
        entailment=0.9,
    )
    row = ROWS["gecko-qwen25vl"]
    loaded = load(row, place, tmp_path, [asked])
    image = picture(4)
    ask = row.options["template"].replace("{question}", "What color?")
    totals = [
        float(
            independent_logprobs(
                model, processor, image, ask, processor.tokenizer.encode(choice)
            ).sum()
        )
        for choice in choices
    ]
    found = loaded.scorer.score([loaded.scorer.prepare(image)], [P])
    assert found[0] == pytest.approx(float(torch.tensor(totals).softmax(0)[1]), abs=2e-6)
    assert loaded.environment["hypothesis"] == "{question} {answer}"


def test_bvqa_with_blip(blip: tuple[PreTrainedModel, Any, Path], tmp_path: Path) -> None:
    import torch

    row = ROWS["bvqa"].model_copy(update={"options": {}})  # at the tiny model's own size
    scorer = load(row, blip[2], tmp_path, QUESTIONS).scorer
    model: Any = blip[0]
    tokenizer = blip[1].tokenizer
    vocab = tokenizer.get_vocab()
    pixels = scorer.prepare(picture(5))
    values = []
    for question in ("two dogs?", "a cat?", "the water?"):
        ids = tokenizer(question, return_tensors="pt").input_ids
        ids[0, 0] = vocab["[ENC]"]
        with torch.no_grad():
            seen = model.vision_model(pixels).last_hidden_state
            read = model.text_encoder(ids, encoder_hidden_states=seen).last_hidden_state
            start = torch.tensor([[vocab["[DEC]"]]])
            logits = model.text_decoder(start, encoder_hidden_states=read).logits[0, 0]
        ahead = logits[vocab["yes"]] - logits[vocab["no"]]
        values.append(round(float(torch.sigmoid(ahead)), 4))
    found = scorer.score_texts([pixels], [[OTHER]])[0][0]
    assert [answer.value for answer in found.answers] == pytest.approx(values, abs=1.01e-4)
    assert found.score == pytest.approx(math.prod(values), abs=3e-4)


def test_dsg_with_blip_gives_the_same_alone_and_together(
    blip: tuple[PreTrainedModel, Any, Path], tmp_path: Path
) -> None:
    scorer = load(ROWS["dsg-blip"], blip[2], tmp_path, QUESTIONS).scorer
    images = [scorer.prepare(picture(seed)) for seed in (6, 7)]
    together = scorer.score_texts(images, [[P, OTHER], [OTHER]])
    alone = [
        scorer.score_texts([images[0]], [[P]])[0][0],
        scorer.score_texts([images[0]], [[OTHER]])[0][0],
        scorer.score_texts([images[1]], [[OTHER]])[0][0],
    ]
    assert [*together[0], *together[1]] == alone


def test_the_record_names_questions_and_checkpoint(
    blip: tuple[PreTrainedModel, Any, Path], tmp_path: Path
) -> None:
    loaded = load(ROWS["dsg-blip"], blip[2], tmp_path, QUESTIONS)
    assert loaded.environment["questions"].startswith("q.jsonl sha256:")
    assert loaded.environment["checkpoint"] == str(blip[2])
    assert json.dumps(loaded.environment)
