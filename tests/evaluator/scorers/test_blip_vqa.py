"""BLIP-VQA equals its three parts called by hand, with [ENC] first and no padding seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.vlm_reading import Reading
from evaluator.scorers.reduce import p_yes_norm
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_seq2seq import blip_vqa
from tests.evaluator.scorers.tiny_vlm import picture, row_of, saved

if TYPE_CHECKING:
    import torch

QUESTIONS = ["a dog?", "two red cats?", "x?"]
YES_NO = [Candidate("yes"), Candidate("no")]
Made = tuple[Any, Any, Any, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    model, processor = blip_vqa()
    folder = saved(model, processor, tmp_path_factory.mktemp("blip_vqa"))
    runtime = Runtime(folders={"model": folder})
    larger = load_answer_model(row_of(), runtime, reading=Reading(side=48))
    return model, processor, load_answer_model(row_of(), runtime), larger


def by_hand(model: Any, processor: Any, pixels: torch.Tensor, question: str) -> torch.Tensor:
    """Logits of the answer's first token."""
    import torch

    vocab = processor.tokenizer.get_vocab()
    ids = processor.tokenizer(question, return_tensors="pt").input_ids
    ids[0, 0] = vocab["[ENC]"]
    with torch.no_grad():
        image = model.vision_model(pixels, interpolate_pos_encoding=True).last_hidden_state
        asked = model.text_encoder(ids, encoder_hidden_states=image).last_hidden_state
        start = torch.tensor([[vocab["[DEC]"]]])
        logits: torch.Tensor = model.text_decoder(start, encoder_hidden_states=asked).logits
        return logits[0, 0]


@pytest.mark.parametrize("which", [2, 3], ids=["own size", "larger size"])
def test_equals_the_parts_called_by_hand(made: Made, which: int) -> None:
    import torch

    model, processor, vlm = made[0], made[1], made[which]
    pixels = vlm.prepare(picture(1, 60, 40))
    ids = [processor.tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no")]

    found = vlm.answer_logprobs([pixels], [QUESTIONS], [[YES_NO] * 3])[0]

    assert pixels.shape[-1] == {2: 32, 3: 48}[which]
    for question, values in zip(QUESTIONS, found, strict=True):
        logits = by_hand(model, processor, pixels, question)
        assert_allclose(np.concatenate(values), torch.log_softmax(logits, -1)[ids], atol=2e-6)
        ahead = float(logits[ids[0]] - logits[ids[1]])
        assert_allclose(p_yes_norm(*values), 1 / (1 + np.exp(-ahead)), atol=1e-6)


def test_only_35_tokens_of_a_question_are_read(made: Made) -> None:
    vlm = made[2]
    seen = vlm.prepare(picture(1))
    long, longer = "a " * 60, "a " * 60 + "dog"

    first, second = vlm.answer_logprobs([seen], [[long, longer]], [[YES_NO] * 2])[0]

    assert vlm.truncated(["a dog?", long]) == [False, True]
    assert_allclose(np.concatenate(first), np.concatenate(second), atol=2e-6)


def test_greedy_answers_do_not_depend_on_the_batch(made: Made) -> None:
    vlm = made[2]
    seen = vlm.prepare(picture(2))
    together = vlm.generate([seen], [QUESTIONS], 4)[0]

    assert together == [vlm.generate([seen], [[one]], 4)[0][0] for one in QUESTIONS]
