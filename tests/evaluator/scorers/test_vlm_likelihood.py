"""Each row's number equals its formula, computed in a few lines with the library's model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image
from pydantic import ValidationError

from evaluator.scorers.answering import Candidate
from evaluator.scorers.registry import ROWS, load_rows, load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers.tiny_qwen import qwen2_vl, qwen3_vl
from tests.evaluator.scorers.tiny_seq2seq import blip2, clip_flant5_folders
from tests.evaluator.scorers.tiny_vlm import llava, picture, saved

if TYPE_CHECKING:
    import torch

PROMPTS = ["a red ball", 'two dogs "beside" a {tree}', "x"]
OURS = [row for row in load_rows(ROWS).values() if row.family == "vlm_likelihood"]
BY_NAME = {row.name: row for row in OURS}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("rows")
    made = {"qwen2": qwen2_vl(), "qwen3": qwen3_vl(), "llava": llava()}
    made |= {"blip2": blip2(), "instructblip": blip2(instruct=True)}
    return {name: saved(*one, place / name) for name, one in made.items()}


def loaded(name: str, folder: Path, **more: Any) -> Any:
    row = BY_NAME[name].model_copy(update={"dtype": "float32", **more})
    return load_scorer(row, Runtime(folders={"model": folder})).scorer


def probabilities(scorer: Any, image: Image.Image, question: str) -> tuple[Any, torch.Tensor]:
    """Tokeniser and probabilities of the first token, by a plain call of the library's model."""
    import torch

    text, model = scorer._model._text, scorer._model._model
    one = text.asked(text.prepare(image), question)
    if hasattr(model.model, "rope_deltas"):
        model.model.rope_deltas = None
    with torch.no_grad():
        logits = model(input_ids=one.ids[None], **one.per_token, **one.pixels).logits
    return text.tokenizer, torch.softmax(logits[0, -1].double(), dim=-1)


def test_every_row_names_a_question_that_its_family_takes() -> None:
    from evaluator.scorers.families.vlm_likelihood import FAMILY

    assert len(OURS) >= 15
    for row in OURS:
        options = FAMILY.check(row)
        assert options.asked("{}x") == options.question.replace("{}", "{}x")
        assert row.low is not None and row.high == 1.0
        assert (row.low == -1.0) == (options.reduce == "p_diff")


@pytest.mark.parametrize("model", ["qwen2", "qwen3"])
def test_vqascore_chat_is_the_probability_of_yes(folders: dict[str, Path], model: str) -> None:
    scorer = loaded("vqascore-any", folders[model])
    image = picture(1, 90, 60)

    found = scorer.score_texts([scorer.prepare(image)], [PROMPTS])[0]

    for prompt, score in zip(PROMPTS, found, strict=True):
        question = f'Does this figure show "{prompt}"? Please answer Yes or No.'
        tokenizer, p = probabilities(scorer, image, question)
        assert_allclose(score, p[tokenizer.encode("Yes")[0]], atol=1e-6)


def test_crocscore_is_the_difference_of_yes_and_no(folders: dict[str, Path]) -> None:
    reading = {"square": "squash", "side": 112}
    options = {**BY_NAME["crocscore"].options, "reading": reading}
    scorer = loaded("crocscore", folders["qwen2"], options=options)
    image = picture(1, 90, 60)

    found = scorer.score_texts([scorer.prepare(image)], [PROMPTS])[0]

    squashed = image.resize((112, 112), Image.Resampling.LANCZOS)
    for prompt, score in zip(PROMPTS, found, strict=True):
        question = f"Does this image show the following content:'{prompt}'? Answer with Yes or No."
        tokenizer, p = probabilities(scorer, squashed, question)
        yes, no = (tokenizer.encode(word)[0] for word in ("Yes", "No"))
        assert_allclose(score, p[yes] - p[no], atol=1e-6)


def test_vqascore_llava_is_the_mean_of_yes_and_end(folders: dict[str, Path]) -> None:
    import torch

    scorer = loaded("vqascore-llava15", folders["llava"])
    text, model = scorer._model._text, scorer._model._model
    image = picture(1, 90, 60)

    found = scorer.score_texts([scorer.prepare(image)], [PROMPTS])[0]

    label = [*text.tokenizer.encode("Yes", add_special_tokens=False), text.tokenizer.eos_token_id]
    for prompt, score in zip(PROMPTS, found, strict=True):
        question = f'Does this figure show "{prompt}"? Please answer yes or no.'
        one = text.asked(text.prepare(image), question)
        ids = torch.cat([one.ids, torch.tensor(label)])
        targets = torch.cat([torch.full_like(one.ids, -100), torch.tensor(label)])
        with torch.no_grad():
            out = model(input_ids=ids[None], labels=targets[None], **one.pixels)
        assert_allclose(score, math.exp(-out.loss.item()), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "folder"), [("vqascore-instructblip", "instructblip"), ("vnli-zeroshot", "blip2")]
)
def test_seq2seq_rows_equal_their_formula(folders: dict[str, Path], name: str, folder: str) -> None:
    import torch

    from evaluator.scorers.families.vlm_likelihood import FAMILY

    scorer = loaded(name, folders[folder])
    model, processor = blip2(instruct=folder == "instructblip")
    kind: Any = model
    options = FAMILY.check(BY_NAME[name])
    image = picture(1, 60, 40)
    yes, no = (processor.tokenizer.encode(word)[0] for word in ("yes", "no"))

    found = scorer.score_texts([scorer.prepare(image)], [PROMPTS])[0]

    for prompt, score in zip(PROMPTS, found, strict=True):
        inputs = processor(images=image, text=options.asked(prompt), return_tensors="pt")
        with torch.no_grad():
            out = kind(**inputs, labels=torch.tensor([[yes, 1]]))
        p = torch.softmax(out.logits[0, 0].double(), dim=-1)
        wanted = {
            "geo_mean_with_eos": math.exp(-out.loss.item()),
            "p_yes_norm": float(p[yes] / (p[yes] + p[no])),
        }[options.reduce]
        assert_allclose(score, wanted, atol=1e-6)


def test_vqascore_t5_loads_its_three_parts(tmp_path: Path) -> None:
    row = BY_NAME["vqascore-t5"].model_copy(update={"dtype": "float32"})
    made = load_scorer(row, Runtime(folders=clip_flant5_folders(tmp_path)))
    scorer: Any = made.scorer

    scores = scorer.score([scorer.prepare(picture(1))] * 3, PROMPTS)

    assert all(0 < score < 1 for score in scores)
    assert made.environment["question"].startswith("Does this figure show")


def test_one_path_or_the_other_gives_the_same_score(folders: dict[str, Path]) -> None:
    scorer = loaded("vqascore-any", folders["qwen2"])
    images = [scorer.prepare(picture(i, 56 + 28 * i, 56)) for i in range(2)]
    pairs = [(image, prompt) for image in images for prompt in PROMPTS]

    by_pair = scorer.score([image for image, _ in pairs], [prompt for _, prompt in pairs])
    by_image = scorer.score_texts(images, [PROMPTS, PROMPTS])

    assert_allclose(by_pair, np.ravel(by_image), atol=1e-6)


def test_a_prompt_beyond_the_context_is_named(folders: dict[str, Path]) -> None:
    scorer = loaded("vqascore-any", folders["qwen2"])

    assert scorer.truncated(["a dog", "dog " * 200]) == [False, True]


class Broken:
    """Gives NaN for the second prompt."""

    def prepare(self, image: Image.Image) -> Any:
        return image

    def answer_logprobs(
        self,
        images: Sequence[Any],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[np.ndarray]]]:
        return [[[np.array([-1.0])], [np.array([np.nan])]] for _ in images]

    def generate(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        raise AssertionError

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        return [False] * len(prompts)


def test_nan_from_a_model_is_a_verdict_with_a_reason() -> None:
    from evaluator.scorers.families.vlm_likelihood import Options, VLMLikelihood

    options = Options(question="{}?", answer="Yes", reduce="p_first")

    first, second = VLMLikelihood(Broken(), options).score_texts([picture(1)], [["a", "b"]])[0]

    assert first == pytest.approx(math.exp(-1))
    assert isinstance(second, Verdict)
    assert "NaN" in second.problem


@pytest.mark.parametrize(
    "values",
    [
        {"question": "no place", "answer": "Yes", "reduce": "p_first"},
        {"question": "{}?", "answer": "Yes", "reduce": "p_diff"},
        {"question": "{}?", "answer": "Yes", "against": "No", "reduce": "p_first"},
    ],
)
def test_questions_that_cannot_be_asked_are_refused(values: dict[str, str]) -> None:
    from evaluator.scorers.families.vlm_likelihood import Options

    with pytest.raises(ValidationError):
        Options.model_validate(values)


def test_a_row_may_say_all_of_its_options_in_its_file() -> None:
    from evaluator.scorers.families.vlm_likelihood import FAMILY

    row: ScorerRow = BY_NAME["crocscore-p-paper"]
    options = FAMILY.check(row)

    assert options.asked("a dog") == "Does this image show a dog. Yes or No?"
    assert options.reading.square == "squash"
    assert options.reading.side == 1024
