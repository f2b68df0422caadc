"""Models that read images give the answers' probabilities that plain calls of the library give."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import (
    CLIP_MEAN_COLOUR,
    Candidate,
    Reading,
    answer_tokens,
    p_yes_norm,
    padded_square,
)
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.registry import Checkpoint, Runtime, ScorerRow
from tests.evaluator.scorers import tiny_models
from tests.evaluator.scorers.common import hf, later, refusal, safetensors, torch

texts = later("evaluator.scorers.models.vlm_inputs")
vlms = later("evaluator.scorers.models.chat")
loading = later("evaluator.scorers.models.vlm_loading")
prefixes = later("evaluator.scorers.models.prefixes")
clip_flant5 = later("evaluator.scorers.models.encoder_decoders")

# Decoders: what one did for an image is shared by prompts, and never changed by them

PROMPTS = ["Is it red?", "Does this figure show a small dog beside two trees?", "Is it red? Yes?"]
ANSWERS = [Candidate("Yes"), Candidate("No", with_end=True), Candidate("a b")]
YES = [Candidate("Yes")]
PREFIX = "image and text before it"


@pytest.fixture(scope="module", params=tiny_models.MAKERS)
def tiny(request: pytest.FixtureRequest) -> tiny_models.Tiny:
    return tiny_models.MAKERS[request.param]()


@pytest.fixture(scope="module", params=["qwen3_vl", "gemma3"])
def some(request: pytest.FixtureRequest) -> tiny_models.Tiny:
    return tiny_models.MAKERS[request.param]()


@pytest.fixture(scope="module")
def qwen() -> tiny_models.Tiny:
    return tiny_models.qwen2_vl()


def vlm_of(tiny: tiny_models.Tiny, **more: Any) -> Any:
    return vlms.ChatVLM(tiny[0], texts.ChatText(tiny[1], Reading()), {}, **more)


def read(vlm: Any, images: list[Image.Image], prompts: list[list[str]]) -> list[Any]:
    candidates = [[ANSWERS for _ in its] for its in prompts]
    found = vlm.answer_logprobs([vlm.prepare(one) for one in images], prompts, candidates)
    return [np.concatenate(of_prompt) for of_image in found for of_prompt in of_image]


def same(first: list[Any], second: list[Any]) -> None:
    for a, b in zip(first, second, strict=True):
        assert_allclose(a, b, atol=2e-6)


@pytest.mark.first_quick
def test_shared_prefix_gives_what_independent_calls_give(tiny: tiny_models.Tiny) -> None:
    images = [tiny_models.picture(1, 90, 60), tiny_models.picture(2, 56, 112)]
    found = read(vlm_of(tiny), images, [PROMPTS, PROMPTS])
    tokenizer = tiny[1].tokenizer
    ids = answer_tokens(tokenizer, ANSWERS, end=tokenizer.eos_token_id)
    for ours, (image, prompt) in zip(
        found, [(image, prompt) for image in images for prompt in PROMPTS], strict=True
    ):
        plain = np.concatenate(
            [tiny_models.independent_logprobs(tiny, image, prompt, i) for i in ids]
        )
        assert_allclose(np.exp(ours), np.exp(plain), atol=1e-5, rtol=0)
        assert_allclose(ours, plain, atol=1e-4, rtol=0)


def test_images_batched_with_left_padding_score_as_alone(tiny: tiny_models.Tiny) -> None:
    images = [
        tiny_models.picture(1, 90, 60),
        tiny_models.picture(2, 56, 56),
        tiny_models.picture(3, 112, 56),
    ]
    prompts = [PROMPTS, PROMPTS[:1], PROMPTS[1:]]
    batched = read(vlm_of(tiny, images_together=4), images, prompts)
    alone = vlm_of(tiny)
    same(batched, [v for i in range(3) for v in read(alone, [images[i]], [prompts[i]])])


def test_prompts_do_not_see_each_other_nor_their_order(some: tiny_models.Tiny) -> None:
    vlm, image = vlm_of(some), tiny_models.picture(1)
    forwards = read(vlm, [image], [PROMPTS])
    same(forwards, read(vlm, [image], [PROMPTS[::-1]])[::-1])
    same(forwards, [read(vlm, [image], [[prompt]])[0] for prompt in PROMPTS])
    other = read(vlm, [tiny_models.picture(2)], [PROMPTS])
    assert min(np.abs(a - b).max() for a, b in zip(forwards, other, strict=True)) > 1e-4


def test_sharing_only_the_vision_tower_or_nothing_changes_nothing(some: tiny_models.Tiny) -> None:
    images = [tiny_models.picture(1), tiny_models.picture(2, 90, 60)]
    prefix, vision, nothing = (
        read(vlm_of(some, sharing=kind), images, [PROMPTS, PROMPTS])
        for kind in ("prefix", "vision", "nothing")
    )
    same(prefix, vision)
    same(prefix, nothing)


def test_greedy_answers_are_those_of_the_library_in_any_batch_up_to_an_end(
    some: tiny_models.Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = some
    images = [tiny_models.picture(1, 90, 60), tiny_models.picture(2)]

    def by_library(image: Image.Image, prompt: str) -> list[int]:
        inputs = tiny_models.chat_inputs(processor, image, prompt)
        ids = model.generate(**inputs, max_new_tokens=5, do_sample=False)
        new: list[int] = ids[0, inputs["input_ids"].shape[1] :].tolist()
        return new[: new.index(end)] if end in new else new

    end = -1
    for together in (1, 2):
        vlm = vlm_of(some, images_together=together)
        seen = [vlm.prepare(one) for one in images]
        found = vlm.generate(seen, [PROMPTS, PROMPTS], 5)
        assert vlm.generate(seen[:1], [PROMPTS[:1]], 5) == [found[0][:1]]
        wanted = [[by_library(image, prompt) for prompt in PROMPTS] for image in images]
        decode = partial(processor.tokenizer.decode, skip_special_tokens=True)
        assert found == [[decode(ids).strip() for ids in of_image] for of_image in wanted]
        if together == 1:  # the second time, a token of the first answer ends all of them
            end = wanted[0][0][2]
            monkeypatch.setattr(model.generation_config, "eos_token_id", end)


def test_repetition_penalty_does_not_move_probabilities(qwen: tiny_models.Tiny) -> None:
    before = read(vlm_of(qwen), [tiny_models.picture(1)], [PROMPTS])
    qwen[0].generation_config.repetition_penalty = 5.0
    after = read(vlm_of(qwen), [tiny_models.picture(1)], [PROMPTS])
    qwen[0].generation_config.repetition_penalty = 1.0
    same(before, after)


def test_loader_tries_sharing_and_says_so(tmp_path: Path, qwen: tiny_models.Tiny) -> None:
    model = loading.load_answer_model(
        tiny_models.row(), tiny_models.here(tiny_models.saved(tmp_path, *qwen))
    )
    assert model.environment["shared_by_prompts"] == PREFIX
    assert model.environment["dtype"] == "float32"
    assert model.environment["image_processor"].endswith("Pil")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_looks_ahead_shares_its_vision_tower_only(dtype: str) -> None:
    model, processor = tiny_models.paligemma()
    source = Source(Path("made up"), "made up", "")
    reading = Reading(text_format="{image}{prompt}")
    setting = later("evaluator.scorers.models.vlm_inputs").Setting(
        source, "paligemma", Runtime(), dtype, reading
    )
    image = tiny_models.picture(1)
    vlm = later("evaluator.scorers.models.chat").chat_vlm(
        model.to(setting.torch_dtype), processor, setting
    )
    assert vlm.environment["shared_by_prompts"].startswith("vision tower")
    text = texts.ChatText(processor, reading)
    found = vlm.answer_logprobs([vlm.prepare(image)], [PROMPTS], [[YES] * 3])[0]
    for prompt, (values,) in zip(PROMPTS, found, strict=True):
        one = text.inputs_of(text.prepare(image), prompt)
        pixels = {name: v.to(setting.torch_dtype) for name, v in one.pixels.items()}
        with torch.no_grad():
            logits = model(input_ids=one.ids[None], **one.per_token, **pixels).logits[0, -1]
        wanted = torch.log_softmax(logits.float(), dim=-1)[text.answers(YES)[0][0]]
        assert_allclose(values[0], wanted, atol=1e-5 if dtype == "float32" else 0.05)


def test_prompts_beyond_the_context_are_named(qwen: tiny_models.Tiny) -> None:
    vlm = vlm_of(qwen)
    vlm.prepare(tiny_models.picture(1))
    assert vlm.truncated(["short", "long " * 120]) == [False, True]


def test_control_tokens_in_a_prompt_are_read_as_text(qwen: tiny_models.Tiny) -> None:
    found = read(
        vlm_of(qwen), [tiny_models.picture(1)], [["<|image_pad|> or <|im_end|>?", "Is it red?"]]
    )
    assert all(np.isfinite(values).all() for values in found)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with refusal("checkpoint_wrong_class"):
        loading.load_answer_model(tiny_models.row(), tiny_models.here(tmp_path))


# Prompts and answers as tokens


def test_a_format_of_the_metric_replaces_the_template() -> None:
    processor = tiny_models.llava()[1]
    text = texts.ChatText(processor, Reading(text_format="Look: {image}\n{prompt} {} Answer:"))
    asked = text.inputs_of(text.prepare(tiny_models.picture(1)), "a {b} c")
    words = processor.tokenizer.decode(asked.ids, skip_special_tokens=True)
    assert words.replace(" ", "") == "Look:\na{b}c{}Answer:"


def test_padding_to_a_square_keeps_the_image_in_the_middle() -> None:
    image = tiny_models.picture(1, 20, 10)
    square = padded_square(image)
    assert (square.size, square.getpixel((0, 0))) == ((20, 20), CLIP_MEAN_COLOUR)
    assert_allclose(np.asarray(square)[5:15], np.asarray(image))


# The cache behind it


def test_layers_of_unknown_kinds_are_copied_whole() -> None:
    sliding = later("transformers.cache_utils").DynamicSlidingWindowLayer
    layer = type("Writing", (sliding,), {})(sliding_window=8)
    whole = hf.DynamicCache()
    whole.layers = [layer]
    values = torch.ones(1, 1, 3, 2)
    layer.update(values, values)
    other = prefixes.copied(whole, [0, 0]).layers[0]
    other.keys.zero_()
    assert other.keys.shape[0] == 2
    assert torch.equal(layer.keys, values)


def test_an_image_goes_through_tower_and_decoder_once(qwen: tiny_models.Tiny) -> None:
    vlm, inner = vlm_of(qwen), qwen[0].model
    images = [vlm.prepare(tiny_models.picture(i)) for i in (1, 2)]
    tower: list[int] = []
    passes: list[int] = []
    hooks = [
        inner.visual.register_forward_hook(lambda *_: tower.append(1)),
        inner.language_model.register_forward_hook(lambda *_: passes.append(1)),
    ]
    prompts = ["a red ball?", "a dog?", "two cats?"]
    vlm.answer_logprobs(images, [prompts] * 2, [[YES] * 3] * 2)
    for hook in hooks:
        hook.remove()
    assert (len(tower), len(passes)) == (2, 2 * 2)


def test_offsets_of_an_earlier_image_are_forgotten(qwen: tiny_models.Tiny) -> None:
    vlm, asked = vlm_of(qwen), [["a?", "b c?"]]
    square = [tiny_models.picture(1)]
    first = read(vlm, square, asked)
    read(vlm, [tiny_models.picture(2, 112, 56)], asked)
    qwen[0].model.rope_deltas = torch.tensor([[123]])
    same(first, read(vlm, square, asked))


# Encoder-decoders: probabilities as the library's own labels say

TEXTS = ["is it red?", 'Question: Does this show "two dogs"?', "no."]
LABELS = [Candidate("Yes", with_end=True), Candidate("no"), Candidate("abc", with_end=True)]
YES_NO = [Candidate("yes"), Candidate("no")]
Made = tuple[Any, Any, Any]


def flat(of_image: Any) -> Any:
    return np.concatenate([np.concatenate(of_prompt) for of_prompt in of_image])


# BLIP-2 and InstructBLIP


@pytest.fixture(scope="module", params=["blip-2", "instructblip"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    tiny = tiny_models.blip2_t5(instruct=request.param == "instructblip")
    folder = tiny_models.saved(tmp_path_factory.mktemp("seq2seq"), *tiny)
    return (*tiny, loading.load_answer_model(tiny_models.row(), tiny_models.here(folder)))


def test_answers_are_those_of_teacher_forced_labels(made: Made) -> None:
    model, processor, vlm = made
    image = tiny_models.picture(1, 60, 40)
    found = vlm.answer_logprobs([vlm.prepare(image)], [TEXTS], [[LABELS] * 3])[0]
    for prompt, ours in zip(TEXTS, found, strict=True):
        inputs = processor(images=image, text=prompt, return_tensors="pt")
        for answer, values in zip(LABELS, ours, strict=True):
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
    images = [vlm.prepare(tiny_models.picture(i)) for i in (1, 2)]
    together = vlm.answer_logprobs(images, [TEXTS, TEXTS], [[LABELS] * 3] * 2)
    handle.remove()
    assert len(calls) == 2
    for image, of_image in zip(images, together, strict=True):
        alone = [vlm.answer_logprobs([image], [[one]], [[LABELS]])[0][0] for one in TEXTS]
        assert_allclose(flat(of_image), flat(alone), atol=2e-6)
    assert np.abs(flat(together[0]) - flat(together[1])).max() > 1e-5


def test_greedy_answers_are_those_of_the_library(made: Made) -> None:
    model, processor, vlm = made
    image = tiny_models.picture(3)
    found = vlm.generate([vlm.prepare(image)], [TEXTS], 6)[0]
    for prompt, words in zip(TEXTS, found, strict=True):
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
    tiny = tiny_models.blip_vqa()
    return (*tiny, tiny_models.saved(tmp_path_factory.mktemp("blip_vqa"), *tiny))


@pytest.mark.parametrize(("reading", "side"), [(Reading(), 32), (Reading(side=48), 48)])
def test_blip_vqa_equals_its_parts_called_by_hand(vqa: Made, reading: Reading, side: int) -> None:
    model, processor, folder = vqa
    vlm = loading.load_answer_model(tiny_models.row(), tiny_models.here(folder), reading=reading)
    pixels = vlm.prepare(tiny_models.picture(1, 60, 40))
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
    vlm = loading.load_answer_model(tiny_models.row(), tiny_models.here(vqa[2]))
    seen = vlm.prepare(tiny_models.picture(1))
    long, longer = "a " * 60, "a " * 60 + "dog"
    first, second = vlm.answer_logprobs([seen], [[long, longer]], [[YES_NO] * 2])[0]
    assert vlm.truncated(["a dog?", long]) == [False, True]
    assert_allclose(np.concatenate(first), np.concatenate(second), atol=2e-6)
    together = vlm.generate([seen], [QUESTIONS], 4)[0]
    assert together == [vlm.generate([seen], [[one]], 4)[0][0] for one in QUESTIONS]


# CLIP-FlanT5: three checkpoints, put together

SHOWN = ['Does this figure show "a dog"?', "red?"]
WHOLE = Candidate("Yes", with_end=True)


def composite() -> ScorerRow:
    roles = ("model", "vision", "tokenizer")
    parts = {role: Checkpoint(id=f"made/{role}") for role in roles}
    return tiny_models.row("vlm_likelihood").model_copy(update={"checkpoints": parts})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return tiny_models.clip_flant5_folders(tmp_path_factory.mktemp("clip_flant5"))


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
    image = tiny_models.picture(1, 60, 40)
    pixels = images(padded_square(image), return_tensors="pt")["pixel_values"]
    label = torch.tensor([[tokenizer.convert_tokens_to_ids("▁Yes"), 1]])
    found = flant5.answer_logprobs([flant5.prepare(image)], [SHOWN], [[[WHOLE], [WHOLE]]])[0]
    for question, (values,) in zip(SHOWN, found, strict=True):
        before, after = clip_flant5.FORMAT.replace("{prompt}", question).split("{image}")
        with torch.no_grad():
            patches = clip(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
            around = [tokenizer(one, return_tensors="pt").input_ids for one in (before, after)]
            assert all(ids[0, -1] == tokenizer.eos_token_id for ids in around)
            parts = [t5.shared(around[0]), flant5._projector(patches), t5.shared(around[1])]
            loss = t5(inputs_embeds=torch.cat(parts, dim=1), labels=label).loss
        assert len(values) == 2
        assert_allclose(np.exp(values.mean()), float(torch.exp(-loss)), atol=1e-6)
    language = flant5._language
    assert not torch.equal(language.lm_head.weight, language.shared.weight)


def test_clip_flant5_tells_images_and_questions_apart_and_scores_pairs_alone(flant5: Any) -> None:
    images = [flant5.prepare(tiny_models.picture(i)) for i in (1, 2)]
    found = flant5.answer_logprobs(images, [SHOWN] * 2, [[[WHOLE], [WHOLE]]] * 2)
    assert len({float(one[0].mean()) for of_image in found for one in of_image}) == 4
    alone = [flant5.answer_logprobs(images[:1], [[one]], [[[WHOLE]]])[0][0] for one in SHOWN]
    assert_allclose(flat(found[0]), flat(alone), atol=2e-6)


def test_clip_flant5_without_one_of_its_parts_is_refused(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    with refusal("checkpoint_missing", "vision"):
        loading.load_answer_model(tiny_models.row(), tiny_models.here(folders["model"]))
    for path in folders["model"].iterdir():
        if path.name != "projector.safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with refusal("checkpoint_wrong_class"):
        loading.load_answer_model(composite(), Runtime(folders={**folders, "model": tmp_path}))


# Phi-4-multimodal's own checkpoint becomes the library's model with its LoRA merged

PART = "model.embed_tokens_extend.image_embed."
THEIRS = {
    f"{PART}img_projection_up": f"{PART}img_projection.0",
    f"{PART}img_projection_down": f"{PART}img_projection.2",
    f"{PART}global_img_feature_extensor": f"{PART}glb_GN",
    f"{PART}sub_img_feature_extensor": f"{PART}sub_GN",
}
RANK, ALPHA = 4, 8
FORMAT = "<|user|>{image}{prompt}<|end|><|assistant|>"
State = dict[str, Any]


def tokenizer() -> Any:
    return tiny_models.qwen_tokenizer(
        vlms.IMAGE_TOKEN, vlms.AUDIO_TOKEN, "<|user|>", "<|end|>", "<|assistant|>"
    )


def saved_config() -> State:
    text = tokenizer()
    lora = {"r": RANK, "lora_alpha": ALPHA, "layer": "unused"}
    image = text.convert_tokens_to_ids(vlms.IMAGE_TOKEN)
    tower = {
        **tiny_models.SMALL,
        "num_hidden_layers": 3,
        "image_size": 448,
        "image_token_id": image,
    }
    return {
        **tiny_models.text_settings(text, max_position_embeddings=2048),
        "model_type": "phi4mm",
        "original_max_position_embeddings": 1024,
        "pad_token_id": text.pad_token_id,
        "tie_word_embeddings": True,
        "partial_rotary_factor": 0.75,
        "rope_theta": 1e4,
        "rope_scaling": {
            "type": "longrope", "short_factor": [1.0] * 3, "long_factor": [2.0] * 3
        },
        "embd_layer": {"image_embd_layer": {"crop_size": 448}},
        "vision_config": tower,
        "vision_lora": lora,
        "speech_lora": lora,
    }  # fmt: skip


def as_theirs(native: State) -> tuple[State, State]:
    """A checkpoint as their code saves it, and by hand what it stands for."""
    generator = torch.Generator().manual_seed(1)
    theirs: State = {}
    sums: State = {}
    for name, values in native.items():
        if ".audio_embed." in name:
            theirs[name] = torch.ones(3)
            continue
        kept = next((name.replace(a, b) for a, b in THEIRS.items() if a in name), name)
        sums[name] = values
        if ".layers." not in name or "_proj.weight" not in name or PART in name:
            theirs[kept] = values.clone()
            continue
        layer = name.removesuffix(".weight")
        theirs[f"{layer}.base_layer.weight"] = values.clone()
        for adapter in ("vision", "speech"):
            down = 0.3 * torch.randn(RANK, values.shape[1], generator=generator)
            up = 0.3 * torch.randn(values.shape[0], RANK, generator=generator)
            theirs[f"{layer}.lora_A.{adapter}.weight"] = down
            theirs[f"{layer}.lora_B.{adapter}.weight"] = up
            if adapter == "vision":
                sums[name] = values + ALPHA / RANK * up @ down
    return theirs, sums


def native_state() -> State:
    torch.manual_seed(0)
    model = hf.Phi4MultimodalForCausalLM(vlms.native_config(saved_config()))
    for values in model.parameters():
        torch.nn.init.normal_(values, std=0.2)
    state = {name: values.detach().clone() for name, values in model.state_dict().items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state


def save_phi4(place: Path, native: State) -> Path:
    theirs, _ = as_theirs(native)
    theirs.pop("lm_head.weight")
    state = {name: v.contiguous() for name, v in theirs.items()}
    safetensors.save_file(state, place / "model.safetensors")
    (place / "config.json").write_text(json.dumps(saved_config()))
    return tiny_models.saved(place, tokenizer(), hf.Phi4MultimodalImageProcessor())


@pytest.fixture(scope="module")
def native() -> State:
    return native_state()


@pytest.fixture(scope="module")
def folder(native: State, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_phi4(tmp_path_factory.mktemp("phi4mm"), native)


def test_the_vision_lora_is_added_and_all_else_is_as_it_was(native: State) -> None:
    theirs, sums = as_theirs(native)
    found = vlms.merged(theirs, ALPHA / RANK)
    assert set(found) == set(sums)
    for name, values in sums.items():
        torch.testing.assert_close(found[name], values, atol=1e-6, rtol=0)
    assert sum(not torch.equal(found[name], native[name]) for name in sums) == 2 * 4
    base = vlms.merged(theirs, 0.0)
    assert all(torch.equal(values, native[name]) for name, values in base.items())


def test_sums_keep_the_precision_of_their_layer_and_half_a_lora_is_refused() -> None:
    half = {
        "a.base_layer.weight": torch.ones(2, 2, dtype=torch.bfloat16),
        "a.lora_A.vision.weight": torch.ones(1, 2, dtype=torch.bfloat16),
    }
    whole = {**half, "a.lora_B.vision.weight": torch.ones(2, 1, dtype=torch.bfloat16)}
    found = vlms.merged(whole, 2.0)["a.weight"]
    assert (found.dtype, found.tolist()) == (torch.bfloat16, [[3.0, 3.0], [3.0, 3.0]])
    with refusal("checkpoint_wrong_class"):
        vlms.merged(half, 1.0)


def test_a_loaded_checkpoint_answers_as_the_merged_weights_do(folder: Path, native: State) -> None:
    reading = Reading(text_format=FORMAT, square="squash", side=448)
    vlm = loading.load_answer_model(tiny_models.row(), tiny_models.here(folder), reading=reading)
    prompts = ["Is it red?", "Does it show two dogs?"]
    answers = [Candidate("Yes"), Candidate("No")]
    seen = vlm.prepare(tiny_models.picture(1, 90, 60))
    found = vlm.answer_logprobs([seen], [prompts], [[answers, answers]])[0]
    model = hf.Phi4MultimodalForCausalLM(vlms.native_config(saved_config())).eval()
    model.load_state_dict(as_theirs(native)[1], strict=False)
    assert vlm.environment["shared_by_prompts"] == PREFIX
    for prompt, values in zip(prompts, found, strict=True):
        asked = vlm._text.inputs_of(seen, prompt)
        ids = [vlm._text.answers([one])[0][0] for one in answers]
        with torch.no_grad():
            logits = model(input_ids=asked.ids[None], **asked.pixels).logits[0, -1]
        assert_allclose(np.concatenate(values), torch.log_softmax(logits, -1)[ids], atol=1e-4)


def test_a_checkpoint_without_lora_settings_is_refused(tmp_path: Path) -> None:
    config = saved_config()
    config.pop("vision_lora")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(SubmitterError, match="vision_lora"):
        loading.load_answer_model(tiny_models.row(), tiny_models.here(tmp_path))
