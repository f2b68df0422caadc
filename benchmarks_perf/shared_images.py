"""Several texts of one image: the image's part of the work done once, against a call a pair.

Small random models in float32, of the shape that real ones have. Both sides get the same pixels
and texts. Images are made ready outside the clock.
"""

from __future__ import annotations

import copy
import string
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    BertTokenizer,
    Blip2Config,
    Blip2ForImageTextRetrieval,
    BlipImageProcessorPil,
    PreTrainedModel,
    Qwen2Tokenizer,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
)

from benchmarks_perf.measuring import Figure, interleaved
from evaluator.scorers.answering import Candidate, Reading
from evaluator.scorers.families.cross_encoder import MatchScorer
from evaluator.scorers.models.blip import Blip2Matcher
from evaluator.scorers.models.chat import ChatVLM
from evaluator.scorers.models.vlm_inputs import ChatText

_SIDE = 224
_QUESTIONS = (
    'Does this figure show "a red ball"? Please answer Yes or No.',
    'Does this figure show "two dogs and"? Please answer Yes or No.',
    'Does this figure show "a tall tree"? Please answer Yes or No.',
    'Does this figure show "some houses"? Please answer Yes or No.',
)
_YES = Candidate("Yes")


_SPECIALS = (
    "<|endoftext|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<image>",
)
_WORDS = (
    "Yes",
    "Does this figure show",
    "Please answer Yes or No.",
    "a red ball",
    "two dogs and",
    "a tall tree",
    "some houses",
    "USER",
    "ASSISTANT",
)
"""Words of the texts, so that they have about as many tokens as with a real tokenizer."""
_TEMPLATE = (
    "{{% for m in messages %}}USER: {{% for c in m['content'] %}}"
    "{{% if c['type'] == 'image' %}}{image}\n{{% else %}}{{{{ c['text'] }}}}{{% endif %}}"
    "{{% endfor %}} ASSISTANT:{{% endfor %}}"
)


def itm_sharing(rounds: int = 3, images: int = 4) -> Iterator[Figure]:
    """A BLIP-2 whose vision tower takes about nine tenths of the time with two texts an image."""
    torch.set_num_threads(1)
    tokenizer = _letters()
    plain = _random_blip2(_small_blip2(len(tokenizer)))
    processor = BlipImageProcessorPil(size={"height": _SIDE, "width": _SIDE})
    scorer = MatchScorer(Blip2Matcher(copy.deepcopy(plain), tokenizer, processor, 35, 64))
    drawn = np.random.default_rng(0).integers(0, 256, (images, 64, 64, 3), dtype=np.uint8)
    pixels = [scorer.prepare(Image.fromarray(noise)) for noise in drawn]

    def apart(texts: list[str]) -> list[float]:
        """The library's forward pass of every pair on its own."""
        found = []
        with torch.inference_mode():
            for image in pixels:
                for text in texts:
                    inputs = tokenizer([text], return_tensors="pt", return_token_type_ids=False)
                    out = plain(
                        pixel_values=image[None], **inputs, use_image_text_matching_head=True
                    )
                    found.append(float(out.logits_per_image.double().softmax(dim=1)[0, 1]))
        return found

    def shared(texts: list[str]) -> list[float]:
        """Each image with all its texts."""
        return [
            one for image in pixels for of in scorer.score_texts([image], [texts]) for one in of
        ]

    for count, at_least in ((2, 1.6), (10, 4.5)):
        texts = _prompts(count)
        difference = float(np.abs(np.subtract(apart(texts), shared(texts))).max())
        yield Figure(f"{count} texts, probabilities apart", difference, at_most=1e-6)
        sides = {"apart": lambda t=texts: apart(t), "shared": lambda t=texts: shared(t)}
        times = interleaved(sides, rounds)
        yield times.compared(f"{count} texts", "apart", "shared", at_least=at_least)


def vlm_prefix(rounds: int = 3) -> Iterator[Figure]:
    """A model of Qwen2-VL's shape with 256 image tokens, asked two and four questions.

    The plain side takes the last logits of the whole sequence, once for each text. Probabilities
    of Yes must agree also as a part of themselves, for random models give Yes little.
    """
    torch.set_num_threads(1)
    made = _qwen2_vl_like()
    for count, at_least in ((2, 1.5), (4, 2.4)):
        sides = _VlmSides(*made, _QUESTIONS[:count])
        shared, apart = sides.shared(), sides.apart()
        difference = max(np.abs(shared - apart).max(), np.abs(shared / apart - 1).max())
        yield Figure(f"{count} texts, P(Yes) apart", float(difference), at_most=1e-5)
        times = interleaved({"apart": sides.apart, "shared": sides.shared}, rounds)
        yield times.compared(f"{count} texts", "apart", "shared", at_least=at_least)


class _VlmSides:
    """Both ways to score texts of one image."""

    def __init__(self, model: PreTrainedModel, processor: Any, texts: tuple[str, ...]) -> None:
        self._model: Any = model
        self._texts = texts
        text = ChatText(processor, Reading())
        self._vlm = ChatVLM(model, text, {})
        noise = np.random.default_rng(0).integers(0, 256, (448, 448, 3), dtype=np.uint8)
        self._seen = self._vlm.prepare(Image.fromarray(noise))
        self._inputs = [text.inputs_of(self._seen, one) for one in texts]
        self._yes = text.answers([_YES])[0][0]

    def shared(self) -> np.ndarray:
        """P(Yes) of each text, the image's prefix run once."""
        asked = [[[_YES]] * len(self._texts)]
        found = self._vlm.answer_logprobs([self._seen], [self._texts], asked)
        return np.exp([one[0][0] for one in found[0]])

    def apart(self) -> np.ndarray:
        """P(Yes) of each text, by a call of the library's model for each."""
        return np.array([self._alone(one) for one in self._inputs])

    def _alone(self, one: Any) -> float:
        if hasattr(self._model.model, "rope_deltas"):
            self._model.model.rope_deltas = None
        with torch.inference_mode():
            inputs = {**one.per_token, **one.pixels}
            logits = self._model(input_ids=one.ids[None], **inputs, logits_to_keep=1).logits
        return float(torch.softmax(logits[0, -1].float(), dim=-1)[self._yes])


def _small_blip2(n_words: int) -> Blip2Config:
    """A tower that takes most of the time, and 32 query tokens."""
    return Blip2Config(
        vision_config={
            "hidden_size": 384,
            "intermediate_size": 1536,
            "num_hidden_layers": 6,
            "num_attention_heads": 6,
            "image_size": _SIDE,
            "patch_size": 14,
        },
        qformer_config={
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "vocab_size": n_words + 1,
            "use_qformer_text_input": True,
        },
    )


def _random_blip2(config: Blip2Config) -> Any:
    """Weights large enough for an image to matter; the library's own draw is close to 0."""
    torch.manual_seed(0)
    model: Any = Blip2ForImageTextRetrieval(config)
    with torch.no_grad():
        for value in model.parameters():
            if value.ndim > 1:
                value.normal_(0, value.shape[-1] ** -0.5)
    return model.eval()


def _letters() -> BertTokenizer:
    """A tokenizer of single letters."""
    pieces = string.ascii_lowercase
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *(f"##{p}" for p in pieces)]
    return BertTokenizer(vocab={word: place for place, word in enumerate(words)})


def _prompts(count: int) -> list[str]:
    """About 20 tokens each."""
    drawn = np.random.default_rng(1)
    return [" ".join(drawn.choice(list(string.ascii_lowercase), 18)) for _ in range(count)]


def _tokenizer() -> Qwen2Tokenizer:
    """Bytes, and the words above by the pieces that they are joined from."""
    vocab = {letter: i for i, letter in enumerate(sorted(ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in sorted({word for phrase in _WORDS for word in phrase.split()}):
        for letters in (list(word), ["Ġ", *word]):
            for end in range(2, len(letters) + 1):
                pair = ("".join(letters[: end - 1]), letters[end - 1])
                if pair not in merges:
                    merges.append(pair)
                    vocab.setdefault("".join(pair), len(vocab))
    kind: Any = Qwen2Tokenizer
    made: Qwen2Tokenizer = kind(vocab=vocab, merges=merges)
    made.add_special_tokens({"additional_special_tokens": list(_SPECIALS)})
    made.pad_token = "<|endoftext|>"
    return made


def _qwen2_vl_like(width: int = 256, layers: int = 6) -> tuple[PreTrainedModel, Any]:
    """Of 448 x 448 pixels it makes 256 image tokens."""
    text = _tokenizer()
    ids: Any = text.convert_tokens_to_ids
    rope = {"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 1e4}
    vision = {"depth": 4, "embed_dim": 128, "hidden_size": width, "num_heads": 4, "mlp_ratio": 4}
    vision |= {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
    made: Any = Qwen2VLConfig
    config = made(
        text_config={**_text(width, layers, len(text)), "rope_parameters": rope},
        vision_config=vision,
        image_token_id=ids("<|image_pad|>"),
        video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"),
        vision_end_token_id=ids("<|vision_end|>"),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=448 * 448)
    template = _TEMPLATE.format(image="<|vision_start|><|image_pad|><|vision_end|>")
    processor = Qwen2VLProcessor(images, text, Qwen2VLVideoProcessor(), chat_template=template)
    return _random(Qwen2VLForConditionalGeneration, config), processor


def _text(width: int, layers: int, vocabulary: int) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "num_attention_heads": width // 64,
        "num_key_value_heads": width // 128,
        "num_hidden_layers": layers,
        "intermediate_size": 4 * width,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
        "initializer_range": 0.05,
    }


def _random(kind: Any, config: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    model: PreTrainedModel = kind(config).eval()
    return model
