"""Language models: text in, text out; entailment; similarity of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
    LogitsProcessor,
)

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate, answer_tokens
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.loading import load_processor, load_transformers, reading, refuse_missing
from evaluator.scorers.models.sampling import Sampled, Sampling
from evaluator.scorers.registry import Dtype, Runtime, ScorerRow


class TextModel(Protocol):
    """A language model that answers a prompt with text, always with the same text."""

    def generate(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        """The likeliest continuation, token by token, of each prompt; special tokens removed."""

    def fits(self, prompt: str, max_new_tokens: int) -> bool:
        """Whether a prompt and an answer of that length are within what the model reads."""


class CausalTextModel:
    """A decoder of `transformers`, with the chat template of its tokenizer where it has one.

    Decoding is greedy, and free of the penalties that a checkpoint may come with. Each prompt is
    answered alone, so that no answer depends on other prompts.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        tokenizer.padding_side = "left"
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        self._positions: int | None = getattr(model.config, "max_position_embeddings", None)

    def generate(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        """See `TextModel`."""
        encoded = [self._encode(prompt) for prompt in prompts]
        if not all(self._short_enough(ids, max_new_tokens) for ids in encoded):
            raise SubmitterError(
                "prompt_too_long",
                f"A prompt of {max(map(len, encoded))} tokens and an answer of {max_new_tokens} "
                f"exceed the {self._positions} positions of the language model.",
                "Use a language model with a longer context.",
            )
        return [self._continue(ids, max_new_tokens) for ids in encoded]

    @torch.inference_mode()
    def sample(
        self, prompts: Sequence[str], seeds: Sequence[int], max_new_tokens: int, how: Sampling
    ) -> list[Sampled]:
        """See `SamplingModel`; each is drawn alone, so that it depends on no other."""
        return [
            self._drawn(prompt, seed, max_new_tokens, how)
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]

    def _drawn(self, prompt: str, seed: int, max_new_tokens: int, how: Sampling) -> Sampled:
        encoded = self._encode(prompt)
        if not self._short_enough(encoded, max_new_tokens):
            return Sampled("", refusal="the prompt is too long for the model")
        inputs = self._tokenizer.pad({"input_ids": [encoded]}, return_tensors="pt")
        config = self._greedy(max_new_tokens)
        config.update(do_sample=True, temperature=how.temperature, top_p=how.top_p, top_k=how.top_k)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            produced = self._model.generate(
                **inputs.to(self._model.device),
                generation_config=config,
                logits_processor=[PresencePenalty(len(encoded), how.presence_penalty)],
            )
        answer = produced[0, len(encoded) :].tolist()
        ends = self._model.generation_config.eos_token_id
        ended = ends is not None and answer[-1:] and answer[-1] in np.atleast_1d(ends)
        text = self._tokenizer.decode(answer, skip_special_tokens=True)
        return Sampled(text, cut=len(answer) >= max_new_tokens and not ended)

    def fits(self, prompt: str, max_new_tokens: int) -> bool:
        """See `TextModel`."""
        return self._short_enough(self._encode(prompt), max_new_tokens)

    def _encode(self, prompt: str) -> list[int]:
        if self._tokenizer.chat_template is None:
            return list(self._tokenizer(prompt)["input_ids"])
        # Templates of models that think aloud know the switch; others ignore it.
        encoded = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            enable_thinking=False,
        )
        return list(encoded["input_ids"])

    def _short_enough(self, ids: list[int], max_new_tokens: int) -> bool:
        return self._positions is None or len(ids) + max_new_tokens <= self._positions

    @torch.inference_mode()
    def _continue(self, encoded: list[int], max_new_tokens: int) -> str:
        inputs = self._tokenizer.pad({"input_ids": [encoded]}, return_tensors="pt")
        inputs = inputs.to(self._model.device)
        produced = self._model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            generation_config=self._greedy(max_new_tokens),
        )
        answer = produced[0, len(encoded) :]
        return str(self._tokenizer.decode(answer, skip_special_tokens=True))

    def _greedy(self, max_new_tokens: int) -> GenerationConfig:
        return GenerationConfig(
            max_new_tokens=max_new_tokens,
            min_new_tokens=0,
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            pad_token_id=self._tokenizer.pad_token_id,
        )


class PresencePenalty(LogitsProcessor):
    """Takes a penalty off the logit of each token that the reply has already."""

    def __init__(self, prompt_length: int, penalty: float) -> None:
        self._prompt_length, self._penalty = prompt_length, penalty

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """The logits, shape (1, vocabulary), after what was written, shape (1, tokens)."""
        written = torch.zeros_like(scores).scatter_(1, input_ids[:, self._prompt_length :], 1.0)
        return scores - self._penalty * written


def load_text_model(source: Source, runtime: Runtime, dtype: Dtype = "float32") -> CausalTextModel:
    """Load a causal language model and its tokenizer."""
    trusted = runtime.trust_remote_code
    with reading(source, "configuration"):
        config = AutoConfig.from_pretrained(
            source.place, local_files_only=True, trust_remote_code=trusted
        )
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING and not trusted:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} holds a model of type {config.model_type!r}; wanted: a language model.",
            "Name a checkpoint of a decoder, such as Qwen/Qwen2.5-7B-Instruct.",
        )
    loader: Any = AutoModelForCausalLM
    with reading(source, "weights"):
        model, report = loader.from_pretrained(
            source.place,
            config=config,
            dtype=getattr(torch, runtime.dtype or dtype),
            local_files_only=True,
            trust_remote_code=trusted,
            use_safetensors=None if runtime.allow_pickle else True,
            output_loading_info=True,
        )
    refuse_missing(source, report["missing_keys"])
    tokenizer = load_processor(AutoTokenizer, source, runtime, pil=False)
    return CausalTextModel(model.eval().to(runtime.device), tokenizer)


class T5Entailment:
    """p(entailed) = p(first token of the answer is `1`), over the whole vocabulary.

    The input is `premise: {premise} hypothesis: {hypothesis}`, as the checkpoint was trained on
    (TRUE, Honovich et al. 2022, `google/t5_xxl_true_nli_mixture`).
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._yes = answer_tokens(tokenizer, [Candidate("1", first_only=True)])[0][0]

    @torch.inference_mode()
    def probabilities(
        self, premises: Sequence[str], hypotheses: Sequence[str]
    ) -> NDArray[np.float64]:
        """The probability that each premise entails its hypothesis.

        Returns: Shape (n,), values in 0..1. Each pair is read alone, so none depends on others.
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
    """Load a T5 of entailment."""
    model = load_transformers(AutoModelForSeq2SeqLM, source, row, runtime, accepted=("t5", "mt5"))
    return T5Entailment(model, load_processor(AutoTokenizer, source, runtime, pil=False))


_KEPT = 1 << 14
_MAX_TOKENS = 384  # of all-mpnet-base-v2, where its own tokenizer names no limit


class SentenceSimilarity:
    """Cosines between texts.

    A text is embedded as the mean of the states of its tokens, padding left out (Reimers and
    Gurevych 2019, pooling MEAN), each text alone, so that it does not depend on others.
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

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The unit vectors of texts, shape (len(texts), d)."""
        return np.stack([self._embed(text) for text in texts])

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
    """Load a sentence encoder, in float32."""
    exact = replace(runtime, dtype="float32")
    accepted = ("mpnet", "bert", "roberta", "xlm-roberta", "distilbert")
    model = load_transformers(
        AutoModel, source, row, exact, accepted=accepted, may_lack=(r"^pooler\.",)
    )
    return SentenceSimilarity(model, load_processor(AutoTokenizer, source, exact, pil=False))
