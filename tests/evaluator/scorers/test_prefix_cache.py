"""What a decoder did for an image is shared by prompts, and never changed by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from numpy.testing import assert_allclose

from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.vlm_reading import Reading
from tests.evaluator.scorers.tiny_qwen import qwen2_vl
from tests.evaluator.scorers.tiny_vlm import picture

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_hidden_layers=2,
        intermediate_size=37,
        vocab_size=50,
        initializer_range=0.2,
    )
    model: LlamaForCausalLM = LlamaForCausalLM(config).eval()
    return model


def ids(*values: int) -> torch.Tensor:
    import torch

    return torch.tensor(values)


def plain(model: Any, tokens: torch.Tensor, keep: int) -> torch.Tensor:
    import torch

    with torch.no_grad():
        logits: torch.Tensor = model(input_ids=tokens[None]).logits[0, -keep:]
    return logits


def test_parts_together_equal_the_whole(llama: LlamaForCausalLM) -> None:
    import torch

    from evaluator.scorers.models.prefix_cache import CachingDecoder
    from evaluator.scorers.models.prefix_parts import Beginning, Rest

    decoder = CachingDecoder(llama, 0)
    starts = [ids(3, 4, 5, 6), ids(7, 8)]
    rests = [Rest(0, ids(9), None, 1), Rest(0, ids(10, 11, 12), None, 2), Rest(1, ids(9), None, 1)]

    cached = decoder.start([Beginning(one) for one in starts])
    found = decoder.go_on(cached, rests)

    for i, one in enumerate(starts):
        assert_allclose(cached.logits[i : i + 1], plain(llama, one, 1), atol=5e-6)
    for rest, logits in zip(rests, found, strict=True):
        whole = torch.cat([starts[rest.beginning], rest.ids])
        assert_allclose(logits, plain(llama, whole, rest.keep), atol=5e-6)


def test_a_cache_is_as_it_was_after_it_was_read(llama: LlamaForCausalLM) -> None:
    import torch

    from evaluator.scorers.models.prefix_cache import CachingDecoder
    from evaluator.scorers.models.prefix_parts import Beginning, Rest

    decoder = CachingDecoder(llama, 0)
    cached = decoder.start([Beginning(ids(3, 4, 5))])
    layers: Any = cached.cache.layers
    before = [layer.keys.clone() for layer in layers]
    rest = Rest(0, ids(9, 10), None, 1)

    first = decoder.go_on(cached, [rest])[0]
    decoder.write(cached, [rest], set(), 5)
    again = decoder.go_on(cached, [rest])[0]

    assert torch.equal(first, again)
    for layer, keys in zip(layers, before, strict=True):
        assert torch.equal(layer.keys, keys)


def test_greedy_tokens_do_not_depend_on_what_is_beside_them(llama: LlamaForCausalLM) -> None:
    from evaluator.scorers.models.prefix_cache import CachingDecoder
    from evaluator.scorers.models.prefix_parts import Beginning, Rest

    decoder = CachingDecoder(llama, 0)
    cached = decoder.start([Beginning(ids(3, 4, 5, 6)), Beginning(ids(7, 8))])
    rests = [Rest(0, ids(9), None, 1), Rest(1, ids(10, 11, 12), None, 1)]

    together = decoder.write(cached, rests, set(), 6)

    assert together == [decoder.write(cached, [rest], set(), 6)[0] for rest in rests]


def test_writing_stops_before_an_end_token(llama: LlamaForCausalLM) -> None:
    from evaluator.scorers.models.prefix_cache import CachingDecoder
    from evaluator.scorers.models.prefix_parts import Beginning, Rest

    decoder = CachingDecoder(llama, 0)
    cached = decoder.start([Beginning(ids(3, 4, 5))])
    rest = Rest(0, ids(9), None, 1)
    free = decoder.write(cached, [rest], set(), 6)[0]

    assert decoder.write(cached, [rest], {free[2]}, 6)[0] == free[: free.index(free[2])]


def test_layers_of_unknown_kinds_are_copied_whole() -> None:
    import torch
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicSlidingWindowLayer

    from evaluator.scorers.models.prefix_parts import copied

    class Writing(DynamicSlidingWindowLayer):
        pass

    cache = DynamicCache()
    layer: Any = Writing(sliding_window=8)
    cache.layers = [layer]
    values = torch.ones(1, 1, 3, 2)
    layer.update(values, values)

    other: Any = copied(cache, [0, 0]).layers[0]
    other.keys.zero_()

    assert other.keys.shape[0] == 2
    assert torch.equal(layer.keys, values)


def test_shared_length_leaves_every_sequence_a_token() -> None:
    from evaluator.scorers.models.prefix_parts import shared_length

    assert shared_length([ids(1, 2, 3), ids(1, 2, 4, 5)]) == 2
    assert shared_length([ids(1, 2), ids(1, 2, 3)]) == 1
    assert shared_length([ids(1, 2), ids(1, 2)]) == 1
    assert shared_length([ids(1, 2), ids(3, 2)]) == 0


def test_an_image_goes_through_tower_and_decoder_once() -> None:
    from evaluator.scorers.models.chat_text import ChatText
    from evaluator.scorers.models.chat_vlm import ChatVLM

    model, processor = qwen2_vl()
    vlm = ChatVLM(model, ChatText(processor, Reading()), {})
    images = [vlm.prepare(picture(i)) for i in (1, 2)]
    inner: Any = model.model
    tower: list[int] = []
    tokens: list[int] = []
    inner.visual.register_forward_hook(lambda *_: tower.append(1))
    inner.language_model.register_forward_pre_hook(
        lambda _, args, kwargs: tokens.append(kwargs["inputs_embeds"].shape[1]), with_kwargs=True
    )
    prompts = ["a red ball?", "a dog?", "two cats?"]

    vlm.answer_logprobs(images, [prompts] * 2, [[[Candidate("Yes")]] * 3] * 2)

    assert len(tower) == 2
    assert len(tokens) == 2 * 2


def test_offsets_of_an_earlier_image_are_forgotten() -> None:
    import torch

    from evaluator.scorers.models.chat_text import ChatText
    from evaluator.scorers.models.chat_vlm import ChatVLM

    model, processor = qwen2_vl()
    vlm = ChatVLM(model, ChatText(processor, Reading()), {})
    square, wide = vlm.prepare(picture(1)), vlm.prepare(picture(2, 112, 56))
    yes = [[[Candidate("Yes")]] * 2]

    first = vlm.answer_logprobs([square], [["a?", "b c?"]], yes)
    vlm.answer_logprobs([wide], [["a?", "b c?"]], yes)
    model_state: Any = model.model
    model_state.rope_deltas = torch.tensor([[123]])
    again = vlm.answer_logprobs([square], [["a?", "b c?"]], yes)

    for a, b in zip(first[0], again[0], strict=True):
        assert_allclose(a[0], b[0], atol=2e-6)
