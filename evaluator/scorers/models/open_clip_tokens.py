"""Tokenizers of open_clip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import open_clip  # type: ignore[import-untyped]
from open_clip.tokenizer import (  # type: ignore[import-untyped]
    HFTokenizer,
    SimpleTokenizer,
)

from evaluator.scorers.checkpoints import Source
from evaluator.scorers.loading import reading


def name_of(source: Source, architecture: str) -> str:
    """What open_clip calls a model: an architecture, or a folder with a configuration."""
    return architecture or f"local-dir:{source.place}"


class OpenClipTokens:
    """CLIP's own byte pairs, as open_clip has them."""

    pad = 0

    def __init__(self, tokenizer: SimpleTokenizer) -> None:
        self._tokenizer = tokenizer

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        """All numbers of each text, with those of its start and end."""
        first, last = self._tokenizer.sot_token_id, self._tokenizer.eot_token_id
        return [[first, *self._tokenizer.encode(text), last] for text in texts]

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """The same, at most `length`, the end's number kept."""
        last = self._tokenizer.eot_token_id
        return [
            ids if len(ids) <= length else [*ids[: length - 1], last] for ids in self.whole(texts)
        ]


class OpenClipHfTokens:
    """A tokenizer of `transformers`, with the cleaning open_clip does before it."""

    def __init__(self, tokenizer: HFTokenizer) -> None:
        self._clean = tokenizer.clean_fn
        self._tokenizer: Any = tokenizer.tokenizer
        self.pad: int = self._tokenizer.pad_token_id

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        """All numbers of each text, with those of its start and end."""
        found: list[list[int]] = self._tokenizer(
            [self._clean(text) for text in texts], truncation=False, verbose=False
        )["input_ids"]
        return found

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """The same, at most `length`, the end's number kept."""
        found: list[list[int]] = self._tokenizer(
            [self._clean(text) for text in texts], truncation=True, max_length=length
        )["input_ids"]
        return found


def load_tokens(source: Source, architecture: str) -> OpenClipTokens | OpenClipHfTokens:
    """The tokenizer of a checkpoint; the one of CLIP comes with open_clip.

    Raises:
        SubmitterError: `checkpoint_damaged`.
    """
    with reading(source, "tokenizer"):
        text = (open_clip.get_model_config(name_of(source, architecture)) or {}).get("text_cfg", {})
        more = dict(text.get("tokenizer_kwargs", {}))
        if text.get("hf_tokenizer_name"):
            place = source.place if source.place.is_dir() else source.place.parent
            return OpenClipHfTokens(HFTokenizer(str(place), **more))
        return OpenClipTokens(SimpleTokenizer(**more))
