"""CLIP-FlanT5 equals its definition, written out with the library's parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.vlm_reading import padded_square
from evaluator.scorers.row import Checkpoint, ScorerRow
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_seq2seq import clip_flant5_folders
from tests.evaluator.scorers.tiny_vlm import picture, row_of

QUESTIONS = ['Does this figure show "a dog"?', "red?"]
YES = Candidate("Yes", with_end=True)


def composite() -> ScorerRow:
    roles = ("model", "vision", "tokenizer")
    return row_of(checkpoints={role: Checkpoint(id=f"made/{role}") for role in roles})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return clip_flant5_folders(tmp_path_factory.mktemp("clip_flant5"))


@pytest.fixture(scope="module")
def vlm(folders: dict[str, Path]) -> Any:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    return load_answer_model(composite(), Runtime(folders=folders))


def written_out(folders: dict[str, Path], vlm: Any, question: str) -> float:
    """exp(-loss) of Yes and the end token."""
    import torch
    from transformers import (
        AutoImageProcessor,
        AutoTokenizer,
        CLIPVisionModel,
        T5Config,
        T5ForConditionalGeneration,
    )

    from evaluator.scorers.models.clip_flant5 import FORMAT

    config = T5Config.from_pretrained(folders["model"])
    config.tie_word_embeddings = False
    t5 = T5ForConditionalGeneration.from_pretrained(folders["model"], config=config).eval()
    clip = CLIPVisionModel.from_pretrained(folders["vision"]).eval()
    images = AutoImageProcessor.from_pretrained(folders["vision"], backend="pil")
    tokenizer = AutoTokenizer.from_pretrained(folders["tokenizer"])
    pixels = images(padded_square(picture(1, 60, 40)), return_tensors="pt")["pixel_values"]
    before, after = FORMAT.replace("{prompt}", question).split("{image}")
    with torch.no_grad():
        patches = clip(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
        texts = [tokenizer(one, return_tensors="pt").input_ids for one in (before, after)]
        assert all(ids[0, -1] == tokenizer.eos_token_id for ids in texts)
        parts = [t5.shared(texts[0]), vlm._projector(patches), t5.shared(texts[1])]
        label = torch.tensor([[tokenizer.convert_tokens_to_ids("▁Yes"), 1]])
        return float(torch.exp(-t5(inputs_embeds=torch.cat(parts, dim=1), labels=label).loss))


def test_equals_the_written_formula(folders: dict[str, Path], vlm: Any) -> None:
    seen = vlm.prepare(picture(1, 60, 40))

    found = vlm.answer_logprobs([seen], [QUESTIONS], [[[YES], [YES]]])[0]

    for question, (values,) in zip(QUESTIONS, found, strict=True):
        assert len(values) == 2
        assert_allclose(np.exp(values.mean()), written_out(folders, vlm, question), atol=1e-6)


def test_the_image_and_the_question_count(vlm: Any) -> None:
    images = [vlm.prepare(picture(i)) for i in (1, 2)]
    found = vlm.answer_logprobs(images, [QUESTIONS] * 2, [[[YES], [YES]]] * 2)
    values = {float(one[0].mean()) for of_image in found for one in of_image}

    assert len(values) == 4


def test_a_pair_scores_alone_as_with_others(vlm: Any) -> None:
    seen = vlm.prepare(picture(1))
    both = vlm.answer_logprobs([seen], [QUESTIONS], [[[YES], [YES]]])[0]
    alone = [vlm.answer_logprobs([seen], [[one]], [[[YES]]])[0][0] for one in QUESTIONS]

    for a, b in zip(both, alone, strict=True):
        assert_allclose(a[0], b[0], atol=2e-6)


def test_the_output_head_is_read_and_not_tied(vlm: Any) -> None:
    import torch

    assert not torch.equal(vlm._language.lm_head.weight, vlm._language.shared.weight)


def test_a_missing_part_is_named(folders: dict[str, Path]) -> None:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    with pytest.raises(SubmitterError) as failure:
        load_answer_model(row_of(), Runtime(folders={"model": folders["model"]}))
    assert failure.value.code == "checkpoint_missing"
    assert "vision" in str(failure.value)


def test_a_folder_without_projector_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    for path in folders["model"].iterdir():
        if path.name != "projector.safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(SubmitterError) as failure:
        load_answer_model(composite(), Runtime(folders={**folders, "model": tmp_path}))
    assert failure.value.code == "checkpoint_wrong_class"
