"""Entailment of one text by another, by a T5 that answers 1 or 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.loading import load_processor, load_transformers
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime


class T5Entailment:
    """p(entailed) = p(first token of the answer is `1`), over the whole vocabulary.

    The input is `premise: {premise} hypothesis: {hypothesis}`, as the checkpoint was trained on
    (TRUE, Honovich et al. 2022, `google/t5_xxl_true_nli_mixture`).

    Args:
        model: on its device, in evaluation mode.
        tokenizer: of the model.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, `1` is no single token.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        ids = tokenizer("1", add_special_tokens=False)["input_ids"]
        if tokenizer.unk_token_id in ids:
            raise SubmitterError(
                "checkpoint_wrong_class", "The tokenizer of the entailment model has no `1`."
            )
        self._yes = ids[0]  # SentencePiece may write a space as a token of its own before it
        if len(ids) > 1 and tokenizer.decode(ids[:1]).strip() != "1":
            raise SubmitterError(
                "checkpoint_wrong_class",
                f"The entailment model reads `1` as {len(ids)} tokens; it must be one.",
            )

    @torch.inference_mode()
    def probabilities(
        self, premises: Sequence[str], hypotheses: Sequence[str]
    ) -> NDArray[np.float64]:
        """The probability that each premise entails its hypothesis.

        Args:
            premises: n texts.
            hypotheses: n texts.

        Returns:
            Shape (n,), values in 0..1. Each pair is read alone, so none depends on others.
        """
        pairs = zip(premises, hypotheses, strict=True)
        return np.array([self._probability(p, h) for p, h in pairs], np.float64)

    def _probability(self, premise: str, hypothesis: str) -> float:
        inputs = self._tokenizer(
            f"premise: {premise} hypothesis: {hypothesis}", return_tensors="pt"
        ).to(self._model.device)
        start = torch.tensor([[self._model.config.decoder_start_token_id]])
        logits = self._model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            decoder_input_ids=start.to(self._model.device),
        ).logits
        return float(logits[0, 0].float().softmax(-1)[self._yes])


def load_entailment(source: Source, row: ScorerRow, runtime: Runtime) -> T5Entailment:
    """Load a T5 of entailment.

    Args:
        source: the folder of, e.g., `google/t5_xxl_true_nli_mixture`.
        row: the metric that needs it.
        runtime: device, precision, what may be read.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, `checkpoint_incomplete`, `checkpoint_damaged`.
    """
    model = load_transformers(AutoModelForSeq2SeqLM, source, row, runtime, accepted=("t5", "mt5"))
    return T5Entailment(model, load_processor(AutoTokenizer, source, runtime, pil=False))
