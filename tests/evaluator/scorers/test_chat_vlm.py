"""A decoder that reads images gives the answers' probabilities that plain calls of it give.

What it did for an image is shared by prompts, and never changed by them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from evaluator.scorers.answering import Candidate
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.models.vlm_reading import CLIP_MEAN_COLOUR, Reading, padded_square
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.common import hf, later, refusal, torch
from tests.evaluator.scorers.tiny_dual import SMALL, here, picture, row, saved
from tests.evaluator.scorers.tiny_qwen import Tiny, qwen2_vl, qwen_tokenizer
from tests.evaluator.scorers.tiny_vlm import (
    MAKERS,
    chat_inputs,
    independent_logprobs,
    llava,
    paligemma,
)

texts = later("evaluator.scorers.models.chat_text")
vlms = later("evaluator.scorers.models.chat_vlm")
loading = later("evaluator.scorers.models.vlm_loading")
cache = later("evaluator.scorers.models.prefix_cache")
parts = later("evaluator.scorers.models.prefix_parts")

PROMPTS = ["Is it red?", "Does this figure show a small dog beside two trees?", "Is it red? Yes?"]
ANSWERS = [Candidate("Yes"), Candidate("No", with_end=True), Candidate("a b")]
YES = [Candidate("Yes")]
PREFIX = "image and text before it"


@pytest.fixture(scope="module", params=MAKERS)
def tiny(request: pytest.FixtureRequest) -> Tiny:
    return MAKERS[request.param]()


@pytest.fixture(scope="module", params=["qwen3_vl", "gemma3"])
def some(request: pytest.FixtureRequest) -> Tiny:
    return MAKERS[request.param]()


@pytest.fixture(scope="module")
def qwen() -> Tiny:
    return qwen2_vl()


def vlm_of(tiny: Tiny, **more: Any) -> Any:
    return vlms.ChatVLM(tiny[0], texts.ChatText(tiny[1], Reading()), {}, **more)


def read(vlm: Any, images: list[Image.Image], prompts: list[list[str]]) -> list[Any]:
    candidates = [[ANSWERS for _ in its] for its in prompts]
    found = vlm.answer_logprobs([vlm.prepare(one) for one in images], prompts, candidates)
    return [np.concatenate(of_prompt) for of_image in found for of_prompt in of_image]


def same(first: list[Any], second: list[Any]) -> None:
    for a, b in zip(first, second, strict=True):
        assert_allclose(a, b, atol=2e-6)


def test_shared_prefix_gives_what_independent_calls_give(tiny: Tiny) -> None:
    images = [picture(1, 90, 60), picture(2, 56, 112)]
    found = read(vlm_of(tiny), images, [PROMPTS, PROMPTS])
    ids = [texts.answer_ids(tiny[1].tokenizer, one.text, one.with_end) for one in ANSWERS]
    for ours, (image, prompt) in zip(
        found, [(image, prompt) for image in images for prompt in PROMPTS], strict=True
    ):
        plain = np.concatenate([independent_logprobs(tiny, image, prompt, i) for i in ids])
        assert_allclose(np.exp(ours), np.exp(plain), atol=1e-5, rtol=0)
        assert_allclose(ours, plain, atol=1e-4, rtol=0)


def test_images_batched_with_left_padding_score_as_alone(tiny: Tiny) -> None:
    images = [picture(1, 90, 60), picture(2, 56, 56), picture(3, 112, 56)]
    prompts = [PROMPTS, PROMPTS[:1], PROMPTS[1:]]
    batched = read(vlm_of(tiny, images_together=4), images, prompts)
    alone = vlm_of(tiny)
    same(batched, [v for i in range(3) for v in read(alone, [images[i]], [prompts[i]])])


def test_prompts_do_not_see_each_other_nor_their_order(some: Tiny) -> None:
    vlm, image = vlm_of(some), picture(1)
    forwards = read(vlm, [image], [PROMPTS])
    same(forwards, read(vlm, [image], [PROMPTS[::-1]])[::-1])
    same(forwards, [read(vlm, [image], [[prompt]])[0] for prompt in PROMPTS])
    other = read(vlm, [picture(2)], [PROMPTS])
    assert min(np.abs(a - b).max() for a, b in zip(forwards, other, strict=True)) > 1e-4


def test_sharing_only_the_vision_tower_or_nothing_changes_nothing(some: Tiny) -> None:
    images = [picture(1), picture(2, 90, 60)]
    prefix, vision, nothing = (
        read(vlm_of(some, sharing=kind), images, [PROMPTS, PROMPTS])
        for kind in ("prefix", "vision", "nothing")
    )
    same(prefix, vision)
    same(prefix, nothing)


def test_greedy_answers_are_those_of_the_library_in_any_batch(some: Tiny) -> None:
    model, processor = some
    images = [picture(1, 90, 60), picture(2)]
    for together in (1, 2):
        vlm = vlm_of(some, images_together=together)
        found = vlm.generate([vlm.prepare(one) for one in images], [PROMPTS, PROMPTS], 5)
        for image, words in zip(images, found, strict=True):
            for prompt, word in zip(PROMPTS, words, strict=True):
                inputs = chat_inputs(processor, image, prompt)
                ids = model.generate(**inputs, max_new_tokens=5, do_sample=False)
                new = ids[0, inputs["input_ids"].shape[1] :]
                assert word == processor.tokenizer.decode(new, skip_special_tokens=True).strip()


def test_repetition_penalty_does_not_move_probabilities(qwen: Tiny) -> None:
    before = read(vlm_of(qwen), [picture(1)], [PROMPTS])
    qwen[0].generation_config.repetition_penalty = 5.0
    after = read(vlm_of(qwen), [picture(1)], [PROMPTS])
    qwen[0].generation_config.repetition_penalty = 1.0
    same(before, after)


def test_loader_tries_sharing_and_says_so(tmp_path: Path, qwen: Tiny) -> None:
    model = loading.load_answer_model(row(), here(saved(tmp_path, *qwen)))
    assert model.environment["shared_by_prompts"] == PREFIX
    assert model.environment["dtype"] == "float32"
    assert model.environment["image_processor"].endswith("Pil")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_looks_ahead_shares_its_vision_tower_only(dtype: str) -> None:
    model, processor = paligemma()
    source = Source(Path("made up"), "made up", "")
    reading = Reading(text_format="{image}{prompt}")
    setting = later("evaluator.scorers.models.vlm_setting").Setting(
        source, "paligemma", Runtime(), dtype, reading
    )
    image = picture(1)
    vlm = later("evaluator.scorers.models.chat_loading").chat_vlm(
        model.to(setting.torch_dtype), processor, setting
    )
    assert vlm.environment["shared_by_prompts"].startswith("vision tower")
    text = texts.ChatText(processor, reading)
    found = vlm.answer_logprobs([vlm.prepare(image)], [PROMPTS], [[YES] * 3])[0]
    for prompt, (values,) in zip(PROMPTS, found, strict=True):
        one = text.asked(text.prepare(image), prompt)
        pixels = {name: v.to(setting.torch_dtype) for name, v in one.pixels.items()}
        with torch.no_grad():
            logits = model(input_ids=one.ids[None], **one.per_token, **pixels).logits[0, -1]
        wanted = torch.log_softmax(logits.float(), dim=-1)[text.answer(YES[0])[0]]
        assert_allclose(values[0], wanted, atol=1e-5 if dtype == "float32" else 0.05)


def test_prompts_beyond_the_context_are_named(qwen: Tiny) -> None:
    vlm = vlm_of(qwen)
    vlm.prepare(picture(1))
    assert vlm.truncated(["short", "long " * 120]) == [False, True]


def test_images_may_be_prepared_by_several_threads(qwen: Tiny) -> None:
    vlm, images = vlm_of(qwen), [picture(i, 90, 60) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(vlm.prepare, images))
    found = vlm.answer_logprobs(made, [["Red?"]] * 4, [[YES]] * 4)
    for image, ours in zip(images, found, strict=True):
        alone = vlm.answer_logprobs([vlm.prepare(image)], [["Red?"]], [[YES]])
        assert_allclose(ours[0][0], alone[0][0][0], atol=2e-6)


def test_control_tokens_in_a_prompt_are_read_as_text(qwen: Tiny) -> None:
    found = read(vlm_of(qwen), [picture(1)], [["<|image_pad|> or <|im_end|>?", "Is it red?"]])
    assert all(np.isfinite(values).all() for values in found)


def test_answers_that_begin_alike_are_read_in_one_pass() -> None:
    assert vlms.stems([[5], [5, 6], [5, 6, 7], [8, 9]]) == [(5, 6), (8,)]
    assert vlms.stems([[5], [6]]) == [()]


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with refusal("checkpoint_wrong_class"):
        loading.load_answer_model(row(), here(tmp_path))


# Prompts and answers as tokens


def test_a_format_of_the_metric_replaces_the_template() -> None:
    processor = llava()[1]
    text = texts.ChatText(processor, Reading(text_format="Look: {image}\n{prompt} {} Answer:"))
    asked = text.asked(text.prepare(picture(1)), "a {b} c")
    words = processor.tokenizer.decode(asked.ids, skip_special_tokens=True)
    assert words.replace(" ", "") == "Look:\na{b}c{}Answer:"


def test_an_answer_is_its_own_tokens_with_its_space_and_end() -> None:
    tokenizer = qwen_tokenizer()
    assert texts.answer_ids(tokenizer, "Yes", False) != texts.answer_ids(tokenizer, " Yes", False)
    assert texts.answer_ids(tokenizer, "Yes", True)[-1] == tokenizer.eos_token_id
    starting = SimpleNamespace(
        bos_token_id=1, unk_token_id=0, eos_token_id=2, encode=lambda *_, **__: [1, 5]
    )
    with refusal("answer_not_encodable"):
        texts.answer_ids(starting, "Yes", with_end=False)


def test_padding_to_a_square_keeps_the_image_in_the_middle() -> None:
    image = picture(1, 20, 10)
    square = padded_square(image)
    assert (square.size, square.getpixel((0, 0))) == ((20, 20), CLIP_MEAN_COLOUR)
    assert_allclose(np.asarray(square)[5:15], np.asarray(image))


# The cache behind it


@pytest.fixture(scope="module")
def decoder() -> Any:
    torch.manual_seed(0)
    config = hf.LlamaConfig(**SMALL, num_key_value_heads=2, vocab_size=50, initializer_range=0.2)
    return cache.CachingDecoder(hf.LlamaForCausalLM(config).eval(), 0)


def ids(*values: int) -> Any:
    return torch.tensor(values)


def rest(beginning: int, *tokens: int, keep: int = 1) -> Any:
    return parts.Rest(beginning, ids(*tokens), None, keep)


def begun(decoder: Any, *starts: Any) -> Any:
    return decoder.start([parts.Beginning(one) for one in starts])


def test_parts_together_equal_the_whole(decoder: Any) -> None:
    def plain(tokens: Any, keep: int) -> Any:
        with torch.no_grad():
            return decoder._model(input_ids=tokens[None]).logits[0, -keep:]

    starts = [ids(3, 4, 5, 6), ids(7, 8)]
    rests = [rest(0, 9), rest(0, 10, 11, 12, keep=2), rest(1, 9)]
    cached = begun(decoder, *starts)
    found = decoder.go_on(cached, rests)
    for i, one in enumerate(starts):
        assert_allclose(cached.logits[i : i + 1], plain(one, 1), atol=5e-6)
    for one, logits in zip(rests, found, strict=True):
        whole = torch.cat([starts[one.beginning], one.ids])
        assert_allclose(logits, plain(whole, one.keep), atol=5e-6)


def test_a_cache_is_as_it_was_after_it_was_read(decoder: Any) -> None:
    cached = begun(decoder, ids(3, 4, 5))
    before = [layer.keys.clone() for layer in cached.cache.layers]
    first = decoder.go_on(cached, [rest(0, 9, 10)])[0]
    decoder.write(cached, [rest(0, 9, 10)], set(), 5)
    assert torch.equal(first, decoder.go_on(cached, [rest(0, 9, 10)])[0])
    for layer, keys in zip(cached.cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys)


def test_greedy_tokens_stop_before_an_end_whatever_is_beside_them(decoder: Any) -> None:
    cached = begun(decoder, ids(3, 4, 5, 6), ids(7, 8))
    rests = [rest(0, 9), rest(1, 10, 11, 12)]
    together = decoder.write(cached, rests, set(), 6)
    assert together == [decoder.write(cached, [one], set(), 6)[0] for one in rests]
    free = together[0]
    assert decoder.write(cached, rests[:1], {free[2]}, 6)[0] == free[: free.index(free[2])]


def test_layers_of_unknown_kinds_are_copied_whole() -> None:
    sliding = later("transformers.cache_utils").DynamicSlidingWindowLayer
    layer = type("Writing", (sliding,), {})(sliding_window=8)
    whole = hf.DynamicCache()
    whole.layers = [layer]
    values = torch.ones(1, 1, 3, 2)
    layer.update(values, values)
    other = parts.copied(whole, [0, 0]).layers[0]
    other.keys.zero_()
    assert other.keys.shape[0] == 2
    assert torch.equal(layer.keys, values)


def test_shared_length_leaves_every_sequence_a_token() -> None:
    for first, second, shared in (
        ((1, 2, 3), (1, 2, 4, 5), 2), ((1, 2), (1, 2, 3), 1), ((1, 2), (1, 2), 1),
        ((1, 2), (3, 2), 0),
    ):  # fmt: skip
        assert parts.shared_length([ids(*first), ids(*second)]) == shared


def test_an_image_goes_through_tower_and_decoder_once(qwen: Tiny) -> None:
    vlm, inner = vlm_of(qwen), qwen[0].model
    images = [vlm.prepare(picture(i)) for i in (1, 2)]
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


def test_offsets_of_an_earlier_image_are_forgotten(qwen: Tiny) -> None:
    vlm, asked = vlm_of(qwen), [["a?", "b c?"]]
    square = [picture(1)]
    first = read(vlm, square, asked)
    read(vlm, [picture(2, 112, 56)], asked)
    qwen[0].model.rope_deltas = torch.tensor([[123]])
    same(first, read(vlm, square, asked))
