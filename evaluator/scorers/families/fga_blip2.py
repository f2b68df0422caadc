"""FGA-BLIP2: BLIP-2's matching head tuned on ratings of whole prompts and of their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from transformers import AutoTokenizer, BlipImageProcessorPil

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import SharedImageScorer
from evaluator.scorers.checkpoints import resolve
from evaluator.scorers.loading import dtype_of, environment, load_processor, read_weights
from evaluator.scorers.models.blip import (
    AttentionHeads,
    Blip2Matcher,
    Match,
    authors_file,
    build_blip2,
    mean_of_softmax,
)
from evaluator.scorers.models.element_spans import ElementFinder
from evaluator.scorers.questions.files import QuestionFile, load_questions
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Answer, Verdict

_POSITIONS = 512


class FgaOptions(Frozen):
    """What differs between rows."""

    overall: Literal["queries", "elements_mean"] = "queries"
    """1 + 4 x the mean over query tokens, or the mean over the elements of a question file."""
    reference: bool = False
    """Elements that are not found score 0, as in the authors' code, and not nothing."""
    max_words: int = Field(default=50, ge=1)
    vision_heads: int = 16
    qformer_heads: int = 12


class FgaScorer(SharedImageScorer):
    """Scores prompts in 1..5 and their elements in 0..1.

    overall = 1 + 4 x mean over query tokens of softmax(logits)[match]
    element = mean over the element's own tokens of softmax(logits)[match]
    """

    def __init__(self, matcher: Blip2Matcher, finder: ElementFinder) -> None:
        self._model: Blip2Matcher = matcher
        self._finder = finder

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[float | Verdict]]:
        """For each image, one score per prompt of its own list, in 1..5."""
        return [
            [1 + 4 * mean_of_softmax(match.queries) for match in of_image]
            for of_image in self._match(images, prompts)
        ]

    def score_elements(
        self, images: Sequence[Any], prompts: Sequence[str], elements: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each pair, one score per element in 0..1; NaN where `element_problems` says why."""
        matches = self._match(images, [[prompt] for prompt in prompts])
        return [
            self._of_elements(of_image[0], prompt, wanted)
            for of_image, prompt, wanted in zip(matches, prompts, elements, strict=True)
        ]

    def score_texts_by_element(
        self,
        images: Sequence[Any],
        prompts: Sequence[Sequence[str]],
        elements: Sequence[Sequence[Sequence[str]]],
    ) -> list[list[list[float]]]:
        """For each image and prompt, one score per element of its own list."""
        return [
            [self._of_elements(*each) for each in zip(*of_image, strict=True)]
            for of_image in zip(self._match(images, prompts), prompts, elements, strict=True)
        ]

    def element_problems(
        self, prompts: Sequence[str], elements: Sequence[Sequence[str]]
    ) -> list[list[str]]:
        """For each element of each prompt why it is not found; empty where it is."""
        return [
            [self._finder.find(prompt, element).problem for element in wanted]
            for prompt, wanted in zip(prompts, elements, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether words past the limit, or tokens past the model's positions, are not read."""
        read = [self._finder.read(prompt) for prompt in prompts]
        whole = [ElementFinder(self._finder.tokenize, 0).read(prompt) for prompt in prompts]
        cut = self._model.truncated(read)
        return [some or one != all_ for some, one, all_ in zip(cut, read, whole, strict=True)]

    def _match(self, images: Sequence[Any], prompts: Sequence[Sequence[str]]) -> list[list[Match]]:
        read = [[self._finder.read(prompt) for prompt in of_image] for of_image in prompts]
        return self._model.match(images, read)

    def _of_elements(self, match: Match, prompt: str, elements: Sequence[str]) -> list[float]:
        spans = [self._finder.find(prompt, element) for element in elements]
        # The first of the text's logits is [CLS]'s.
        tokens = [match.text[1 + span.start : 1 + span.stop] for span in spans]
        none = 0.0 if self._finder.reference else math.nan
        return [mean_of_softmax(own) if len(own) else none for own in tokens]


class ElementMeanScorer(FgaScorer):
    """The mean of the scores of a prompt's elements, in 0..1; elements come from a question file.

    Elements that are not found take no part, or count 0 where the finder follows the authors.
    """

    def __init__(
        self, matcher: Blip2Matcher, finder: ElementFinder, questions: QuestionFile
    ) -> None:
        super().__init__(matcher, finder)
        self._questions = questions

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[float | Verdict]]:
        """For each image, one verdict per prompt of its own list, its elements as answers."""
        elements = [[self._elements(prompt) for prompt in of_image] for of_image in prompts]
        scores = self.score_texts_by_element(images, prompts, elements)
        return [
            [self._verdict(*each) for each in zip(*of_image, strict=True)]
            for of_image in zip(prompts, elements, scores, strict=True)
        ]

    def _elements(self, prompt: str) -> list[str]:
        questions = self._questions.of(prompt).questions
        return list(dict.fromkeys(each.element for each in questions if each.element))

    def _verdict(self, prompt: str, elements: Sequence[str], scores: Sequence[float]) -> Verdict:
        (problems,) = self.element_problems([prompt], [elements])
        answers = tuple(
            Answer(str(place), element, "", problem, score, not math.isnan(score))
            for place, (element, problem, score) in enumerate(
                zip(elements, problems, scores, strict=True), start=1
            )
        )
        counted = [score for score in scores if not math.isnan(score)]
        if counted:
            return Verdict(math.fsum(counted) / len(counted), "", answers)
        reason = self._questions.of(prompt).reason or "the question file names no elements of it"
        return Verdict(math.nan, problems[0] if problems else reason, answers)


def load(row: ScorerRow, options: FgaOptions, runtime: Runtime) -> Loaded:
    """BLIP2-COCO tuned by EvalMuse's authors, read from LAVIS' layout."""
    questions = _questions(row, options, runtime)
    source = authors_file(row, runtime)
    words = resolve(row, runtime, "tokenizer")
    tokenizer = load_processor(AutoTokenizer, words, runtime, pil=False)
    heads = AttentionHeads(options.vision_heads, options.qformer_heads)
    state = read_weights(source, runtime)
    model: Any = build_blip2(state, source, heads, dtype_of(row, runtime))
    model.to(runtime.device)
    side = model.config.vision_config.image_size
    images = BlipImageProcessorPil(size={"height": side, "width": side})
    matcher = Blip2Matcher(model, tokenizer, images, _POSITIONS, runtime.batch_texts)
    finder = ElementFinder(
        lambda text: matcher.token_ids(text)[1:-1], options.max_words, options.reference
    )
    told = environment(
        row,
        runtime,
        {"model": source, "tokenizer": words},
        image_processor=type(images).__name__,
    )
    preprocessing = f"{type(images).__name__} {side}"
    if questions is None:
        return Loaded(FgaScorer(matcher, finder), told, preprocessing)
    told["questions"] = f"{questions.name} {questions.sha256}"
    return Loaded(ElementMeanScorer(matcher, finder, questions), told, preprocessing)


def _questions(row: ScorerRow, options: FgaOptions, runtime: Runtime) -> QuestionFile | None:
    if options.overall == "queries":
        return None
    if runtime.questions is None:
        raise SubmitterError(
            "questions_missing",
            f"{row.name} is the mean over the elements of a prompt, and no file names them.",
            "Name a question file with --questions FILE.",
        )
    return load_questions(runtime.questions)


FAMILY = Family("cross-encoder with element scores", FgaOptions, load)
