"""A decoder that reads images gives the answers' probabilities that plain calls of it give."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.models.vlm_reading import Reading
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_qwen import qwen2_vl
from tests.evaluator.scorers.tiny_vlm import (
    MAKERS,
    independent_logprobs,
    paligemma,
    picture,
    row_of,
    saved,
)

if TYPE_CHECKING:
    from evaluator.scorers.models.chat_vlm import ChatVLM

PROMPTS = ["Is it red?", "Does this figure show a small dog beside two trees?", "Is it red? Yes?"]
ANSWERS = [Candidate("Yes"), Candidate("No", with_end=True), Candidate("a b")]
Tiny = tuple[Any, Any]


@pytest.fixture(scope="module", params=MAKERS)
def tiny(request: pytest.FixtureRequest) -> Tiny:
    return MAKERS[request.param]()


@pytest.fixture(scope="module", params=["qwen3_vl", "gemma3"])
def some(request: pytest.FixtureRequest) -> Tiny:
    return MAKERS[request.param]()


@pytest.fixture(scope="module")
def qwen() -> Tiny:
    return qwen2_vl()


def vlm_of(tiny: Tiny, reading: Reading | None = None, **more: Any) -> ChatVLM:
    from evaluator.scorers.models.chat_text import ChatText
    from evaluator.scorers.models.chat_vlm import ChatVLM

    model, processor = tiny
    return ChatVLM(model, ChatText(processor, reading or Reading()), {}, **more)


def read(vlm: ChatVLM, images: list[Image.Image], prompts: list[list[str]]) -> list[np.ndarray]:
    candidates = [[ANSWERS for _ in its] for its in prompts]
    found = vlm.answer_logprobs([vlm.prepare(one) for one in images], prompts, candidates)
    return [np.concatenate(of_prompt) for of_image in found for of_prompt in of_image]


def test_shared_prefix_gives_what_independent_calls_give(tiny: Tiny) -> None:
    vlm = vlm_of(tiny)
    images = [picture(1, 90, 60), picture(2, 56, 112)]

    found = read(vlm, images, [PROMPTS, PROMPTS])

    wanted = [
        np.concatenate(
            [
                independent_logprobs(*tiny, image, prompt, vlm_answer(tiny, answer)).numpy()
                for answer in ANSWERS
            ]
        )
        for image in images
        for prompt in PROMPTS
    ]
    for ours, plain in zip(found, wanted, strict=True):
        assert_allclose(np.exp(ours), np.exp(plain), atol=1e-5, rtol=0)
        assert_allclose(ours, plain, atol=1e-4, rtol=0)


def vlm_answer(tiny: Tiny, answer: Candidate) -> list[int]:
    from evaluator.scorers.models.chat_text import answer_ids

    return answer_ids(tiny[1].tokenizer, answer.text, answer.with_end)


def test_prompts_do_not_see_each_other_nor_their_order(some: Tiny) -> None:
    vlm = vlm_of(some)
    image = picture(1)

    forwards = read(vlm, [image], [PROMPTS])
    backwards = read(vlm, [image], [PROMPTS[::-1]])
    alone = [read(vlm, [image], [[prompt]])[0] for prompt in PROMPTS]

    for a, b, c in zip(forwards, backwards[::-1], alone, strict=True):
        assert_allclose(a, b, atol=2e-6)
        assert_allclose(a, c, atol=2e-6)


def test_images_batched_with_left_padding_score_as_alone(tiny: Tiny) -> None:
    together, alone = vlm_of(tiny, images_together=4), vlm_of(tiny)
    images = [picture(1, 90, 60), picture(2, 56, 56), picture(3, 112, 56)]
    prompts = [PROMPTS, PROMPTS[:1], PROMPTS[1:]]

    batched = read(together, images, prompts)

    singles = [values for i in range(3) for values in read(alone, [images[i]], [prompts[i]])]
    for a, b in zip(batched, singles, strict=True):
        assert_allclose(a, b, atol=2e-6)


def test_sharing_only_the_vision_tower_or_nothing_changes_nothing(some: Tiny) -> None:
    images = [picture(1), picture(2, 90, 60)]
    prefix, vision, nothing = (
        read(vlm_of(some, sharing=kind), images, [PROMPTS, PROMPTS])
        for kind in ("prefix", "vision", "nothing")
    )

    for a, b, c in zip(prefix, vision, nothing, strict=True):
        assert_allclose(a, b, atol=2e-6)
        assert_allclose(a, c, atol=2e-6)


def test_greedy_answers_are_those_of_the_library(some: Tiny) -> None:
    model, processor = some
    vlm = vlm_of(some)
    image = picture(1, 90, 60)

    found = vlm.generate([vlm.prepare(image)], [PROMPTS], 6)[0]

    for prompt, words in zip(PROMPTS, found, strict=True):
        content = [{"type": "image", "image": image}, {"type": "text", "text": prompt}]
        inputs = processor.apply_chat_template(
            [{"role": "user", "content": content}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )
        ids = model.generate(**inputs, max_new_tokens=6, do_sample=False)
        new = ids[0, inputs["input_ids"].shape[1] :]
        assert words == processor.tokenizer.decode(new, skip_special_tokens=True).strip()


def test_greedy_answers_do_not_depend_on_the_batch(some: Tiny) -> None:
    vlm, batched = vlm_of(some), vlm_of(some, images_together=2)
    images = [picture(1, 90, 60), picture(2)]

    together = batched.generate([batched.prepare(one) for one in images], [PROMPTS, PROMPTS], 5)

    for image, words in zip(images, together, strict=True):
        seen = vlm.prepare(image)
        assert words == [vlm.generate([seen], [[prompt]], 5)[0][0] for prompt in PROMPTS]


def test_repetition_penalty_does_not_move_probabilities(qwen: Tiny) -> None:
    model, _ = qwen
    before = read(vlm_of(qwen), [picture(1)], [PROMPTS])
    model.generation_config.repetition_penalty = 5.0
    after = read(vlm_of(qwen), [picture(1)], [PROMPTS])
    model.generation_config.repetition_penalty = 1.0

    for a, b in zip(before, after, strict=True):
        assert_allclose(a, b, atol=2e-6)


def test_last_logits_alone_equal_those_of_the_whole_sequence(qwen: Tiny) -> None:
    import torch

    from evaluator.scorers.models.chat_text import ChatText

    model, processor = qwen
    asked = ChatText(processor, Reading())
    one = asked.asked(asked.prepare(picture(1)), PROMPTS[0])
    inputs = {"input_ids": one.ids[None], **one.per_token, **one.pixels}
    with torch.no_grad():
        whole = model(**inputs).logits[0, -1]
        last = model(**inputs, logits_to_keep=1).logits[0, -1]

    assert_allclose(last.numpy(), whole.numpy(), atol=1e-6)


def test_the_image_is_read(some: Tiny) -> None:
    first, second = read(vlm_of(some), [picture(1), picture(2)], [PROMPTS[:1], PROMPTS[:1]])

    assert np.abs(first - second).max() > 1e-4


def test_loader_tries_sharing_and_says_so(tmp_path: Path, qwen: Tiny) -> None:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    folder = saved(*qwen, tmp_path)
    model = load_answer_model(row_of(), Runtime(folders={"model": folder}))

    assert model.environment["shared_by_prompts"] == "image and text before it"
    assert model.environment["dtype"] == "float32"
    assert model.environment["image_processor"].endswith("Pil")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_looks_ahead_shares_its_vision_tower_only(dtype: Any) -> None:
    import torch

    from evaluator.scorers.models.chat_loading import chat_vlm
    from evaluator.scorers.models.chat_text import ChatText
    from evaluator.scorers.models.vlm_setting import Setting

    model: Any
    model, processor = paligemma()
    source = Source(Path("made up"), "made up", "")
    setting = Setting(source, "paligemma", Runtime(), dtype, Reading(text_format="{image}{prompt}"))
    image = picture(1)

    vlm = chat_vlm(model.to(setting.torch_dtype), processor, setting)

    assert vlm.environment["shared_by_prompts"].startswith("vision tower (prompts change")
    text = ChatText(processor, setting.reading)
    found = vlm.answer_logprobs([vlm.prepare(image)], [PROMPTS], [[[Candidate("Yes")]] * 3])[0]
    for prompt, (values,) in zip(PROMPTS, found, strict=True):
        one = text.asked(text.prepare(image), prompt)
        pixels = {name: v.to(setting.torch_dtype) for name, v in one.pixels.items()}
        with torch.no_grad():
            logits = model(input_ids=one.ids[None], **one.per_token, **pixels).logits[0, -1]
        wanted = torch.log_softmax(logits.float(), dim=-1)[text.answer(Candidate("Yes"))[0]]
        assert_allclose(values[0], wanted, atol=1e-5 if dtype == "float32" else 0.05)


def test_prompts_beyond_the_context_are_named(qwen: Tiny) -> None:
    vlm = vlm_of(qwen)
    vlm.prepare(picture(1))

    assert vlm.truncated(["short", "long " * 120]) == [False, True]


def test_images_may_be_prepared_by_several_threads(qwen: Tiny) -> None:
    vlm = vlm_of(qwen)
    made: dict[int, Any] = {}

    def prepare(i: int) -> None:
        made[i] = vlm.prepare(picture(i, 90, 60))

    threads = [threading.Thread(target=prepare, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    candidates = [[[Candidate("Yes")]]] * 4
    found = vlm.answer_logprobs([made[i] for i in range(4)], [["Red?"]] * 4, candidates)
    for i in range(4):
        seen = vlm.prepare(picture(i, 90, 60))
        alone = vlm.answer_logprobs([seen], [["Red?"]], [[[Candidate("Yes")]]])
        assert_allclose(found[i][0][0], alone[0][0][0], atol=2e-6)


def test_control_tokens_in_a_prompt_are_read_as_text(qwen: Tiny) -> None:
    found = read(vlm_of(qwen), [picture(1)], [["<|image_pad|> or <|im_end|>?", "Is it red?"]])

    assert all(np.isfinite(values).all() for values in found)


def test_answers_that_begin_alike_are_read_in_one_pass() -> None:
    from evaluator.scorers.models.chat_vlm import stems

    assert stems([[5], [5, 6], [5, 6, 7], [8, 9]]) == [(5, 6), (8,)]
    assert stems([[5], [6]]) == [()]


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    from evaluator.scorers.models.vlm_loading import load_answer_model

    with pytest.raises(SubmitterError) as failure:
        load_answer_model(row_of(), Runtime(folders={"model": tmp_path}))
    assert failure.value.code == "checkpoint_wrong_class"
