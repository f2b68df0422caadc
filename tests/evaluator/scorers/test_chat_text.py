"""Prompts and answers become the tokens that the checkpoint's own processor makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.errors import SubmitterError
from evaluator.scorers.models.vlm_reading import CLIP_MEAN_COLOUR, Reading, padded_square
from tests.evaluator.scorers.tiny_qwen import qwen_tokenizer
from tests.evaluator.scorers.tiny_vlm import llava, picture


def test_a_format_of_the_metric_replaces_the_template() -> None:
    from evaluator.scorers.models.chat_text import ChatText

    tiny = llava()
    reading = Reading(text_format="Look: {image}\n{prompt} {} Answer:")
    text = ChatText(tiny[1], reading)
    asked = text.asked(text.prepare(picture(1)), "a {b} c")

    words = tiny[1].tokenizer.decode(asked.ids, skip_special_tokens=True)
    assert words.replace(" ", "") == "Look:\na{b}c{}Answer:".replace(" ", "")


def test_answer_with_a_space_before_it_is_another_token() -> None:
    from evaluator.scorers.models.chat_text import answer_ids

    tokenizer = qwen_tokenizer()

    assert answer_ids(tokenizer, "Yes", with_end=False) != answer_ids(tokenizer, " Yes", False)
    assert answer_ids(tokenizer, "Yes", with_end=True)[-1] == tokenizer.eos_token_id


def test_an_answer_that_starts_with_the_start_token_is_refused() -> None:
    from evaluator.scorers.models.chat_text import answer_ids

    class Starting:
        bos_token_id, unk_token_id, eos_token_id = 1, 0, 2

        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            return [1, 5]

    with pytest.raises(SubmitterError) as failure:
        answer_ids(Starting(), "Yes", with_end=False)
    assert failure.value.code == "answer_not_encodable"


def test_padding_to_a_square_keeps_the_image_in_the_middle() -> None:
    image = picture(1, 20, 10)
    square = padded_square(image)

    assert square.size == (20, 20)
    assert square.getpixel((0, 0)) == CLIP_MEAN_COLOUR
    assert_allclose(np.asarray(square)[5:15], np.asarray(image))
