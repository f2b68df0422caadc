"""HPSv3: a head on a vision-language model's state at a token that asks for the rating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from transformers import AutoConfig, AutoImageProcessor, Qwen2VLConfig, Qwen2VLModel
from transformers.initialization import no_init_weights

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Reading, SharedImageScorer
from evaluator.scorers.checkpoints import Source, check_class, resolve
from evaluator.scorers.loading import dtype_of, environment, fill, read_weights
from evaluator.scorers.models.blip import Renaming, authors_file, weight
from evaluator.scorers.models.vlm_inputs import ChatText, ImagePrompt, SeenImage, Setting
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow

RENAMING = Renaming(
    rules=(
        (r"(?:model\.)?visual\.(.+)", r"body.visual.\1"),
        (
            r"model\.(?:language_model\.)?((?:embed_tokens|layers|norm)\..+)",
            r"body.language_model.\1",
        ),
        (r"rm_head\.(\d+\..+)", r"head.\1"),
    ),
    unused=(r"lm_head\.weight",),
)
"""Layouts of transformers before and since its release 4.52."""


ROWS = 8  # Texts to one image that run together


class Options(Frozen):
    """What differs between rows."""

    reading: Reading  # The whole input, with the token in it after the prompt
    token: str = "<|Reward|>"  # noqa: S105 - added to the vocabulary; the head reads its state
    pixels: int = 200_704  # Of an image, nearly: both sides are multiples of 28


class RewardModel(nn.Module):
    """Qwen2-VL without its language head, and a head of two outputs in float32."""

    def __init__(self, config: Qwen2VLConfig, widths: Sequence[int], dtype: torch.dtype) -> None:
        super().__init__()
        self.body: Any = Qwen2VLModel._from_config(config, dtype=dtype)
        first, second, third, last = widths
        self.head = nn.Sequential(
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(second, third),
            nn.ReLU(),
            nn.Linear(third, last),
        )

    def image_states(self, pixels: Mapping[str, Any]) -> Tensor:
        """What stands in the places of an image's tokens, shape (n, d)."""
        states: Tensor = self.body.get_image_features(**pixels).pooler_output[0]
        return states

    def outputs(self, ids: Tensor, mask: Tensor, image: Tensor, token: int) -> Tensor:
        """The head's outputs at the last place of a token, float32, shape (rows, 2).

        Positions count from 0 over all tokens, those of the image too, as the authors' forward pass
        has it: it hands embeddings on, from which M-RoPE cannot tell where an image is.

        `ids`: of texts to one image, padded at their end, shape (rows, t); `mask`: 1 where there is
        a token, shape (rows, t); `image`: from `image_states`.
        """
        embedded = self.body.get_input_embeddings()(ids)
        places = (ids == self.body.config.image_token_id)[..., None].expand_as(embedded)
        embedded = embedded.masked_scatter(places, image.to(embedded.dtype).repeat(len(ids), 1))
        positions = torch.arange(ids.shape[1], device=ids.device).expand(3, *ids.shape)
        states = self.body.language_model(
            inputs_embeds=embedded, attention_mask=mask, position_ids=positions, use_cache=False
        ).last_hidden_state
        last = torch.stack([(row == token).nonzero()[-1, 0] for row in ids])
        rated: Tensor = self.head(states[torch.arange(len(ids), device=ids.device), last].float())
        return rated


class HPSv3(SharedImageScorer):
    """The first of the head's outputs, the mean of the preference; the second is its deviation."""

    def __init__(
        self, model: RewardModel, text: ChatText, token: int, context: int, rows: int
    ) -> None:
        self._model = model
        self._text = text
        self._token = token
        self._context = context
        self._rows = rows
        self._longest_input = 0  # of an empty prompt

    def prepare(self, image: Image.Image) -> SeenImage:
        """The image after the checkpoint's image processor, on the CPU."""
        seen = self._text.prepare(image)
        self._longest_input = max(self._longest_input, seen.length)
        return seen

    @torch.inference_mode()
    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each image, one score per prompt of its own list; images are encoded once."""
        return [
            self._of_image([self._text.inputs_of(seen, prompt) for prompt in its])
            for seen, its in zip(images, prompts, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether a prompt with the longest image so far exceeds the model's context."""
        room = self._context - self._longest_input
        return [self._text.length(prompt) > room for prompt in prompts]

    def _of_image(self, asked: Sequence[ImagePrompt]) -> list[float]:
        if not asked:
            return []
        device = self._model.body.device
        pixels = {name: value.to(device) for name, value in asked[0].pixels.items()}
        image = self._model.image_states(pixels)
        scores: list[float] = []
        for start in range(0, len(asked), self._rows):
            ids = [one.ids for one in asked[start : start + self._rows]]
            padded = nn.utils.rnn.pad_sequence(ids, batch_first=True)
            mask = nn.utils.rnn.pad_sequence([torch.ones_like(one) for one in ids], True)
            found = self._model.outputs(padded.to(device), mask.to(device), image, self._token)
            scores += found[:, 0].tolist()
        return scores


def build(
    state: Mapping[str, Tensor], source: Source, config: Qwen2VLConfig, dtype: torch.dtype
) -> RewardModel:
    """The model of the released weights, in evaluation mode on the CPU."""
    named = RENAMING.renamed(state)
    heads = [weight(named, f"head.{place}.weight").shape for place in (0, 3, 5)]
    widths = [heads[0][1], *(shape[0] for shape in heads)]
    words = weight(named, "body.language_model.embed_tokens.weight")
    text: Any = config.text_config
    text.vocab_size = words.shape[0]
    with no_init_weights():
        model = RewardModel(config, widths, dtype)
    return fill(model, named, source).eval()


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """HPSv3, put together from its weights and from the settings of the model it was made from."""
    source, base = authors_file(row, runtime), resolve(row, runtime, "base")
    kind = check_class(base, ("qwen2_vl",))
    setting = Setting(base, kind, runtime, runtime.dtype or row.dtype, options.reading)
    processor = setting.processor()
    processor.image_processor = setting.from_folder(
        AutoImageProcessor,
        backend=options.reading.backend,
        min_pixels=options.pixels,
        max_pixels=options.pixels,
    )
    processor.tokenizer.add_tokens([options.token], special_tokens=True)
    config = setting.from_folder(AutoConfig)
    model = build(read_weights(source, runtime), source, config, dtype_of(row, runtime))
    known = model.body.config.text_config.vocab_size
    if known != len(processor.tokenizer):
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} knows {known} tokens; the tokenizer of {base} has, with {options.token}, "
            f"{len(processor.tokenizer)}.",
            "Name the model that it was trained from as `base`.",
        )
    text = ChatText(processor, options.reading)
    scorer = HPSv3(
        model.to(runtime.device),
        text,
        processor.tokenizer.convert_tokens_to_ids(options.token),
        model.body.config.text_config.max_position_embeddings,
        min(runtime.batch_texts, ROWS),
    )
    told = environment(
        row, runtime, {"model": source, "base": base}, image_processor=text.image_processor
    )
    return Loaded(scorer, told)


FAMILY = Family("reward token", Options, load)
