"""Similarity of sentences: cosines of mean-pooled token states (Sentence-BERT)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from evaluator.scorers.checkpoints import Source
from evaluator.scorers.loading import load_processor, load_transformers
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime

_KEPT = 1 << 14
_MAX_TOKENS = 384  # of all-mpnet-base-v2, where its own tokenizer names no limit


class SentenceSimilarity:
    """Cosines between texts.

    A text is embedded as the mean of the states of its tokens, padding left out (Reimers and
    Gurevych 2019, pooling MEAN), each text alone, so that it does not depend on others.

    Args:
        model: an encoder of `transformers`, on its device, in evaluation mode.
        tokenizer: of the model.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._limit = min(tokenizer.model_max_length, _MAX_TOKENS)
        self._embed = lru_cache(maxsize=_KEPT)(self._embedded)

    def cosines(self, text: str, others: Sequence[str]) -> NDArray[np.float64]:
        """The cosine between a text and each of the others, shape (len(others),), -1..1."""
        own = self._embed(text)
        # One product each: in a matrix product the last digit depends on the other rows.
        return np.array([np.dot(self._embed(other), own) for other in others], np.float64)

    @torch.inference_mode()
    def _embedded(self, text: str) -> NDArray[np.float64]:
        """The unit vector of a text, shape (d,)."""
        inputs = self._tokenizer(
            text, truncation=True, max_length=self._limit, return_tensors="pt"
        ).to(self._model.device)
        states = self._model(**inputs).last_hidden_state[0].double()
        mask = inputs["attention_mask"][0, :, None]
        pooled = (states * mask).sum(0) / mask.sum()
        unit: NDArray[np.float64] = (pooled / pooled.norm()).cpu().numpy()
        return unit


def load_similarity(source: Source, row: ScorerRow, runtime: Runtime) -> SentenceSimilarity:
    """Load a sentence encoder, in float32.

    Args:
        source: the folder of, e.g., `sentence-transformers/all-mpnet-base-v2`.
        row: the metric that needs it.
        runtime: device and what may be read.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, `checkpoint_incomplete`, `checkpoint_damaged`.
    """
    exact = replace(runtime, dtype="float32")
    accepted = ("mpnet", "bert", "roberta", "xlm-roberta", "distilbert")
    model = load_transformers(
        AutoModel, source, row, exact, accepted=accepted, may_lack=(r"^pooler\.",)
    )
    return SentenceSimilarity(model, load_processor(AutoTokenizer, source, exact, pil=False))
