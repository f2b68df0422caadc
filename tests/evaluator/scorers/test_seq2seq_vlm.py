"""BLIP-2 and InstructBLIP: an image is encoded once, answers are as the library's own labels say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evaluator.scorers.answering import Candidate
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_seq2seq import blip2
from tests.evaluator.scorers.tiny_vlm import picture, row_of, saved

PROMPTS = ["is it red?", 'Question: Does this show "two dogs"?', "no."]
ANSWERS = [Candidate("Yes", with_end=True), Candidate("no"), Candidate("abc", with_end=True)]
Made = tuple[Any, Any, Any]


@pytest.fixture(scope="module", params=["blip-2", "instructblip"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    model, processor = blip2(instruct=request.param == "instructblip")
    folder = saved(model, processor, tmp_path_factory.mktemp("seq2seq"))
    return model, processor, load_answer_model(row_of(), Runtime(folders={"model": folder}))


def test_answers_are_those_of_teacher_forced_labels(made: Made) -> None:
    import torch

    model, processor, vlm = made
    image = picture(1, 60, 40)

    found = vlm.answer_logprobs([vlm.prepare(image)], [PROMPTS], [[ANSWERS] * 3])[0]

    for prompt, ours in zip(PROMPTS, found, strict=True):
        inputs = processor(images=image, text=prompt, return_tensors="pt")
        for answer, values in zip(ANSWERS, ours, strict=True):
            ids = processor.tokenizer.encode(answer.text, add_special_tokens=False)
            labels = torch.tensor([[*ids, *([1] if answer.with_end else [])]])
            with torch.no_grad():
                out = model(**inputs, labels=labels)
            plain = torch.log_softmax(out.logits[0].float(), dim=-1)
            wanted = plain[torch.arange(labels.shape[1]), labels[0]]
            assert_allclose(values, wanted, atol=2e-6)
            assert_allclose(np.exp(values.mean()), np.exp(-out.loss.item()), atol=1e-6)


def test_scores_alone_equal_scores_in_a_batch(made: Made) -> None:
    vlm = made[2]
    images = [vlm.prepare(picture(i)) for i in (1, 2)]

    together = vlm.answer_logprobs(images, [PROMPTS, PROMPTS], [[ANSWERS] * 3] * 2)

    for image, of_image in zip(images, together, strict=True):
        for prompt, ours in zip(PROMPTS, of_image, strict=True):
            alone = vlm.answer_logprobs([image], [[prompt]], [[ANSWERS]])[0][0]
            assert_allclose(np.concatenate(ours), np.concatenate(alone), atol=2e-6)
    first, second = (np.concatenate([np.concatenate(p) for p in its]) for its in together)
    assert np.abs(first - second).max() > 1e-5


def test_the_vision_tower_runs_once_per_image(made: Made) -> None:
    vlm = made[2]
    calls: list[int] = []
    handle = vlm._model.vision_model.register_forward_hook(lambda *_: calls.append(1))
    images = [vlm.prepare(picture(i)) for i in (1, 2)]

    vlm.answer_logprobs(images, [PROMPTS, PROMPTS], [[ANSWERS] * 3] * 2)
    handle.remove()

    assert len(calls) == 2


def test_greedy_answers_are_those_of_the_library(made: Made) -> None:
    model, processor, vlm = made
    image = picture(3)

    found = vlm.generate([vlm.prepare(image)], [PROMPTS], 6)[0]

    for prompt, words in zip(PROMPTS, found, strict=True):
        inputs = processor(images=image, text=prompt, return_tensors="pt")
        ids = model.generate(**inputs, max_new_tokens=6, do_sample=False, num_beams=1)
        assert words == processor.tokenizer.decode(ids[0], skip_special_tokens=True).strip()


def test_prompts_that_the_q_former_cannot_hold_are_named(made: Made) -> None:
    vlm = made[2]
    reads_all = vlm.environment["model_type"] == "blip-2"

    assert vlm.truncated(["short", "a " * 300]) == [False, not reads_all]


def test_the_output_head_is_not_the_embedding_table(made: Made, tmp_path: Path) -> None:
    import torch

    language = made[2]._model.language_model

    assert language.lm_head.weight is not language.shared.weight
    assert not torch.equal(language.lm_head.weight, language.shared.weight)
