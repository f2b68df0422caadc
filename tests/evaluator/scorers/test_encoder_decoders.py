"""Encoder-decoders that read images: probabilities as the library's own labels say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.vlm_reading import Reading, padded_square
from evaluator.scorers.reduce import p_yes_norm
from evaluator.scorers.row import Checkpoint, ScorerRow
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.tiny_blip import blip2_t5, blip_vqa, clip_flant5_folders
from tests.evaluator.scorers.tiny_dual import here, picture, row, saved

loading = later("evaluator.scorers.models.vlm_loading")
clip_flant5 = later("evaluator.scorers.models.clip_flant5")

PROMPTS = ["is it red?", 'Question: Does this show "two dogs"?', "no."]
ANSWERS = [Candidate("Yes", with_end=True), Candidate("no"), Candidate("abc", with_end=True)]
YES_NO = [Candidate("yes"), Candidate("no")]
Made = tuple[Any, Any, Any]


def flat(of_image: Any) -> Any:
    return np.concatenate([np.concatenate(of_prompt) for of_prompt in of_image])


# BLIP-2 and InstructBLIP


@pytest.fixture(scope="module", params=["blip-2", "instructblip"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    tiny = blip2_t5(instruct=request.param == "instructblip")
    folder = saved(tmp_path_factory.mktemp("seq2seq"), *tiny)
    return (*tiny, loading.load_answer_model(row(), here(folder)))


def test_answers_are_those_of_teacher_forced_labels(made: Made) -> None:
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
    language = vlm._model.language_model
    assert not torch.equal(language.lm_head.weight, language.shared.weight)


def test_a_batch_reads_each_image_once_and_scores_as_alone(made: Made) -> None:
    vlm = made[2]
    calls: list[int] = []
    handle = vlm._model.vision_model.register_forward_hook(lambda *_: calls.append(1))
    images = [vlm.prepare(picture(i)) for i in (1, 2)]
    together = vlm.answer_logprobs(images, [PROMPTS, PROMPTS], [[ANSWERS] * 3] * 2)
    handle.remove()
    assert len(calls) == 2
    for image, of_image in zip(images, together, strict=True):
        alone = [vlm.answer_logprobs([image], [[one]], [[ANSWERS]])[0][0] for one in PROMPTS]
        assert_allclose(flat(of_image), flat(alone), atol=2e-6)
    assert np.abs(flat(together[0]) - flat(together[1])).max() > 1e-5


def test_greedy_answers_are_those_of_the_library(made: Made) -> None:
    model, processor, vlm = made
    image = picture(3)
    found = vlm.generate([vlm.prepare(image)], [PROMPTS], 6)[0]
    for prompt, words in zip(PROMPTS, found, strict=True):
        inputs = processor(images=image, text=prompt, return_tensors="pt")
        ids = model.generate(**inputs, max_new_tokens=6, do_sample=False, num_beams=1)
        assert words == processor.tokenizer.decode(ids[0], skip_special_tokens=True).strip()


def test_prompts_that_the_q_former_cannot_hold_are_named(made: Made) -> None:
    reads_all = made[2].environment["model_type"] == "blip-2"
    assert made[2].truncated(["short", "a " * 300]) == [False, not reads_all]


# BLIP-VQA: its three parts by hand, with [ENC] first and no padding seen

QUESTIONS = ["a dog?", "two red cats?", "x?"]


@pytest.fixture(scope="module")
def vqa(tmp_path_factory: pytest.TempPathFactory) -> Any:
    tiny = blip_vqa()
    return (*tiny, saved(tmp_path_factory.mktemp("blip_vqa"), *tiny))


@pytest.mark.parametrize(("reading", "side"), [(Reading(), 32), (Reading(side=48), 48)])
def test_blip_vqa_equals_its_parts_called_by_hand(vqa: Made, reading: Reading, side: int) -> None:
    model, processor, folder = vqa
    vlm = loading.load_answer_model(row(), here(folder), reading=reading)
    pixels = vlm.prepare(picture(1, 60, 40))
    assert pixels.shape[-1] == side
    vocab = processor.tokenizer.get_vocab()
    yes_no = [vocab["yes"], vocab["no"]]
    found = vlm.answer_logprobs([pixels], [QUESTIONS], [[YES_NO] * 3])[0]
    for question, values in zip(QUESTIONS, found, strict=True):
        ids = processor.tokenizer(question, return_tensors="pt").input_ids
        ids[0, 0] = vocab["[ENC]"]
        with torch.no_grad():
            image = model.vision_model(pixels, interpolate_pos_encoding=True).last_hidden_state
            asked = model.text_encoder(ids, encoder_hidden_states=image).last_hidden_state
            start = torch.tensor([[vocab["[DEC]"]]])
            logits = model.text_decoder(start, encoder_hidden_states=asked).logits[0, 0]
        assert_allclose(np.concatenate(values), torch.log_softmax(logits, -1)[yes_no], atol=2e-6)
        ahead = float(logits[yes_no[0]] - logits[yes_no[1]])
        assert_allclose(p_yes_norm(*values), 1 / (1 + np.exp(-ahead)), atol=1e-6)


def test_blip_vqa_reads_35_tokens_and_answers_alone_as_with_others(vqa: Made) -> None:
    vlm = loading.load_answer_model(row(), here(vqa[2]))
    seen = vlm.prepare(picture(1))
    long, longer = "a " * 60, "a " * 60 + "dog"
    first, second = vlm.answer_logprobs([seen], [[long, longer]], [[YES_NO] * 2])[0]
    assert vlm.truncated(["a dog?", long]) == [False, True]
    assert_allclose(np.concatenate(first), np.concatenate(second), atol=2e-6)
    together = vlm.generate([seen], [QUESTIONS], 4)[0]
    assert together == [vlm.generate([seen], [[one]], 4)[0][0] for one in QUESTIONS]


# CLIP-FlanT5: three checkpoints, put together

SHOWN = ['Does this figure show "a dog"?', "red?"]
YES = Candidate("Yes", with_end=True)


def composite() -> ScorerRow:
    roles = ("model", "vision", "tokenizer")
    parts = {role: Checkpoint(id=f"made/{role}") for role in roles}
    return row("vlm_likelihood").model_copy(update={"checkpoints": parts})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return clip_flant5_folders(tmp_path_factory.mktemp("clip_flant5"))


@pytest.fixture(scope="module")
def flant5(folders: dict[str, Path]) -> Any:
    return loading.load_answer_model(composite(), Runtime(folders=folders))


def test_clip_flant5_equals_the_written_formula(folders: dict[str, Path], flant5: Any) -> None:
    config = hf.T5Config.from_pretrained(folders["model"])
    config.tie_word_embeddings = False
    t5 = hf.T5ForConditionalGeneration.from_pretrained(folders["model"], config=config).eval()
    clip = hf.CLIPVisionModel.from_pretrained(folders["vision"]).eval()
    images = hf.AutoImageProcessor.from_pretrained(folders["vision"], backend="pil")
    tokenizer = hf.AutoTokenizer.from_pretrained(folders["tokenizer"])
    image = picture(1, 60, 40)
    pixels = images(padded_square(image), return_tensors="pt")["pixel_values"]
    label = torch.tensor([[tokenizer.convert_tokens_to_ids("▁Yes"), 1]])
    found = flant5.answer_logprobs([flant5.prepare(image)], [SHOWN], [[[YES], [YES]]])[0]
    for question, (values,) in zip(SHOWN, found, strict=True):
        before, after = clip_flant5.FORMAT.replace("{prompt}", question).split("{image}")
        with torch.no_grad():
            patches = clip(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
            texts = [tokenizer(one, return_tensors="pt").input_ids for one in (before, after)]
            assert all(ids[0, -1] == tokenizer.eos_token_id for ids in texts)
            parts = [t5.shared(texts[0]), flant5._projector(patches), t5.shared(texts[1])]
            loss = t5(inputs_embeds=torch.cat(parts, dim=1), labels=label).loss
        assert len(values) == 2
        assert_allclose(np.exp(values.mean()), float(torch.exp(-loss)), atol=1e-6)
    language = flant5._language
    assert not torch.equal(language.lm_head.weight, language.shared.weight)


def test_clip_flant5_tells_images_and_questions_apart_and_scores_pairs_alone(flant5: Any) -> None:
    images = [flant5.prepare(picture(i)) for i in (1, 2)]
    found = flant5.answer_logprobs(images, [SHOWN] * 2, [[[YES], [YES]]] * 2)
    assert len({float(one[0].mean()) for of_image in found for one in of_image}) == 4
    alone = [flant5.answer_logprobs(images[:1], [[one]], [[[YES]]])[0][0] for one in SHOWN]
    assert_allclose(flat(found[0]), flat(alone), atol=2e-6)


def test_clip_flant5_without_one_of_its_parts_is_refused(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    with refusal("checkpoint_missing", "vision"):
        loading.load_answer_model(row(), here(folders["model"]))
    for path in folders["model"].iterdir():
        if path.name != "projector.safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with refusal("checkpoint_wrong_class"):
        loading.load_answer_model(composite(), Runtime(folders={**folders, "model": tmp_path}))
